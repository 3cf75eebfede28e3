package redisclock

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// server is a clock that is asked.
type server struct {
	ahead, trip time.Duration // of its clock; of the round trip
	err         error
	asked       int
}

func (s *server) time(context.Context) (time.Time, error) {
	s.asked++
	time.Sleep(s.trip / 2)
	at := time.Now().Add(s.ahead).Round(0)
	time.Sleep(s.trip - s.trip/2)
	return at, s.err
}

func TestComparisonsOfClocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{ahead: 3 * time.Second, trip: 200 * time.Millisecond}
		c := &Clock{Local: time.Now, ask: s.time}
		expect := func(when string, ahead time.Duration, asked int) {
			t.Helper()
			if got := time.Until(c.Now()); got != ahead || s.asked != asked {
				t.Errorf("%s: %v ahead, want %v; asked %d times, want %d", when, got, ahead, s.asked, asked)
			}
		}
		expect("before the first", 0, 0)
		if err := c.Check(0); err != nil {
			t.Error("before the first:", err)
		}
		compare := func() error { return c.Compare(t.Context(), Good) }
		if err := compare(); err != nil {
			t.Fatal(err)
		}
		expect("compared", s.ahead, 1)
		for most, ok := range map[time.Duration]bool{2899 * time.Millisecond: false, 2900 * time.Millisecond: true} { // half the round trip
			var wrong *Wrong
			if err := c.Check(most); (err == nil) != ok || err != nil && (!errors.As(err, &wrong) || wrong.Ahead != -s.ahead) {
				t.Errorf("at most %v: %v", most, err)
			}
		}
		time.Sleep(Good - s.trip)
		_ = compare()
		expect("it holds", s.ahead, 1)
		s.ahead = -time.Second
		time.Sleep(s.trip)
		_ = compare()
		expect("another server", s.ahead, 2)

		c.Local = func() time.Time { return time.Now().Round(0).Add(time.Hour) } // set, while the monotonic clock goes on
		_ = compare()
		if err := c.Check(59 * time.Minute); err == nil || s.asked != 3 {
			t.Errorf("a clock that was set: asked %d times, %v", s.asked, err)
		}
		c.Local = time.Now
		s.err = errors.New("away")
		if err := c.Compare(t.Context(), 0); !errors.Is(err, s.err) {
			t.Error(err)
		}
		s.err, s.trip = nil, maxTrip+time.Millisecond
		if err := c.Agrees(t.Context(), 0, time.Hour); err == nil {
			t.Error("an answer that tells nothing is taken")
		}
	})
}

// Run compares so often that what it knows always holds.
func TestRunKeepsAComparison(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{trip: 200 * time.Millisecond}
		c := &Clock{Local: time.Now, ask: s.time}
		ctx, stop := context.WithCancel(t.Context())
		go c.Run(ctx)
		time.Sleep(time.Second)
		for range 100 {
			time.Sleep(time.Second)
			if last := c.last.Load(); !last.holds(time.Now(), Good) {
				t.Fatal("it has grown old")
			}
		}
		stop()
		synctest.Wait()
	})
}
