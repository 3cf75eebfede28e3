package servers

import "syscall"

// childAttr puts the child into a process group of its own, so that an interrupt typed at the terminal reaches only us
// and we decide in which order things end, and has the kernel end it should we die without a chance to (a test binary
// that panics on its time-out runs no cleanup).
func childAttr(as *syscall.Credential) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL, Credential: as}
}
