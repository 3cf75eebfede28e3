package sidecar

import (
	"fmt"

	"rankcache"
)

var (
	errNotWhole = fmt.Errorf("%w: dense ranks need the whole board in memory, and this one is not held here or not open", rankcache.ErrRankMode)
	errDeep     = fmt.Errorf("%w: dense ranks are counted over the %d best members, and more have a better score", rankcache.ErrRankMode, rankcache.MaxDense)
)

// refuseDeep sets the errors of rows that are too deep for dense ranks.
func (a *PageAnswer) refuseDeep(mode rankcache.RankMode) {
	if mode != rankcache.Dense {
		return
	}
	if a.Ahead.Scores < 0 {
		a.Err = errDeep
	}
	if a.Own.Ahead.Scores < 0 {
		a.Own.Err = errDeep
	}
}

// aheadOn counts the members with a better score than that of a row of the top. The top
// begins with the best row, so it has all of them.
func aheadOn(top *rankcache.Top, row int) rankcache.Ahead {
	score := top.Entries[row].Score
	for row > 0 && top.Entries[row-1].Score == score {
		row--
	}
	return rankcache.Ahead{Members: row, Scores: -1}
}
