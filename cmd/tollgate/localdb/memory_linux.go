package localdb

import "golang.org/x/sys/unix"

// memoryRoom is how many bytes fit into dir, if dir is memory and we may write to
// it; otherwise 0.
func memoryRoom(dir string) uint64 {
	var fs unix.Statfs_t
	if unix.Statfs(dir, &fs) != nil || fs.Type != unix.TMPFS_MAGIC || unix.Access(dir, unix.W_OK|unix.X_OK) != nil {
		return 0
	}
	return fs.Bavail * uint64(fs.Bsize)
}
