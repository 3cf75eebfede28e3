package app

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/class"
	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
)

// splitCluster has split boards whose shards three masters share: one in memory, and two in Redis alone.
type splitCluster struct {
	*splitShow
	cluster  *servers.RedisCluster
	writers  []*laps
	gone     rankcache.BoardID // loses a shard
	mu       sync.Mutex        // of the account
	next     atomic.Int64      // command
	answered atomic.Int64
}

// TestSplitBoardsOnACluster: 2 writers change boards of 16 shards on three masters, most members on two of the shards and with equal scores
// everywhere, while 3 sidecars are read: an answer has all that was acknowledged before it was asked for, and at rest it is what a
// plain account tells. A board of which a shard is deleted, or on a master that is away, is not answered, but from memory.
func TestSplitBoardsOnACluster(t *testing.T) {
	testkit.FullOnly(t, "a Redis Cluster of its own, which loses a master")
	t.Parallel()
	s := newSplitCluster(t)
	s.give(2000)
	var sidecars []*child
	for range 3 {
		sidecars = append(sidecars, s.serve(t, "--redis-timeout", "500ms"))
	}
	for _, c := range sidecars {
		c.WaitReady(time.Minute)
		s.until(c, s.local, "its source", fromLocal)
	}
	s.raceReads(sidecars, 4000)
	for _, c := range sidecars {
		for _, b := range []rankcache.BoardID{s.local, s.small, s.gone} {
			testkit.Eventually(t, time.Minute, func() error { return s.checkPage(c, b) })
			s.checkMembers(c, b)
		}
	}
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: s.cluster.Addrs(), Protocol: 2})
	t.Cleanup(func() { client.Close() })
	must(t, client.Del(t.Context(), string(class.ShardID(s.gone, 0))).Err())
	for _, c := range sidecars {
		s.refused(c, s.gone)
		must(t, s.checkPage(c, s.small))
	}
	s.killMaster(class.ShardID(s.small, 1))
	for _, c := range sidecars {
		s.until(c, s.small, "no answer without a master", func(a answer) bool { return a.status == 503 })
		s.refused(c, s.small)
		must(t, s.checkPage(c, s.local))
		s.checkMembers(c, s.local)
	}
	t.Logf("%d answers were compared while boards changed", s.answered.Load())
}

func newSplitCluster(t *testing.T) *splitCluster {
	t.Helper()
	s := &splitCluster{cluster: testkit.StartRedisCluster(t, servers.ClusterOptions{NodeTimeout: 2 * time.Second})}
	addrs := s.cluster.Addrs()
	d := &degraded{fixture: newFixtureOn(t, addrs[0]+"?addr="+strings.Join(addrs[1:], "&addr="), "--redis-mode", "cluster"), t: t}
	d.common = append(d.common, "--redis-mode", "cluster")
	name := strings.ToLower(testkit.Name(t))
	s.splitShow = &splitShow{t: t, laps: &laps{degraded: d}, local: rankcache.BoardID(name + ":local"), small: rankcache.BoardID(name + ":small"), rows: make(map[string]float64)}
	s.gone = rankcache.BoardID(name + ":gone")
	d.writeRooms(t, fmt.Sprintf("classes:\n- {name: gifts, board: %q, period: none, shards: %d, ops: [incr]}\nboards:\n- {match: %q, mode: super-hot}\n", name+":{zone}", splitShards, s.local))
	second := *d.fixture
	group := d.common[slices.Index(d.common, "--topic-commands")+1]
	second.writer = startListening(t, append([]string{"write", "--scores", "127.0.0.1:0", "--health", "127.0.0.1:0", "--group", group}, d.common...)...)
	s.writers = []*laps{s.laps, {degraded: &degraded{fixture: &second, t: t}}}
	for i, w := range s.writers {
		testkit.Eventually(t, time.Minute, func() error { // it has read the file, and its producer is up
			_, err := w.post(fmt.Sprintf(`{"order":"probe%d","class":"gifts","dims":{"zone":"probe"},"member":"m","op":"incr","delta":1}`, i))
			return err
		})
	}
	return s
}

// give has both writers apply increments of all boards at once, of members that are mostly on two shards.
func (s *splitCluster) give(n int) {
	s.t.Helper()
	var writers sync.WaitGroup
	for _, w := range s.writers {
		writers.Go(func() {
			for range n / 50 {
				s.batch(w)
			}
		})
	}
	writers.Wait()
}

