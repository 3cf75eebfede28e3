package app

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/internal/testkit"
)

// TestApproximateRanksOverHTTP: two sidecars share a ladder, and the ranks that it gives are as near to the exact ones as they say, also by the
// default of a class.
func TestApproximateRanksOverHTTP(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	h.writeRooms(t, fmt.Sprintf("classes:\n- {name: large, board: %q, period: none, ranks: approx}\n", h.small))
	var rows []redis.Z
	for i := range 2 * rankcache.MinLadder {
		rows = append(rows, redis.Z{Member: fmt.Sprint("m", i), Score: float64(i * i % 1_000_003)})
	}
	client := h.redis(t)
	must(t, client.ZAdd(t.Context(), string(h.small), rows...).Err())
	must(t, client.Set(t.Context(), fmt.Sprintf("{%s}:meta", h.small), testkit.Meta(1<<40, 7, rows), 0).Err())
	for range 2 {
		s := h.serve(t)
		s.WaitReady(time.Minute)
		path := "/v1/boards/" + string(h.small) + "/members/"
		testkit.Eventually(t, time.Minute, func() error {
			if row := standingOf(t, s.URL("data", path+"m5")); row.LadderSeq != 7 {
				return fmt.Errorf("%+v is not from a ladder", row)
			}
			return nil
		})
		for i := 0; i < len(rows); i += 997 {
			about, exact := standingOf(t, s.URL("data", fmt.Sprint(path, "m", i))), standingOf(t, s.URL("data", fmt.Sprint(path, "m", i, "?rank_mode=ordinal")))
			if off := about.Rank - exact.Rank; about.LadderSeq != 7 || max(off, -off) > about.RankWithin || exact.LadderSeq != 0 {
				t.Errorf("%+v, want %+v", about, exact)
			}
		}
	}
	if n := client.Exists(t.Context(), fmt.Sprintf("{%s}:ladder", h.small)).Val(); n != 1 {
		t.Error("there is no ladder in Redis")
	}
}

type standing struct {
	Rank       int
	RankWithin int    `json:"rank_within"`
	LadderSeq  uint64 `json:"ladder_seq"`
}

func standingOf(t *testing.T, url string) (row standing) {
	t.Helper()
	resp, err := http.Get(url)
	must(t, err)
	defer resp.Body.Close()
	must(t, json.NewDecoder(resp.Body).Decode(&row))
	if aged := resp.Header.Get("Rankcache-Ladder-Age-Ms") != ""; aged != (row.LadderSeq != 0) {
		t.Errorf("%s: %+v, with the age of a ladder: %v", url, row, aged)
	}
	return row
}
