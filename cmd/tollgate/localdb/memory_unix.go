//go:build unix && !linux

package localdb

// memoryRoom is 0: only Linux has a folder that is memory.
func memoryRoom(string) uint64 { return 0 }
