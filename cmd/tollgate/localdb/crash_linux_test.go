package localdb

import (
	"os"
	"os/exec"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestRootOfAContainerSeesOrphans is TestKillOfEverything for a root that may not
// look at the processes of others, as is usual in containers.
func TestRootOfAContainerSeesOrphans(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("a normal user never may look at the processes of others")
	}
	dir := seededDir(t)
	orphan := leaveOrphan(t, dir)

	second := startHelperBy(t, dir, 0, func(cmd *exec.Cmd) error {
		started := make(chan error)
		go func() {
			runtime.LockOSThread() // the right is the thread's; the thread ends with this function
			err := unix.Prctl(unix.PR_CAPBSET_DROP, unix.CAP_SYS_PTRACE, 0, 0, 0)
			if err == nil {
				err = cmd.Start()
			}
			started <- err
		}()
		return <-started
	})
	require.Empty(t, second.Problem)
	require.Equal(t, []string{"1"}, query(t, second.URL, `select n from kept`))
	require.False(t, lives(orphan))
}
