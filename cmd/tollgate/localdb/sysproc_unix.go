//go:build unix && !linux

package localdb

import "syscall"

// sysProc is how children are started: as the account and in a process group of
// their own (a terminal's Ctrl-C reaches only us, and we stop Postgres last). No
// signal follows our death on these systems; the next start replaces what is left.
func (a account) sysProc(syscall.Signal) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true}
	if a.drop {
		attr.Credential = &syscall.Credential{Uid: uint32(a.uid), Gid: uint32(a.gid)}
	}
	return attr
}
