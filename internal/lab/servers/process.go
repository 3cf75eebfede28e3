package servers

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

// process is one run of a command, from its start until it has been waited for.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed once the process has ended and err is set
	err  error         // how it ended; read it only after done
}

// startProcess runs argv in the folder dir, as another user if one is given, and appends its output to out: a file, so
// that no goroutine copies it, and a child that outlives us is not held up by a full pipe.
func startProcess(argv []string, dir string, out *os.File, as *syscall.Credential) (*process, error) {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, out, out
	cmd.SysProcAttr = childAttr(as)
	p := &process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error)
	go p.run(started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", argv[0], err)
	}
	return p, nil
}

// run starts the command and waits for its end on one locked thread: the kernel sends the parent-death signal when the
// thread that forked the child ends, not when the process does, so that thread must live as long as the child.
func (p *process) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := p.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	p.err = p.cmd.Wait()
	close(p.done)
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// running reports whether the process has not been waited for yet.
func (p *process) running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// LimitFiles has processes that are started from now on, and this one, write no file beyond a size, as if the disk were
// full, until undo is called. Those that were started keep the limit.
func LimitFiles(bytes uint64) (undo func() error, err error) {
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
		return nil, err
	}
	limited := before
	limited.Cur = bytes
	return func() error { return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before) }, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limited)
}
