package localdb

import "syscall"

// sysProc is how children are started: as the account, in a process group of their
// own (a terminal's Ctrl-C reaches only us, and we stop Postgres last), and tied
// to our life: when the thread that started the child ends, the child gets the
// signal. That thread must therefore stay locked until the child has ended.
func (a account) sysProc(onOurDeath syscall.Signal) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: onOurDeath}
	if a.drop {
		attr.Credential = &syscall.Credential{Uid: uint32(a.uid), Gid: uint32(a.gid)}
	}
	return attr
}
