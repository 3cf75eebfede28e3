package profile

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"rankcache"
)

// Defaults of [Options].
const (
	DefaultBudget      = 128 << 20 // bytes
	DefaultTTL         = 30 * time.Minute
	DefaultNegativeTTL = time.Minute
	DefaultStaleFor    = 24 * time.Hour // nicks survive a service that is down all day
	DefaultDeadline    = 80 * time.Millisecond
	DefaultCallTimeout = time.Second
	DefaultRetry       = 500 * time.Millisecond
	DefaultBatch       = 100    // members
	DefaultCalls       = 8      // concurrent
	DefaultPending     = 50_000 // members
)

const minBudget = 4 << 20 // covers the overhead of an empty cache

// Options bound the memory, the age and the loads of cached profiles. The zero value of each field selects its default.
type Options struct {
	Budget int64 // the heap, in bytes, that the cache may take
	// TTL is how long a profile is fresh, less a random tenth at most: those loaded together don't expire together.
	TTL         time.Duration
	NegativeTTL time.Duration // the TTL of members that the service does not know
	// StaleFor is how long after its TTL a profile is served while it is refreshed. Then it counts as absent.
	StaleFor     time.Duration
	Deadline     time.Duration // the longest that a page waits for profiles
	CallTimeout  time.Duration // bounds one call of the source, which continues when its pages have stopped waiting
	Retry        time.Duration // the pause after a failed load, and before a kept page looks up missing profiles again
	Batch, Calls int           // bounds the members of one call, Calls the concurrent calls
	// Pending bounds the members that wait to be loaded. Further members are not loaded, and their pages do not wait.
	Pending int
}

func (o Options) withDefaults() Options {
	return Options{
		Budget:      cmp.Or(o.Budget, DefaultBudget),
		TTL:         cmp.Or(o.TTL, DefaultTTL),
		NegativeTTL: cmp.Or(o.NegativeTTL, DefaultNegativeTTL),
		StaleFor:    cmp.Or(o.StaleFor, DefaultStaleFor),
		Deadline:    cmp.Or(o.Deadline, DefaultDeadline),
		CallTimeout: cmp.Or(o.CallTimeout, DefaultCallTimeout),
		Retry:       cmp.Or(o.Retry, DefaultRetry),
		Batch:       cmp.Or(o.Batch, DefaultBatch),
		Calls:       cmp.Or(o.Calls, DefaultCalls),
		Pending:     cmp.Or(o.Pending, DefaultPending),
	}
}

func (o Options) check() error {
	if o.Budget < minBudget {
		return fmt.Errorf("profile budget %d bytes: want at least %d", o.Budget, minBudget)
	}
	for _, d := range []struct {
		what  string
		value time.Duration
	}{
		{"TTL", o.TTL}, {"negative TTL", o.NegativeTTL}, {"stale time", o.StaleFor},
		{"deadline", o.Deadline}, {"call timeout", o.CallTimeout}, {"retry", o.Retry},
	} {
		if d.value < 0 {
			return fmt.Errorf("profile %s %v: want more than 0", d.what, d.value)
		}
	}
	if o.Batch < 1 || o.Batch > rankcache.MaxTop || o.Calls < 1 || o.Pending < o.Batch {
		return errors.New("profile batch, calls and pending: want at least 1, a batch of at most 500, pending of at least a batch")
	}
	return nil
}
