package adminapi

import (
	"cmp"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"rankcache"
	"rankcache/sidecar/encode"
)

// Bounds of the boards that one answer of /status lists.
const (
	defaultBoards = 100
	maxBoards     = rankcache.MaxTop
)

// boardStates are the states that boards are counted by.
var boardStates = []rankcache.BoardState{rankcache.StateWaiting, rankcache.StateReplaying, rankcache.StateChecking,
	rankcache.StateSnapshot, rankcache.StateStale, rankcache.StateOpen, rankcache.StateLost, rankcache.StateGivenUp}

// boardFilter reports which boards an answer of /status lists.
type boardFilter struct {
	start, limit int
	state        rankcache.BoardState // empty: any
	match        string               // a [path.Match] pattern; empty: any
}

func parseFilter(query url.Values) (f boardFilter, p *encode.Problem) {
	f = boardFilter{limit: defaultBoards, state: rankcache.BoardState(query.Get("state")), match: query.Get("match")}
	if text := query.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if f.limit = n; err != nil || n < 0 || n > maxBoards {
			return f, encode.BadArgument("limit", fmt.Sprintf("want 0 to %d", maxBoards))
		}
	}
	if text := query.Get("start"); text != "" {
		n, err := strconv.Atoi(text)
		if f.start = n; err != nil || n < 0 {
			return f, encode.BadArgument("start", "want a number, 0 or more")
		}
	}
	if f.state != "" && !slices.Contains(boardStates, f.state) {
		return f, encode.BadArgument("state", fmt.Sprintf("want one of %q", boardStates))
	}
	if _, err := path.Match(f.match, ""); err != nil || len(f.match) > rankcache.MaxBoardLen {
		return f, encode.BadArgument("match", "want a pattern such as gift*, with *, ? and [a-z]")
	}
	return f, nil
}

// page returns the boards that are listed, those in trouble first, and how many match. It sorts all.
func (f *boardFilter) page(all []rankcache.BoardStatus) (page []boardBody, matched int) {
	all = slices.DeleteFunc(all, func(b rankcache.BoardStatus) bool { return !f.matches(&b) })
	slices.SortFunc(all, func(a, b rankcache.BoardStatus) int {
		return cmp.Or(rankcache.CompareStatus(&a, &b), strings.Compare(string(a.Board), string(b.Board)))
	})
	page = []boardBody{}
	rest := all[min(f.start, len(all)):]
	for _, b := range rest[:min(f.limit, len(rest))] {
		page = append(page, boardBodyOf(b))
	}
	return page, len(all)
}

func (f *boardFilter) matches(b *rankcache.BoardStatus) bool {
	if f.state != "" && b.State != f.state {
		return false
	}
	ok, _ := path.Match(f.match, string(b.Board)) // the pattern was checked
	return ok || f.match == ""
}

// sumBoards adds the totals of all boards, whatever is listed.
func sumBoards(body map[string]any, all []rankcache.BoardStatus) {
	states := make(map[rankcache.BoardState]int)
	for _, s := range boardStates {
		states[s] = 0
	}
	rate, again := 0.0, 0
	for i := range all {
		if all[i].LostMembers > 0 && all[i].State != rankcache.StateLost {
			again++
		}
		states[all[i].State]++
		rate += all[i].Rate
	}
	body["boards_total"], body["boards_open"], body["boards_by_state"] = len(all), states[rankcache.StateOpen], states
	body["updates_per_s"] = rate
	if again > 0 {
		body["boards_begun_again"] = again
	}
}

func boardSet(boards []boardBody) map[rankcache.BoardID]bool {
	set := make(map[rankcache.BoardID]bool, len(boards))
	for i := range boards {
		set[boards[i].Board] = true
	}
	return set
}
