package app

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/class"
	"rankcache/internal/testkit"
	"rankcache/wire"
)

// splitShow has two boards of 16 shards each: one in the sidecars' memory, one in Redis alone.
type splitShow struct {
	*laps
	t            *testing.T
	local, small rankcache.BoardID
	rows         map[string]float64 // of both
	n            int                // commands
}

const splitShards = 16

// TestSplitBoards: 3 sidecars answer boards of 16 shards as a plain account of their members ranks them, with equal scores
// everywhere and most members on two shards, from memory and from Redis; own writes are read back by the state that the
// writer has answered. A board is not answered while one of its shards is gone, or its Redis is.
func TestSplitBoards(t *testing.T) {
	t.Parallel()
	d := newDegraded(t)
	name := strings.ToLower(testkit.Name(t))
	s := &splitShow{t: t, laps: &laps{degraded: d}, local: rankcache.BoardID(name + ":local"), small: rankcache.BoardID(name + ":small"), rows: make(map[string]float64)}
	d.writeRooms(t, fmt.Sprintf("classes:\n- {name: gifts, board: %q, period: none, shards: %d, ops: [incr]}\nboards:\n- {match: %q, mode: super-hot}\n", name+":{zone}", splitShards, s.local))
	testkit.Eventually(t, time.Minute, func() error { // the writer has read the file, and its producer is up
		_, err := s.post(`{"order":"probe","class":"gifts","dims":{"zone":"probe"},"member":"m","op":"incr","delta":1}`)
		return err
	})
	s.give(testkit.Sized(300, 3000))
	var sidecars []*child
	for range 3 {
		sidecars = append(sidecars, d.serve(t, "--redis-timeout", "500ms"))
	}
	for _, c := range sidecars {
		c.WaitReady(time.Minute)
		d.until(c, s.local, "its source", fromLocal)
	}
	s.give(testkit.Sized(60, 3000))
	for _, c := range sidecars {
		for _, b := range []rankcache.BoardID{s.local, s.small} {
			testkit.Eventually(t, time.Minute, func() error { return s.checkPage(c, b) })
			s.checkMembers(c, b)
			s.checkOwnWrite(c, b)
		}
	}

	s.deleteShard(sidecars[0])
	must(t, d.redis.Kill())
	for _, c := range sidecars {
		d.until(c, s.small, "no answer without Redis", func(a answer) bool { return a.status == 503 })
		must(t, s.checkPage(c, s.local))
		s.checkMembers(c, s.local)
	}
}

// give posts increments of both boards, of members that are mostly on two shards.
func (s *splitShow) give(n int) {
	s.t.Helper()
	for range n / 50 {
		var commands []string
		for range 50 {
			member := fmt.Sprint("m", rand.IntN(200))
			for rand.IntN(4) > 0 && class.ShardOf(member, splitShards) > 1 {
				member = fmt.Sprint("m", rand.IntN(2000))
			}
			delta := float64(rand.IntN(3))
			s.n++
			for _, b := range []rankcache.BoardID{s.local, s.small} {
				commands = append(commands, fmt.Sprintf(`{"order":"o%d","board":%q,"member":%q,"op":"incr","delta":%v}`, s.n, b, member, delta))
			}
			s.rows[member] += delta
		}
		_, err := s.post(strings.Join(commands, ","))
		must(s.t, err)
	}
}

// ranked returns the account's rows, best first.
func (s *splitShow) ranked() (rows []rankcache.Entry) {
	for m, score := range s.rows {
		rows = append(rows, rankcache.Entry{Member: m, Score: score})
	}
	slices.SortFunc(rows, func(x, y rankcache.Entry) int {
		return cmp.Or(cmp.Compare(y.Score, x.Score), cmp.Compare(y.Member, x.Member))
	})
	return rows
}

// splitPage is what is answered about a split board.
type splitPage struct {
	Total   int
	Seq     uint64
	Shards  []uint64
	Entries []struct {
		Member string
		Score  float64
		Rank   int
	}
	Member string
	Score  float64
	Rank   int
}

