package serve

import (
	"github.com/spf13/pflag"

	"rankcache/hotkey"
)

func registerHot(flags *pflag.FlagSet, on *bool, c *hotkey.Config) {
	flags.BoolVar(on, "hot", true, "keep the top pages of hot boards locally")
	flags.Float64Var(&c.PromoteRate, "hot-promote-rate", hotkey.DefaultPromoteRate, "own `requests/s` that promote a board")
	flags.DurationVar(&c.Residency, "hot-residency", hotkey.DefaultResidency, "least time that a board stays hot")
	flags.DurationVar(&c.ExitAfter, "hot-exit-after", hotkey.DefaultExitAfter, "how long a board must stay below its exit rate")
	flags.DurationVar(&c.CoolDown, "hot-cool-down", hotkey.DefaultCoolDown, "how long a demoted board is not promoted again")
	flags.IntVar(&c.MaxBoards, "hot-max-boards", hotkey.DefaultMaxBoards, "most hot `boards`; a hotter one evicts the coldest")
	flags.IntVar(&c.Entries, "hot-entries", hotkey.DefaultEntries, "`rows` of a hot board's page")
	flags.DurationVar(&c.Refresh, "hot-refresh", hotkey.DefaultRefresh, "how often a page is refreshed while it is requested")
	flags.DurationVar(&c.Stale, "hot-stale", hotkey.DefaultStale, "greatest age of a page served while Redis can't be read")
}
