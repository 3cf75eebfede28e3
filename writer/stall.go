package writer

import (
	"cmp"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// stallAfter is how long a batch may be applied, or published, before the writer tells that it does not get on.
const stallAfter = 30 * time.Second

// stall knows since when batches are in hand, and the last error. It is safe for concurrent use.
type stall struct {
	applying, publishing atomic.Pointer[time.Time] // nil: no batch
	last                 atomic.Pointer[error]
}

// take notes that a stage has a batch, until done is called.
func (s *stall) take(stage *atomic.Pointer[time.Time]) (done func()) {
	s.last.Store(nil)
	stage.Store(new(time.Now()))
	return func() { stage.Store(nil) }
}

// failed notes an error of an attempt, which it returns.
func (s *stall) failed(err error) error {
	if err != nil {
		s.last.Store(&err)
	}
	return err
}

// lasts returns for how long the batch that is longest in hand is.
func (s *stall) lasts() (longest time.Duration) {
	for _, stage := range []*atomic.Pointer[time.Time]{&s.applying, &s.publishing} {
		if since := stage.Load(); since != nil {
			longest = max(longest, time.Since(*since))
		}
	}
	return longest
}

// fault returns why the writer does not get on, nil while it does.
func (s *stall) fault() error {
	took := s.lasts()
	if took < stallAfter {
		return nil
	}
	err := errors.New("no answer")
	if last := s.last.Load(); last != nil {
		err = *last
	}
	return fmt.Errorf("commands stand still for %v: %w", took.Round(time.Second), err)
}

// Fault returns what keeps the writer from a part of its work: commands stand still, or posts are refused.
func (w *Writer) Fault() error { return cmp.Or(w.stall.fault(), w.logFault()) }
