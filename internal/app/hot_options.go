package app

import (
	"github.com/spf13/pflag"

	"rankcache/hotkey"
)

// registerHot registers the settings of the hot tier.
func registerHot(flags *pflag.FlagSet, on *bool, c *hotkey.Config) {
	flags.BoolVar(on, "hot", true, "keep the top pages of hot boards locally")
	flags.Float64Var(&c.PromoteRate, "hot-promote-rate", hotkey.DefaultPromoteRate, "own `requests/s` that promote a board")
	flags.IntVar(&c.PromoteSeconds, "hot-promote-seconds", hotkey.DefaultPromoteSeconds, "in how many of the last 3 `seconds`")
	flags.Float64Var(&c.ExitRate, "hot-exit-rate", hotkey.DefaultExitRate, "own `requests/s` below which a board promoted by them cools down")
	flags.Float64Var(&c.ListedRate, "hot-listed-rate", hotkey.DefaultListedRate, "own `requests/s` that promote a board which the verdict lists")
	flags.Float64Var(&c.ListedExitRate, "hot-listed-exit-rate", hotkey.DefaultListedExitRate, "own `requests/s` below which such a board cools down")
	flags.DurationVar(&c.Residency, "hot-residency", hotkey.DefaultResidency, "least time that a board stays hot")
	flags.DurationVar(&c.ExitAfter, "hot-exit-after", hotkey.DefaultExitAfter, "how long a board must stay below its exit rate")
	flags.DurationVar(&c.CoolDown, "hot-cool-down", hotkey.DefaultCoolDown, "how long a demoted board is not promoted again")
	flags.IntVar(&c.MaxBoards, "hot-max-boards", hotkey.DefaultMaxBoards, "most hot `boards`; a hotter one evicts the coldest")
	flags.DurationVar(&c.VerdictAge, "hot-verdict-age", hotkey.DefaultVerdictAge, "how long a verdict of the fleet counts")
	flags.IntVar(&c.Entries, "hot-entries", hotkey.DefaultEntries, "`rows` of a hot board's page")
	flags.DurationVar(&c.Refresh, "hot-refresh", hotkey.DefaultRefresh, "how often a page is read ahead while it is asked for")
	flags.DurationVar(&c.FetchTimeout, "hot-fetch-timeout", hotkey.DefaultFetchTimeout, "deadline of one read of pages")
	flags.DurationVar(&c.Idle, "hot-idle", hotkey.DefaultIdle, "how long a page is kept fresh after it was last asked for")
	flags.DurationVar(&c.Stale, "hot-stale", hotkey.DefaultStale, "greatest age of a page served while Redis can't be read")
}