func (s *splitShow) get(c *child, path string) (page splitPage, err error) {
	code, body := c.Get("data", path)
	if code != 200 {
		return page, fmt.Errorf("%s: %d %s", path, code, body)
	}
	err = json.Unmarshal([]byte(body), &page)
	var seq uint64
	for _, n := range page.Shards {
		seq += n
	}
	if len(page.Shards) != splitShards || seq != page.Seq {
		err = cmp.Or(err, fmt.Errorf("%s: seq %d of %v", path, page.Seq, page.Shards))
	}
	return page, err
}

func (s *splitShow) checkPage(c *child, b rankcache.BoardID) error {
	rows := s.ranked()
	page, err := s.get(c, fmt.Sprintf("/v1/boards/%s/top?start=7&limit=60", b))
	if err != nil {
		return err
	}
	want := rows[7:min(67, len(rows))]
	if page.Seq != uint64(s.n) {
		return fmt.Errorf("%s: seq %d, want %d", b, page.Seq, s.n)
	}
	if page.Total != len(rows) || len(page.Entries) != len(want) {
		return fmt.Errorf("%s: %d members and %d rows, want %d and %d", b, page.Total, len(page.Entries), len(rows), len(want))
	}
	for i, e := range page.Entries {
		if e.Member != want[i].Member || e.Score != want[i].Score || e.Rank != i+8 {
			return fmt.Errorf("%s: %+v, want %+v at rank %d", b, e, want[i], i+8)
		}
	}
	return nil
}

func (s *splitShow) checkMembers(c *child, b rankcache.BoardID) {
	s.t.Helper()
	for i, row := range s.ranked() {
		if i%7 > 0 {
			continue
		}
		page, err := s.get(c, fmt.Sprintf("/v1/boards/%s/members/%s", b, row.Member))
		if err != nil || page.Rank != i+1 || page.Score != row.Score {
			s.t.Errorf("%s: %s is %+v, want rank %d, %v", b, row.Member, page, i+1, err)
		}
	}
}

// checkOwnWrite reads a write by the state and the seq of its answer, which are those of the member's shard.
func (s *splitShow) checkOwnWrite(c *child, b rankcache.BoardID) {
	s.t.Helper()
	for i := range 5 {
		member := fmt.Sprint("m", i)
		s.n++
		w := s.write(s.t, b, member, s.n)
		other := map[rankcache.BoardID]rankcache.BoardID{s.local: s.small, s.small: s.local}[b]
		s.write(s.t, other, member, s.n)
		s.rows[member]++
		for _, least := range []string{"min_state=" + w.State, fmt.Sprint("min_seq=", w.Seq)} {
			page, err := s.get(c, fmt.Sprintf("/v1/boards/%s/members/%s?wait_ms=500&%s", b, member, least))
			if err != nil || page.Score != s.rows[member] {
				s.t.Errorf("%s: %s with %s is %+v, %v; want %v", b, member, least, page, err, s.rows[member])
			}
		}
	}
}

// deleteShard deletes the sorted set of a shard, as something else than a writer does, and puts it back.
func (s *splitShow) deleteShard(c *child) {
	s.t.Helper()
	client := redis.NewClient(&redis.Options{Addr: s.degraded.redis.Addr(), Protocol: 2})
	defer client.Close()
	shard := string(class.ShardID(s.small, 0))
	must(s.t, client.Rename(s.t.Context(), shard, wire.DefaultNames().MetaKey(rankcache.BoardID(shard))+":away").Err())
	for _, path := range []string{"/top", "/members/m1", "/top?me=m1&around=2"} {
		if code, body := c.Get("data", "/v1/boards/"+string(s.small)+path); code != 503 {
			s.t.Errorf("%s without a shard: %d %s", path, code, body)
		}
	}
	must(s.t, client.Rename(s.t.Context(), wire.DefaultNames().MetaKey(rankcache.BoardID(shard))+":away", shard).Err())
	must(s.t, s.checkPage(c, s.small))
}
