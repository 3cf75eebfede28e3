package writer

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"
)

// erasTimeout bounds one reading of the eras. It outlives the post that began it.
const erasTimeout = 5 * time.Second

// eras are those of all masters, for which calls that change durable boards are made: the scripts answer
// "s" on a server with another one. It is the list, and not the era of the board's master, because
// a board may move to another master meanwhile. It is safe for concurrent use.
type eras struct {
	known   atomic.Pointer[string] // all of them; nil until they are needed
	reading singleflight.Group
}

// list returns the eras as the scripts take them; before they were read one that no server has.
func (e *eras) list() string {
	if known := e.known.Load(); known != nil {
		return *known
	}
	return "unknown"
}

// take has calls be made for the eras of the masters from now on.
func (e *eras) take(all []master) {
	list := make([]string, len(all))
	for i, m := range all {
		list[i] = string(m.era)
	}
	e.known.Store(new(strings.Join(list, " ")))
}

// fenced is called after a script has answered that a server has another era. It returns when the eras
// were read again, or ctx ends. After an error they are what they were.
func (a *adopter) fenced(ctx context.Context) error {
	done := a.eras.reading.DoChan("", func() (any, error) {
		work, cancel := context.WithTimeout(context.WithoutCancel(ctx), erasTimeout)
		defer cancel()
		all, err := a.masters(work)
		if err == nil {
			a.eras.take(all)
		}
		return nil, err
	})
	select {
	case result := <-done:
		return result.Err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
