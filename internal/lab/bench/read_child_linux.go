package bench

import "syscall"

// endWithUs has the kernel end a child should we die without a chance to.
func endWithUs() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM} }
