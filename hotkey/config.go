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
	// DefaultPromoteRate is no load for a Redis key from one sidecar, but is from a fleet of them.
	DefaultPromoteRate = 50.0 // requests/s
	DefaultResidency   = 60 * time.Second
	DefaultExitAfter   = 30 * time.Second
	DefaultCoolDown    = 15 * time.Second
	DefaultMaxBoards   = 200
	DefaultEntries     = 100 // covers a page of 50 entries from rank 51 on
	DefaultRefresh     = time.Second
	DefaultStale       = 10 * time.Second
)

const (
	VerdictAge = 30 * time.Second // the life of a verdict in Redis, and how long it is used after it was first seen
	Idle       = 10 * time.Second // how long a page is refreshed after it was last read

	promoteSeconds = 2 // the seconds, of the last 3, in which a board has to reach its promote rate
	// maxExitRate demotes a board promoted by its own rate; half the promote rate if that is less.
	maxExitRate = 25.0 // requests/s over 10 seconds
	// listedRate and listedExitRate promote and demote boards that the fleet's verdict lists. A page costs one read of
	// Redis a second, so a listed board is promoted wherever it is read more often than that.
	listedRate, listedExitRate = 2.0, 1.0    // requests/s over 10 seconds
	fetchTimeout               = time.Second // bounds one read of pages
)

// Config sets when boards become hot and how their pages are kept. Zero fields take the defaults of this package.
type Config struct {
	// PromoteRate, in requests/s of this sidecar, promotes a board that reaches it in two of three seconds.
	PromoteRate float64
	Residency   time.Duration // how long a board stays promoted at least, unless the operator or the cap demotes it
	ExitAfter   time.Duration // how long a board stays below its exit rate until it is demoted
	CoolDown    time.Duration // how long after its demotion a board is not promoted again
	MaxBoards   int           // bounds the promoted boards; a hotter board evicts the coldest

	Entries int           // the length of a hot board's page, at most rankcache.MaxTop
	Refresh time.Duration // the interval, ± 10 %, of reading a page from Redis while it has readers
	Stale   time.Duration // the maximum age of a page that is served while Redis can't be read
}

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

// Check returns an error that names every invalid setting. Zero fields count as their defaults.
func (c Config) Check() error {
	c = c.withDefaults()
	var errs []error
	want := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf("hot boards: "+format, args...))
		}
	}
	want(c.PromoteRate >= 1, "promote rate %v/s: want at least 1", c.PromoteRate)
	want(c.MaxBoards > 0 && c.MaxBoards <= maxCounted, "%d boards at most: want 1 to %d", c.MaxBoards, maxCounted)
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
