package sidecar

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"rankcache"
)

const (
	// scoreTime is how long the score of a member without a rank is kept.
	scoreTime = 10 * time.Second
	// maxScores is how many are kept of the newer half, and of the older one: some 10 MB in all.
	maxScores = 25_000
)

// trimmed finds the scores of members without a rank, on boards whose class keeps the best
// members in the sorted set and the scores of all beside it. It asks for each once in
// scoreTime.
type trimmed struct {
	flights *flights

	mu         sync.Mutex
	newer, old map[scoreKey]keptScore
	turned     time.Time // when newer became the old ones
}

type scoreKey struct {
	board  rankcache.BoardID
	member string
}

// keptScore is a member's score at a moment of the board, if it had any.
type keptScore struct {
	score float64
	has   bool
	state rankcache.State
	at    time.Time
}

// addScores sets the scores of those rows of q's board that have no rank. Such a score is up
// to scoreTime old, within the bounds of q.
func (r *Reader) addScores(ctx context.Context, q *Query, rows []rankcache.Standing) error {
	if !slices.ContainsFunc(rows, unranked) || !r.tiers().Trims(q.Board) {
		return nil
	}
	var missing []string
	var places []int
	for i := range rows {
		if unranked(rows[i]) && !r.trimmed.look(q, &rows[i]) {
			missing, places = append(missing, rows[i].Member), append(places, i)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	found, err := r.trimmed.ask(ctx, *q, missing)
	if err != nil {
		return err
	}
	for i, place := range places {
		rows[place].Score, rows[place].Trimmed = found[i].Score, found[i].Trimmed
	}
	return nil
}

func unranked(s rankcache.Standing) bool { return s.Rank == 0 }

// addOwnScore is addScores for the member of a page, if there is to be one.
func (r *Reader) addOwnScore(ctx context.Context, q *Query, a *PageAnswer) {
	if own := &a.Own; own.lacksScore() && a.Err == nil {
		rows := []rankcache.Standing{own.Standing}
		own.Err = r.addScores(ctx, q, rows)
		own.Standing = rows[0]
	}
}

func (o *Own) lacksScore() bool { return o.Member != "" && o.Rank == 0 && o.Err == nil }

// look sets the score of s from what is kept, false if that is too old for q.
func (t *trimmed) look(q *Query, s *rankcache.Standing) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	key := scoreKey{q.Board, s.Member}
	kept, ok := t.newer[key]
	if !ok {
		kept, ok = t.old[key]
	}
	if !ok || time.Since(kept.at) > scoreTime || !q.reached(kept.state) || !q.fresh(kept.state.Seq, kept.at) {
		return false
	}
	s.Score, s.Trimmed = kept.score, kept.has
	return true
}

// ask asks Redis, or the ledger, in a flight.
func (t *trimmed) ask(ctx context.Context, q Query, members []string) ([]rankcache.Standing, error) {
	if err := q.check(members); err != nil {
		return nil, err
	}
	q = q.own()
	names := strings.Join(members, "\x00")
	s, err := fetchFresh(ctx, t.flights, &q, "scores", "scores\x00"+string(q.Board)+"\x00"+names, func(ctx context.Context, of asked) (Standings, error) {
		rows, stamp, err := of.Scores(ctx, q.Board, strings.Split(names, "\x00"))
		if err == nil {
			t.keep(q.Board, rows, stamp)
		}
		return Standings{Stamp: stamp, Source: of.source, Rows: rows}, err
	})
	return s.Rows, err
}

// keep keeps the scores of members, whose strings are not those of a request.
func (t *trimmed) keep(board rankcache.BoardID, rows []rankcache.Standing, stamp rankcache.Stamp) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now := time.Now(); t.newer == nil || len(t.newer)+len(rows) > maxScores || now.Sub(t.turned) > scoreTime {
		t.old, t.newer, t.turned = t.newer, make(map[scoreKey]keptScore), now
	}
	for _, s := range rows {
		t.newer[scoreKey{board, s.Member}] = keptScore{s.Score, s.Trimmed, stamp.State, stamp.At}
	}
}
