//go:build unix

package localdb

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// account is the operating-system user that Postgres runs as. Postgres refuses to
// run as root, so root steps down to another user for each child process.
type account struct {
	uid, gid int
	// drop is true when our own user differs and children must change theirs.
	drop bool
}

// nobodyID is the last resort where the machine has neither user: an id needs no
// entry in the user list to own files and run programs.
const nobodyID = 65534

// accountFor picks the user for a data folder. An existing folder keeps its
// owner, so that root can open what a normal user made.
func accountFor(data string) account {
	if euid := os.Geteuid(); euid != 0 {
		return account{uid: euid, gid: os.Getegid()}
	}
	if uid, gid, ok := owner(data); ok && uid != 0 {
		return account{uid: uid, gid: gid, drop: true}
	}
	for _, name := range []string{"postgres", "nobody"} {
		if a, ok := accountNamed(name); ok {
			return a
		}
	}
	return account{uid: nobodyID, gid: nobodyID, drop: true}
}

func accountNamed(name string) (account, bool) {
	u, err := user.Lookup(name)
	if err != nil {
		return account{}, false
	}
	uid, errUID := strconv.Atoi(u.Uid)
	gid, errGID := strconv.Atoi(u.Gid)
	if errUID != nil || errGID != nil || uid <= 0 {
		return account{}, false
	}
	return account{uid: uid, gid: gid, drop: true}, true
}

func owner(path string) (int, int, bool) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, 0, false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, false
	}
	return int(st.Uid), int(st.Gid), true
}

func (a account) String() string {
	if u, err := user.LookupId(strconv.Itoa(a.uid)); err == nil {
		return u.Username
	}
	return strconv.Itoa(a.uid)
}

// take hands a file or folder to the account; for our own user it already is.
func (a account) take(path string) error {
	if !a.drop {
		return nil
	}
	if err := os.Chown(path, a.uid, a.gid); err != nil {
		return fmt.Errorf("%s cannot be handed to user %s, as which Postgres would run: choose another folder with --data", path, a)
	}
	return nil
}

// blockedAt returns the first folder on the way down to path (path included) that
// the account may not enter, or "" when it may enter all that exist.
func (a account) blockedAt(path string) string {
	if !a.drop {
		return ""
	}
	if parent := filepath.Dir(path); parent != path {
		if blocked := a.blockedAt(parent); blocked != "" {
			return blocked
		}
	}
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return "" // another problem than permission, told elsewhere
	}
	if uid, gid, ok := owner(path); ok && info.Mode().Perm()&a.enterBit(uid, gid) == 0 {
		return path
	}
	return ""
}

// enterBit is the one permission bit that decides for this account; Unix looks at
// the owner's bit alone for the owner, even where others could enter.
func (a account) enterBit(uid, gid int) os.FileMode {
	switch {
	case a.uid == uid:
		return 0o100
	case a.gid == gid:
		return 0o010
	default:
		return 0o001
	}
}
