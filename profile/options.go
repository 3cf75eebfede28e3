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
	DefaultStaleFor    = 24 * time.Hour // a service that is down all day costs no nick
	DefaultDeadline    = 80 * time.Millisecond
	DefaultCallTimeout = time.Second
	DefaultRetry       = 500 * time.Millisecond
	DefaultBatch       = 100    // members
	DefaultCalls       = 8      // at once
	DefaultPending     = 50_000 // members
)

// minBudget leaves room for what the cache needs while it is empty.
const minBudget = 4 << 20

// Options say how much is kept, for how long, and how it is loaded. The zero
// value of each field is its default.
type Options struct {
	// Budget is the heap, in bytes, that the cache may take.
	Budget int64
	// TTL is how long a profile is fresh; up to a tenth of it is taken off, by
	// chance, so that what was loaded together does not expire together.
	TTL time.Duration
	// NegativeTTL is the TTL of "the service does not know this member".
	NegativeTTL time.Duration
	// StaleFor is how long after its TTL a profile is still served while it is
	// refreshed. Its end is the hard age, after which pages go without it.
	StaleFor time.Duration
	// Deadline is the longest that a page waits for profiles.
	Deadline time.Duration
	// CallTimeout bounds one call of the source, which goes on behind pages
	// that have stopped waiting.
	CallTimeout time.Duration
	// Retry is how soon a member is asked for again after a load that failed,
	// and how soon a kept page looks again for what it misses.
	Retry time.Duration
	// Batch is the most members of one call, Calls the most calls at once.
	Batch, Calls int
	// Pending is the most members that may wait to be loaded. Those beyond it
	// are not asked for, and their pages do not wait.
	Pending int
}

// withDefaults returns the options in force.
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

// check names the first option that cannot be.
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
