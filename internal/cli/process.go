package cli

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/pflag"
)

const (
	lastWords = time.Second // how long an end waits for the reader of standard error
	// overdue is how long after its drain a process ends by force: a hang in C, as in librdkafka, has no deadline.
	overdue   = 10 * time.Second
	maxStacks = maxLogged / 2 // bounds what is told of one that hangs, in bytes
)

// process is what a command knows of its process: standard error, never waited for, and its end.
type process struct {
	logQueue
	lasts atomic.Bool  // it is a long-running one
	drain atomic.Int64 // how long it answers after its signal
}

func (p *process) Write(text []byte) (int, error) {
	if !p.lasts.Load() {
		return p.to.Write(text)
	}
	p.enqueue(text)
	return len(text), nil
}

// begin makes the command with these flags a long-running one. Whoever reads its log may go.
func (p *process) begin(flags *pflag.FlagSet) {
	if drain, err := flags.GetDuration("drain"); err == nil { // not all have it
		p.drain.Store(int64(drain))
	}
	p.lasts.Store(true)
	signal.Ignore(syscall.SIGPIPE)
}

func (p *process) exit(code int, text string) {
	said := make(chan struct{})
	go func() {
		_, _ = io.WriteString(p, text)
		p.flush()
		close(said)
	}()
	select {
	case <-said:
	case <-time.After(lastWords):
	}
	os.Exit(code)
}

// endOverdue ends a long-running process that has not ended when it should.
func (p *process) endOverdue() {
	if !p.lasts.Load() {
		return
	}
	limit := time.Duration(p.drain.Load()) + overdue
	time.AfterFunc(limit, func() {
		stacks := make([]byte, maxStacks)
		stacks = stacks[:runtime.Stack(stacks, true)]
		p.exit(ExitFailed, fmt.Sprintf("rankcache: not ended %v after the signal, ended by force; what it was at:\n%s\n", limit, stacks))
	})
}
