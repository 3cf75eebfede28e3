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
	DefaultPromoteRate    = 50.0 // requests/s
	DefaultPromoteSeconds = 2    // of the last 3
	DefaultExitRate       = 25.0 // requests/s
	// A page costs one read of Redis a second, so a board listed by the verdict
	// is promoted wherever it is read more often than that.
	DefaultListedRate     = 2.0 // requests/s
	DefaultListedExitRate = 1.0 // requests/s
	DefaultResidency      = 60 * time.Second
	DefaultExitAfter      = 30 * time.Second
	DefaultCoolDown       = 15 * time.Second
	DefaultMaxBoards      = 200
	// DefaultVerdictAge is the life of a verdict in Redis.
	DefaultVerdictAge = 30 * time.Second

	// DefaultEntries covers a page of 50 entries from rank 51 on.
	DefaultEntries      = 100
	DefaultRefresh      = time.Second
	DefaultFetchTimeout = time.Second
	DefaultIdle         = 10 * time.Second
	DefaultStale        = 10 * time.Second
)

// Config sets when boards become hot and how their pages are kept. Zero fields take
// the defaults of this package.
type Config struct {
	// PromoteRate, in requests/s of this sidecar, promotes a board that reaches
	// it in PromoteSeconds of the last 3 seconds.
	PromoteRate    float64
	PromoteSeconds int
	// ExitRate, in requests/s over 10 seconds, demotes a board promoted by its
	// own rate that stays below it for ExitAfter.
	ExitRate float64
	// ListedRate and ListedExitRate are the same for boards that the fleet's
	// verdict lists, over the last 10 seconds.
	ListedRate, ListedExitRate float64
	// Residency is how long a board stays promoted at least, unless the operator
	// or the cap demotes it.
	Residency time.Duration
	ExitAfter time.Duration
	// CoolDown is how long after its demotion a board is not promoted again.
	CoolDown time.Duration
	// MaxBoards bounds the promoted boards; a hotter board evicts the coldest.
	MaxBoards int
	// VerdictAge is how long a verdict is used after it was first seen.
	VerdictAge time.Duration

	// Entries is the length of a hot board's page, at most rankcache.MaxTop.
	Entries int
	// Refresh is the interval, ± 10 %, of reading a page from Redis while it has
	// readers.
	Refresh time.Duration
	// FetchTimeout bounds one read of pages.
	FetchTimeout time.Duration
	// Idle is how long a page is refreshed after it was last read.
	Idle time.Duration
	// Stale is the maximum age of a page that is served while Redis can't be read.
	Stale time.Duration
}

// withDefaults returns c with its zero fields filled.
func (c Config) withDefaults() Config {
	c.PromoteRate = cmp.Or(c.PromoteRate, DefaultPromoteRate)
	c.PromoteSeconds = cmp.Or(c.PromoteSeconds, DefaultPromoteSeconds)
	c.ExitRate = cmp.Or(c.ExitRate, min(DefaultExitRate, c.PromoteRate/2))
	c.ListedRate = cmp.Or(c.ListedRate, DefaultListedRate)
	c.ListedExitRate = cmp.Or(c.ListedExitRate, min(DefaultListedExitRate, c.ListedRate/2))
	c.Residency = cmp.Or(c.Residency, DefaultResidency)
	c.ExitAfter = cmp.Or(c.ExitAfter, DefaultExitAfter)
	c.CoolDown = cmp.Or(c.CoolDown, DefaultCoolDown)
	c.MaxBoards = cmp.Or(c.MaxBoards, DefaultMaxBoards)
	c.VerdictAge = cmp.Or(c.VerdictAge, DefaultVerdictAge)
	c.Entries = cmp.Or(c.Entries, DefaultEntries)
	c.Refresh = cmp.Or(c.Refresh, DefaultRefresh)
	c.FetchTimeout = cmp.Or(c.FetchTimeout, DefaultFetchTimeout)
	c.Idle = cmp.Or(c.Idle, DefaultIdle)
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
	want(c.PromoteSeconds >= 1 && c.PromoteSeconds <= burstSeconds, "promote seconds %d: want 1 to %d", c.PromoteSeconds, burstSeconds)
	want(c.ExitRate > 0 && c.ExitRate < c.PromoteRate, "exit rate %v/s: want more than 0 and less than the promote rate %v/s", c.ExitRate, c.PromoteRate)
	want(c.ListedExitRate > 0 && c.ListedExitRate < c.ListedRate, "listed exit rate %v/s: want more than 0 and less than the listed rate %v/s", c.ListedExitRate, c.ListedRate)
	want(c.MaxBoards > 0 && c.MaxBoards <= maxNamed, "%d boards at most: want 1 to %d", c.MaxBoards, maxNamed)
	want(c.Entries > 0 && c.Entries <= rankcache.MaxTop, "%d entries: want 1 to %d", c.Entries, rankcache.MaxTop)
	for _, d := range []struct {
		what string
		d    time.Duration
	}{
		{"residency", c.Residency}, {"exit after", c.ExitAfter}, {"cool-down", c.CoolDown}, {"verdict age", c.VerdictAge},
		{"refresh", c.Refresh}, {"fetch timeout", c.FetchTimeout}, {"idle", c.Idle}, {"stale", c.Stale},
	} {
		want(d.d > 0, "%s %v: want more than 0", d.what, d.d)
	}
	want(c.Refresh < c.Stale, "refresh %v: want less than stale %v", c.Refresh, c.Stale)
	return errors.Join(errs...)
}
