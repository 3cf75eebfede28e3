package health

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

var errAway = errors.New("connection refused")

// TestStates walks through an outage second by second.
func TestNeedStates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		d := NewNeed(10 * time.Second)
		expect := func(when string, state State, since time.Duration) {
			t.Helper()
			s := d.Status()
			if s.State != state || s.Since.Sub(begun) != since {
				t.Errorf("%s, at %v: %s since %v, want %s since %v", when, time.Since(begun), s.State, s.Since.Sub(begun), state, since)
			}
		}
		expect("before the first call", Unknown, 0)
		time.Sleep(time.Second)
		d.Observe(time.Second, errAway)
		expect("never answered", Failing, 0)
		time.Sleep(time.Second)
		d.Observe(4*time.Millisecond, nil)
		expect("answered", OK, 2*time.Second)

		time.Sleep(time.Second)
		d.Observe(0, errAway)
		expect("one failure", OK, 2*time.Second)
		time.Sleep(time.Second)
		d.Observe(0, nil)
		time.Sleep(9 * time.Second)
		expect("one failure among answers", OK, 2*time.Second)
		d.Observe(time.Second, errAway)
		time.Sleep(time.Second)
		expect("failures since a call that began two seconds ago", Failing, 12*time.Second)
		time.Sleep(119 * time.Second)
		expect("a failure is remembered longer than an answer", Failing, 12*time.Second)
		time.Sleep(2 * time.Second)
		expect("but not for ever", Unknown, 133*time.Second)

		d.Observe(4*time.Millisecond, nil)
		expect("answered again", OK, 135*time.Second)
		time.Sleep(11 * time.Second)
		expect("no calls", Unknown, 145*time.Second)
		d.Observe(0, errAway)
		expect("unknown, then a failure", Failing, 146*time.Second)
		d.Off("not configured")
		expect("off", Off, 146*time.Second)
		d.Observe(0, nil)
		expect("on again", OK, 146*time.Second)
	})
}

func TestNeedOnTheWire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		text := func(d *Need) string {
			data, err := json.Marshal(d.Status())
			if err != nil {
				t.Fatal(err)
			}
			return string(data)
		}
		d := NewNeed(time.Minute)
		if got, want := text(d), `{"state":"unknown","since":"2000-01-01T00:00:00Z","last_ok":null,"latency_ms":null}`; got != want {
			t.Errorf("%s, want %s", got, want)
		}
		d.Observe(8*time.Millisecond, nil)
		d.Observe(0, nil) // not measured
		d.Observe(16*time.Millisecond, nil)
		d.Observe(time.Minute, errAway) // a wait without an answer is no latency
		if got, want := text(d), `{"state":"failing","since":"1999-12-31T23:59:00Z","last_ok":"2000-01-01T00:00:00Z","latency_ms":9,"last_error":"connection refused","last_error_at":"2000-01-01T00:00:00Z"}`; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	})
}

