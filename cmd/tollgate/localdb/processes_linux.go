package localdb

import (
	"fmt"
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// processes lists the living processes that work in the data folder: the server
// and its sessions all have it as their current folder. Zombies have none.
func (h *home) processes() ([]int, error) {
	type result struct {
		pids []int
		err  error
	}
	done := make(chan result)
	go func() {
		// Looking at another user's process takes a right that root lacks in many
		// containers, while the user itself may. So this one thread looks as that
		// user; it is never unlocked, and so ends with the goroutine.
		runtime.LockOSThread()
		if h.account.drop {
			_, _ = unix.SetfsgidRetGid(h.account.gid)
			_, _ = unix.SetfsuidRetUid(h.account.uid)
		} else {
			defer runtime.UnlockOSThread()
		}
		pids, err := pidsIn(h.data())
		done <- result{pids, err}
	}()
	r := <-done
	return r.pids, r.err
}

func pidsIn(dir string) ([]int, error) {
	proc, err := os.Open("/proc")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	defer proc.Close()
	names, err := proc.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var pids []int
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if cwd, err := os.Readlink("/proc/" + name + "/cwd"); err == nil && cwd == dir {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}
