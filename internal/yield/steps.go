package yield

// Steps yields during long work, once in so many steps of it. It belongs to one goroutine.
// The zero Steps never yields.
type Steps struct {
	do           func() // may be nil
	every, since int
}

// Every returns Steps that call do, such as [Poller.Yield], after every n steps; never if
// do is nil.
func Every(n int, do func()) Steps { return Steps{do: do, every: n} }

// Done counts n steps that were done.
func (s *Steps) Done(n int) {
	if s.since += n; s.since >= s.every {
		s.Now()
	}
}

// Now yields at once.
func (s *Steps) Now() {
	s.since = 0
	if s.do != nil {
		s.do()
	}
}