// TestNeedKeepsSecrets: errors are written by libraries and by other services.
func TestNeedKeepsSecrets(t *testing.T) {
	d := NewNeed(time.Minute)
	for text, want := range map[string]string{
		`invalid proxy address "http://app:hush@proxy:1": x`: `invalid proxy address "http://***@proxy:1": x`,
		"redis://app:hu@sh@host:6379/0 is away":              "redis://***@***@host:6379/0 is away",
		"lookup app:hush@host: no such host":                 "lookup ***@host: no such host",
		"lookup :hush@host":                                  "lookup ***@host",
		"two\nlines\x00":                                     "two lines ",
	} {
		d.Observe(0, errors.New(text))
		if got := d.Status().LastError; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	d.Observe(200*time.Millisecond, fmt.Errorf("redis totals: %w", context.DeadlineExceeded))
	if got := d.Status().LastError; got != "no answer within 200ms" {
		t.Errorf("a deadline: %q", got)
	}
	d.Observe(0, errors.New(strings.Repeat("é", 1000)))
	if got := d.Status().LastError; len(got) > 300 || len(got) < 250 || !utf8.ValidString(got) {
		t.Errorf("%d bytes: %q", len(got), got)
	}
}

func TestNeedsAsMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := Needs{"good": NewNeed(time.Minute), "bad": NewNeed(time.Minute),
			"new": NewNeed(time.Minute), "none": NewNeed(time.Minute)}
		all["good"].Observe(250*time.Millisecond, nil)
		all["bad"].Observe(0, errAway)
		all["none"].Observe(time.Second, nil)
		all["none"].Off("")
		want := fmt.Sprintf(`
# HELP rankcache_dependency_last_success_timestamp_seconds When another service last answered this process.
# TYPE rankcache_dependency_last_success_timestamp_seconds gauge
rankcache_dependency_last_success_timestamp_seconds{dependency="good"} %d
# HELP rankcache_dependency_latency_seconds Response time of another service: a moving average.
# TYPE rankcache_dependency_latency_seconds gauge
rankcache_dependency_latency_seconds{dependency="good"} 0.25
# HELP rankcache_dependency_up 1 while another service answers this process, 0 while it does not; absent while that is not known or it is not used.
# TYPE rankcache_dependency_up gauge
rankcache_dependency_up{dependency="bad"} 0
rankcache_dependency_up{dependency="good"} 1
`, time.Now().Unix())
		reg := prometheus.NewPedanticRegistry()
		reg.MustRegister(all)
		if err := testutil.GatherAndCompare(reg, strings.NewReader(want)); err != nil {
			t.Error(err)
		}
	})
}

// TestNeedIsMetOnce: a service that is waited for is probed until it answers, and pinged then; later
// failures don't make it missing again.
func TestNeedIsMetOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var probes, pings int
		probe := func(context.Context) error {
			if probes++; probes < 4 {
				return &Refusal{errors.New("WRONGPASS invalid username-password pair")}
			}
			return nil
		}
		n := NewNeed(10*time.Second).Require(probe, func(context.Context) error { pings++; return errAway })
		all := Needs{"redis": n, "other": NewNeed(time.Minute)} // for that nobody waits
		expect := func(when string, want bool, why string) {
			t.Helper()
			if met, reason := all.Met(); met != want || reason != why {
				t.Errorf("%s: %t %q, want %t %q", when, met, reason, want, why)
			}
		}
		expect("at the start", false, "redis: it has not answered yet")
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- all.Run(ctx) }()
		synctest.Wait()
		expect("refused", false, "redis: WRONGPASS invalid username-password pair")
		if !n.Refused() {
			t.Error("it does not tell that it was refused")
		}
		time.Sleep(350 * time.Millisecond)
		synctest.Wait()
		expect("answered", true, "all that it needs has answered")
		time.Sleep(time.Minute)
		expect("away", true, "all that it needs has answered")
		if s := n.Status(); s.State != Failing || n.Refused() || probes != 4 || pings < 59 {
			t.Errorf("%+v after %d probes and %d pings", s, probes, pings)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestPingsWhenNothingElseIsAnswered: a service that answers other calls is not asked for an answer; one that does not is, each second.
func TestPingsWhenNothingElseIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var pings atomic.Int64
		n := NewNeed(10*time.Second).Require(func(context.Context) error { return nil }, func(context.Context) error { pings.Add(1); return nil })
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go n.run(ctx)
		calls := func(err error) (pinged int64) {
			before := pings.Load()
			for range 100 {
				n.Observe(0, err)
				time.Sleep(300 * time.Millisecond)
			}
			return pings.Load() - before
		}
		if n := calls(nil); n > 1 { // the first may be under way
			t.Errorf("%d pings in 30 s in which other calls were answered", n)
		}
		if n := calls(errAway); n < 28 {
			t.Errorf("%d pings in 30 s in which no other call was answered", n)
		}
		before := pings.Load()
		time.Sleep(30 * time.Second)
		if n := pings.Load() - before; n < 28 {
			t.Errorf("%d pings in 30 s without another call", n)
		}
	})
}
