//go:build unix && !linux

package servers

import "syscall"

// childAttr puts the child into a process group of its own; see the Linux form, which can do more.
func childAttr(as *syscall.Credential) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Credential: as}
}