// batch posts 25 increments of each board, and adds them to the account once they are acknowledged.
func (s *splitCluster) batch(w *laps) {
	var commands []string
	given := make(map[string]float64)
	for range 25 {
		member := fmt.Sprint("m", rand.IntN(200))
		for rand.IntN(4) > 0 && class.ShardOf(member, splitShards) > 1 {
			member = fmt.Sprint("m", rand.IntN(2000))
		}
		delta, order := float64(rand.IntN(3)), s.next.Add(1)
		for _, b := range []rankcache.BoardID{s.local, s.small, s.gone} {
			commands = append(commands, fmt.Sprintf(`{"order":"o%d","board":%q,"member":%q,"op":"incr","delta":%v}`, order, b, member, delta))
		}
		given[member] += delta
	}
	if _, err := w.post(strings.Join(commands, ",")); err != nil {
		s.t.Error(err)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for m, delta := range given {
		s.rows[m] += delta
	}
	s.n += 25
}

// acknowledged returns how many commands of a board, and how many members of it, are.
func (s *splitCluster) acknowledged() (commands, members int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.n, len(s.rows)
}

// raceReads reads the boards while they change.
func (s *splitCluster) raceReads(sidecars []*child, n int) {
	s.t.Helper()
	ctx, stop := context.WithCancel(s.t.Context())
	var readers sync.WaitGroup
	for _, c := range sidecars {
		readers.Go(func() {
			var local, small, now splitPage
			for ctx.Err() == nil {
				local = s.checkRunning(c, s.local, "", local)
				small = s.checkRunning(c, s.small, "", small) // its shards may be hot, and so of a moment ago
				now = s.checkRunning(c, s.small, "&max_age_ms=0", now)
			}
		})
	}
	s.give(n)
	stop()
	readers.Wait()
}

// checkRunning reads a page of a board that changes: no shard goes back, rows are in order, and one that is as of now has all
// that was acknowledged before.
func (s *splitCluster) checkRunning(c *child, b rankcache.BoardID, bound string, last splitPage) splitPage {
	commands, members := s.acknowledged()
	page, err := s.get(c, fmt.Sprintf("/v1/boards/%s/top?limit=100%s", b, bound))
	if err != nil {
		s.t.Error(err)
		return last
	}
	s.answered.Add(1)
	if bound != "" && (page.Seq < uint64(commands) || page.Total < members) {
		s.t.Errorf("%s: seq %d and %d members after %d commands of %d", b, page.Seq, page.Total, commands, members)
	}
	for i := range last.Shards {
		if page.Shards[i] < last.Shards[i] {
			s.t.Errorf("%s: shard %d went back from %d to %d", b, i, last.Shards[i], page.Shards[i])
		}
	}
	if page.Total < last.Total || len(page.Entries) != min(page.Total, 100) {
		s.t.Errorf("%s: %d rows of %d members, before %d", b, len(page.Entries), page.Total, last.Total)
	}
	for i, e := range page.Entries {
		if before := page.Entries[max(i-1, 0)]; e.Rank != i+1 || i > 0 && (e.Score > before.Score || e.Score == before.Score && e.Member >= before.Member) {
			s.t.Errorf("%s: rank %d is %+v behind %+v", b, i+1, e, before)
		}
	}
	return page
}

// refused checks that neither pages nor members of a board are answered.
func (s *splitCluster) refused(c *child, b rankcache.BoardID) {
	s.t.Helper()
	for _, path := range []string{"/top", "/top?limit=1&start=90", "/top?me=m1&around=2", "/members/m1", "/members/m2", "/members/m3"} {
		if code, body := c.Get("data", "/v1/boards/"+string(b)+path); code != 503 {
			s.t.Errorf("%s%s: %d %s", b, path, code, body)
		}
	}
}

// killMaster kills the master of a board and its replica.
func (s *splitCluster) killMaster(b rankcache.BoardID) {
	s.t.Helper()
	master, err := s.cluster.Master(s.t.Context(), string(b))
	must(s.t, err)
	for i, node := range s.cluster.Nodes[:3] {
		if node == master {
			must(s.t, s.cluster.Nodes[i+3].Kill())
		}
	}
	must(s.t, master.Kill())
}
