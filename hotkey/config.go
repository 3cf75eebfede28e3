package hotkey

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"rankcache"
)

// Defaults of [Config].
const (
	// DefaultPromoteRate is no load for a Redis key from one sidecar, but is from a
	// fleet of them.
	DefaultPromoteRate = 50.0 // requests/s
	DefaultResidency   = 60 * time.Second
	DefaultExitAfter   = 30 * time.Second
	DefaultCoolDown    = 15 * time.Second
	DefaultMaxBoards   = 200
	// DefaultEntries covers a page of 50 entries from rank 51 on.
	DefaultEntries = 100
	DefaultRefresh = time.Second
	DefaultStale   = 10 * time.Second
)

const (
	// VerdictAge is the life of a verdict in Redis, and how long it is used after it was
	// first seen.
	VerdictAge = 30 * time.Second
	// Idle is how long a page is refreshed after it was last read.
	Idle = 10 * time.Second

	// promoteSeconds are the seconds, of the last 3, in which a board has to reach its
	// promote rate.
	promoteSeconds = 2
	// maxExitRate demotes a board promoted by its own rate that stays below it; where half
	// the promote rate is less, that does.
	maxExitRate = 25.0 // requests/s over 10 seconds
	// listedRate and listedExitRate promote and demote boards that the fleet's verdict
	// lists. A page costs one read of Redis a second, so a listed board is promoted wherever
	// it is read more often than that.
	listedRate, listedExitRate = 2.0, 1.0 // requests/s over 10 seconds
	// fetchTimeout bounds one read of pages.
	fetchTimeout = time.Second
)

// Config sets when boards become hot and how their pages are kept. Zero fields take
// the defaults of this package.
type Config struct {
	// PromoteRate, in requests/s of this sidecar, promotes a board that reaches it in two
	// of three seconds.
	PromoteRate float64
	// Residency is how long a board stays promoted at least, unless the operator
	// or the cap demotes it.
	Residency time.Duration
	// ExitAfter is how long a board stays below its exit rate until it is demoted.
	ExitAfter time.Duration
	// CoolDown is how long after its demotion a board is not promoted again.
	CoolDown time.Duration
	// MaxBoards bounds the promoted boards; a hotter board evicts the coldest.
	MaxBoards int

	// Entries is the length of a hot board's page, at most rankcache.MaxTop.
	Entries int
	// Refresh is the interval, ± 10 %, of reading a page from Redis while it has
	// readers.
	Refresh time.Duration
	// Stale is the maximum age of a page that is served while Redis can't be read.
	Stale time.Duration
}

// withDefaults returns c with its zero fields filled.
func (c Config) withDefaults() Config {
	c.PromoteRate = cmp.Or(c.PromoteRate, DefaultPromoteRate)
	c.Residency = cmp.Or(c.Residency, DefaultResidency)
	c.ExitAfter = cmp.Or(c.ExitAfter, DefaultExitAfter)
	c.CoolDown = cmp.Or(c.CoolDown, DefaultCoolDown)
	c.MaxBoards = cmp.Or(c.MaxBoards, DefaultMaxBoards)
	c.Entries = cmp.Or(c.Entries, DefaultEntries)
	c.Refresh = cmp.Or(c.Refresh, DefaultRefresh)
	c.Stale = cmp.Or(c.Stale, DefaultStale)
	return c
}

// Check returns an error that names every invalid setting. Zero fields count as
// their defaults.
func (c Config) Check() error {
	c = c.withDefaults()
	var errs []error
	want := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf("hot boards: "+format, args...))
		}
	}
	want(c.PromoteRate >= 1, "promote rate %v/s: want at least 1", c.PromoteRate)
	want(c.MaxBoards > 0 && c.MaxBoards <= maxNamed, "%d boards at most: want 1 to %d", c.MaxBoards, maxNamed)
	want(c.Entries > 0 && c.Entries <= rankcache.MaxTop, "%d entries: want 1 to %d", c.Entries, rankcache.MaxTop)
	for _, d := range []struct {
		what string
		d    time.Duration
	}{
		{"residency", c.Residency}, {"exit after", c.ExitAfter}, {"cool-down", c.CoolDown}, {"refresh", c.Refresh}, {"stale", c.Stale},
	} {
		want(d.d > 0, "%s %v: want more than 0", d.what, d.d)
	}
	want(c.Refresh < c.Stale, "refresh %v: want less than stale %v", c.Refresh, c.Stale)
	return errors.Join(errs...)
}
