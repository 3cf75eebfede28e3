package ledger

import (
	"context"
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rankcache"
	"rankcache/wire"
)

// knows are the order ids that Redis has.
type knows map[string]bool

func (k knows) Orders(_ context.Context, _ rankcache.BoardID, ids []string) (known []bool, since int64, err error) {
	for _, id := range ids {
		known = append(known, k[id])
	}
	return known, 0, nil
}

// forgets is a Redis that knows no order id of before a time.
type forgets struct {
	knows
	since int64
}

func (f forgets) Orders(_ context.Context, _ rankcache.BoardID, ids []string) ([]bool, int64, error) {
	return make([]bool, len(ids)), f.since, nil
}

func (knows) Meta(context.Context, rankcache.BoardID) (meta wire.Meta, found bool, err error) {
	return meta, false, nil
}

func (knows) Home(context.Context, rankcache.BoardID) (state rankcache.State, era string, err error) {
	return state, "", nil
}

// judged is what is known of rank_lost after a time.
func judged(t *testing.T, s *Store, after time.Duration) (rows []string) {
	t.Helper()
	_, err := s.judge(t.Context(), time.Now().Add(after), knows{})
	must(t, err)
	selectRows(t, s, "SELECT member, op, state, COALESCE(score, -1), COALESCE(now_score, -1) FROM rank_lost ORDER BY run, seq", func(row *sql.Rows) error {
		var member, op string
		var state int
		var score, now float64
		err := row.Scan(&member, &op, &state, &score, &now)
		rows = append(rows, fmt.Sprint(op, " ", member, " ", state, " ", score, " ", now))
		return err
	})
	return rows
}

func wantJudged(t *testing.T, s *Store, after time.Duration, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, judged(t, s, after)); diff != "" {
		t.Errorf("rank_lost after %v (-want +got):\n%s", after, diff)
	}
}

// None of the changes of a lost run is lost in silence: those that don't come again are reported with what their
// members have instead, until they do.
func TestNothingIsLostInSilence(t *testing.T) {
	both(t, func(t *testing.T, s *Store) {
		before, lost, after, now := failedOver()
		next, _ := feed(t, s, 0, append(append(before, lost...), after...)...)
		next, _ = feed(t, s, next, now.again(lost[:2])...)
		wantJudged(t, s, comesWithin-time.Minute, "incr b 1 12 -1", "incr c 1 20 -1", "incr a 0 34 -1", "delete b 0 -1 -1", "incr c 0 60 -1")
		settled(t, s, now, false)
		gone := []string{"incr b 1 12 -1", "incr c 1 20 -1", "incr a 2 34 4", "delete b 2 -1 12", "incr c 2 60 20"}
		wantJudged(t, s, comesWithin+time.Minute, gone...)
		wantJudged(t, s, comesWithin+time.Minute, gone...)
		settled(t, s, now, true)
		feed(t, s, next, now.again(lost[2:])...)
		wantJudged(t, s, comesWithin+time.Minute, "incr b 1 12 -1", "incr c 1 20 -1", "incr a 1 34 4", "delete b 1 -1 12", "incr c 1 60 20")
	})
}

// What Redis has is not lost, however long it is set aside; without Redis nothing is.
func TestWhatRedisHasIsNotLost(t *testing.T) {
	both(t, func(t *testing.T, s *Store) {
		before, lost, after, _ := failedOver()
		feed(t, s, 0, append(append(before, lost...), after...)...)
		late := time.Now().Add(comesWithin + time.Minute)
		for _, c := range []struct {
			redis Redis
			want  verdict
		}{{nil, verdict{pending: len(lost)}}, {knows{lost[0].OrderID: true, lost[3].OrderID: true}, verdict{pending: 2, wrong: 2, lost: len(lost) - 2}}, {knows{}, verdict{pending: 2, wrong: 2}}} {
			if got, err := s.judge(t.Context(), late, c.redis); err != nil || got != c.want {
				t.Errorf("%v: %+v, %v, want %+v", c.redis, got, err, c.want)
			}
		}
	})
}

// What was applied before the time from which Redis knows order ids, as the ledger was away for longer, is neither lost nor there: nobody
// can tell.
func TestWhatRedisHasForgottenIsNotLost(t *testing.T) {
	both(t, func(t *testing.T, s *Store) {
		before, lost, after, _ := failedOver()
		feed(t, s, 0, append(append(before, lost...), after...)...)
		late := time.Now().Add(comesWithin + time.Minute)
		for range 2 {
			got, err := s.judge(t.Context(), late, forgets{since: lost[2].At})
			if want := (verdict{pending: 2, unknown: 2, lost: len(lost) - 2}); err != nil || got.pending != want.pending || got.unknown != want.unknown {
				t.Errorf("%+v, %v, want %+v", got, err, want)
			}
		}
		if n := count(t, s, "rank_lost WHERE state = 2"); n != len(lost)-2 {
			t.Errorf("%d are lost, want %d", n, len(lost)-2)
		}
	})
}
