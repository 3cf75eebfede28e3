package ledger

import (
	"strings"
	"testing"

	"rankcache"
	"rankcache/wire"
)

// What somebody changes in the tables is found: by the rows alone, by going through them, or by Redis.
func TestChangedRowsAreFound(t *testing.T) {
	const members, seen, mine = "UPDATE rank_score SET ", "UPDATE rank_log SET ", " AND board = 'b'"
	for name, c := range map[string]struct {
		change               []string
		proof, folded, redis string // a part of why it is wrong; "": nothing is found
	}{
		"nothing":              {},
		"a row out":            {change: []string{"DELETE FROM rank_log WHERE seq = 5" + mine}, proof: "1 of the changes 1 to 20 are missing", folded: "change 6 "},
		"a row moved in seq":   {change: []string{seen + "seq = 900 WHERE seq = 5" + mine}, proof: "are missing, or at another run and seq"},
		"a row moved in run":   {change: []string{seen + "run = 7 WHERE seq = 5" + mine}, proof: "are missing, or at another run and seq"},
		"a first score":        {change: []string{seen + "raw = raw + 1, score = score + 1 WHERE seq = 1" + mine}, folded: "change 1 "},
		"a score in between":   {change: []string{seen + "raw = raw + 1, score = score + 1 WHERE seq = 9" + mine}, folded: "change 9 "},
		"a delta in between":   {change: []string{seen + "delta = delta + 1 WHERE seq = 9" + mine}, folded: "change 9 "},
		"a member in between":  {change: []string{seen + "member = 'z' WHERE seq = 9" + mine}, folded: "change 9 "},
		"a checksum":           {change: []string{seen + "sum = sum + 1 WHERE seq = 9" + mine}, folded: "change 9 ", redis: "at change 9 "},
		"a member's score":     {change: []string{members + "raw = raw + 1 WHERE member = 'm1'" + mine}, proof: "the scores add up to"},
		"the tail of rank_log": {change: []string{"DELETE FROM rank_log WHERE seq > 17" + mine}, proof: "3 of the changes 1 to 20 are missing", redis: "does not have change 19"},
		"the tail everywhere": {change: []string{"DELETE FROM rank_log WHERE seq > 18" + mine, "UPDATE rank_board SET seq = 18, sum = (SELECT sum FROM rank_log l WHERE l.seq = 18 AND l.board = 'b') WHERE board = 'b'",
			members + "raw = raw - 1, score = score - 1 WHERE member IN ('m2', 'm3')" + mine}, redis: "Redis has change 19, the ledger the changes up to 18"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			both(t, func(t *testing.T, s *Store) {
				h, redis := newHistory("b", 5), rankcache.State{}
				var all []*wire.LedgerUpdate
				for n := range 20 {
					u := h.incr([]string{"m0", "m1", "m2", "m3"}[n%4], 1)
					if n == 18 || name == "a checksum" && n == 8 { // Redis was read before the last one
						if redis.Seq == 0 {
							redis = u.State()
						}
					}
					if n == 9 {
						h.run = 6 // a failover that has lost nothing
					}
					all = append(all, u)
				}
				feed(t, s, 0, all...)
				for _, statement := range c.change {
					if _, err := s.db.ExecContext(t.Context(), statement); err != nil {
						t.Fatal(err)
					}
				}
				p, err := s.Prove(t.Context(), "b")
				must(t, err)
				found(t, "the proof", p.Why(), c.proof)
				if p.Missing == 0 {
					why, err := s.Fold(t.Context(), "b")
					must(t, err)
					found(t, "going through the changes", why, c.folded)
				}
				why, err := s.compare(t.Context(), "b", redis)
				must(t, err)
				found(t, "Redis", why, c.redis)
			})
		})
	}
}

func found(t *testing.T, by, why, want string) {
	t.Helper()
	if (why == "") != (want == "") || !strings.Contains(why, want) {
		t.Errorf("%s tells %q, want %q", by, why, want)
	}
}

// What was on a board before its writer came, or what another client did to it, is no error of the ledger.
func TestAdoptedBoardsAreNotFound(t *testing.T) {
	both(t, func(t *testing.T, s *Store) {
		h := newHistory("b", 5)
		h.scores["old"], h.scores["m"] = 40, 2
		h.sum = wire.Hash("old", 40) + wire.Hash("m", 2)
		next, _ := feed(t, s, 0, h.incr("m", 1), h.incr("new", 1), h.incr("m", 1))
		found := func() {
			t.Helper()
			why, err := s.Fold(t.Context(), "b")
			must(t, err)
			differs, err := s.compare(t.Context(), "b", rankcache.State{Run: h.run, Seq: h.seq, Sum: h.sum, HasSum: true})
			must(t, err)
			if why != "" || differs != "" {
				t.Errorf("%s %s", why, differs)
			}
		}
		found()
		h.sum -= wire.Hash("m", h.scores["m"]) // ZADD, and a writer adds the board up in a later run
		h.scores["m"] = 100
		h.sum += wire.Hash("m", 100)
		h.sum &= wire.SumMask
		h.run = 6
		found()
		feed(t, s, next, h.incr("new", 1), h.incr("m", 1), h.incr("old", 1), h.incr("m", 1))
		found()
	})
}
