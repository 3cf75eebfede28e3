// Package doctor looks at what a rankcache depends on and says what to mend.
//
// Run makes the checks one after the other, each under a deadline (doctor.go).
// The checks of Redis (redis.go, acl.go) and of Kafka (kafka.go, topics.go) only
// read; what they find is judged by pure functions (judge.go), and an error of
// a client becomes what to do about it in explain.go. No finding holds a secret.
package doctor

import (
	"context"
	"fmt"
	"time"
)

// Status is the outcome of one check.
type Status string

// Outcomes. Skip says that a check made no sense after another one failed.
const (
	OK   Status = "ok"
	Warn Status = "warn"
	Fail Status = "fail"
	Skip Status = "skip"
)

// Verdict is what a check found: the outcome and one line that says why or what
// to do.
type Verdict struct {
	Status Status `json:"status"`
	Advice string `json:"advice"`
}

// Finding is a verdict and the name of its check; its JSON is stable.
type Finding struct {
	Check string `json:"check"`
	Verdict
}

// Check is one thing to look at. Look should end soon after its context.
type Check struct {
	Name  string
	Needs string // the check without which this one makes no sense; "": none
	Look  func(context.Context) Verdict
}

// lookGrace is how long a check may take beyond its deadline to say why.
const lookGrace = time.Second

// Run makes the checks in order, each within the deadline, and gives every
// finding to found as it comes. A check that does not end is left behind.
func Run(ctx context.Context, checks []Check, deadline time.Duration, found func(Finding)) {
	failed := map[string]bool{}
	for _, c := range checks {
		v := Verdict{Skip, "not looked at: " + c.Needs + " failed"}
		if !failed[c.Needs] {
			v = look(ctx, c, deadline)
		}
		failed[c.Name] = v.Status == Fail || v.Status == Skip
		found(Finding{c.Name, v})
	}
}

func look(ctx context.Context, c Check, deadline time.Duration) Verdict {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	done := make(chan Verdict, 1)
	go func() { done <- c.Look(ctx) }()
	select {
	case v := <-done:
		return v
	case <-time.After(deadline + lookGrace):
		return failf("no answer within %v", deadline)
	}
}

func okf(format string, args ...any) Verdict   { return Verdict{OK, fmt.Sprintf(format, args...)} }
func warnf(format string, args ...any) Verdict { return Verdict{Warn, fmt.Sprintf(format, args...)} }
func failf(format string, args ...any) Verdict { return Verdict{Fail, fmt.Sprintf(format, args...)} }
