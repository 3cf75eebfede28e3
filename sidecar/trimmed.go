package sidecar

import (
	"context"
	"strings"
	"sync"
	"time"

	"rankcache"
	"rankcache/rooms"
)

const (
	scoreTime = 10 * time.Second // how long the score of a member without a rank is kept
	maxScores = 25_000           // how many are kept of the newer half, and of the older one: some 10 MB in all
)

// trimmed finds the scores of members without a rank, on boards whose class keeps the best members in the sorted set
// and the scores of all beside it. It asks for each once in scoreTime.
type trimmed struct {
	next    *copies
	tiers   func() *rooms.Tiers
	flights *flights
	scores  recent[keptScore]
}

// keptScore is a member's score at a moment of the board, if it had any.
type keptScore struct {
	score float64
	has   bool
	state rankcache.State
	at    time.Time
}

func (t *trimmed) read(ctx context.Context, qs []rankcache.Query, as []rankcache.Answer, at []int) {
	t.next.read(ctx, qs, as, at)
	var lacking []int
	for _, i := range at {
		if as[i].Shards != nil || len(as[i].Own) == 0 && qs[i].Range == nil {
			continue
		}
		if t.wantsScores(&qs[i], &as[i]) {
			lacking = append(lacking, i)
		}
		if qs[i].Range != nil {
			t.lookBeyond(&qs[i], &as[i])
		}
	}
	if len(lacking) > 0 {
		t.addAllScores(ctx, qs, as, lacking)
	}
}

// addAllScores sets the scores of members without a rank, in the answers at some places.
func (t *trimmed) addAllScores(ctx context.Context, qs []rankcache.Query, as []rankcache.Answer, at []int) {
	var scores sync.WaitGroup
	for _, i := range at {
		scores.Go(func() { t.addScores(ctx, &qs[i], &as[i]) })
	}
	scores.Wait()
}

// addScores sets the scores, up to scoreTime old within q's bounds, of members without a rank.
func (t *trimmed) addScores(ctx context.Context, q *rankcache.Query, a *rankcache.Answer) {
	ask := *q
	ask.Start, ask.Limit, ask.Members, ask.Around, ask.Gap, ask.Mode, ask.Percentile, ask.Trimmed = 0, 0, nil, 0, false, rankcache.Ordinal, false, true
	var places []int
	for i := range a.Own {
		if own := &a.Own[i]; lacksScore(own) && !t.look(q, own) {
			ask.Members, places = append(ask.Members, own.Member), append(places, i)
		}
	}
	if len(ask.Members) == 0 {
		return
	}
	found := t.flights.fresh(ctx, &ask)
	if found.Err == nil {
		t.keep(rankcache.BoardID(strings.Clone(string(q.Board))), &found, asOf(&found, t.flights.lags))
	}
	for n, i := range places {
		if own := &a.Own[i]; found.Err != nil {
			own.Err = found.Err
		} else {
			own.Score, own.Trimmed = found.Own[n].Score, found.Own[n].Trimmed
		}
	}
}

// lookBeyond sets whether q's range reaches below the last member of the sorted set, where others may be.
func (t *trimmed) lookBeyond(q *rankcache.Query, a *rankcache.Answer) {
	if a.Err != nil {
		return
	}
	below := a.Start - q.Start // rows worse than the range
	if q.Order == rankcache.Descending {
		below = a.Members - below - a.Matches
	}
	n := t.tiers().Trim(q.Board)
	a.Beyond = n > 0 && a.Members >= n && below == 0
}

// wantsScores reports whether members of an answer to q may have scores, but have no rank.
func (t *trimmed) wantsScores(q *rankcache.Query, a *rankcache.Answer) bool {
	if a.Err != nil || q.CopiesOnly || q.RanksOnly {
		return false
	}
	for i := range a.Own {
		if lacksScore(&a.Own[i]) {
			return t.tiers().Trims(q.Board)
		}
	}
	return false
}

func lacksScore(own *rankcache.Own) bool { return own.Rank == 0 && !own.Trimmed && own.Err == nil }

// look sets the score of a member from what is kept, false if that is too old for q.
func (t *trimmed) look(q *rankcache.Query, own *rankcache.Own) bool {
	kept, ok := t.scores.get(q.Board, own.Member)
	if !ok || time.Since(kept.at) > scoreTime || tooOld(q, &rankcache.Answer{Stamp: rankcache.Stamp{State: kept.state}}, kept.at) != nil {
		return false
	}
	own.Score, own.Trimmed = kept.score, kept.has
	return true
}

// keep keeps the scores of members, whose strings are not those of a request.
func (t *trimmed) keep(board rankcache.BoardID, a *rankcache.Answer, at time.Time) {
	for i := range a.Own {
		own := &a.Own[i]
		t.scores.put(board, own.Member, keptScore{own.Score, own.Trimmed, a.State, at})
	}
}
