package live

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"rankcache"
	"rankcache/internal/testkit/fixture"
	"rankcache/internal/testkit/kit"
	"rankcache/rooms"
	"rankcache/sidecar"
)

// splitStreams are clients of a split board's page.
type splitStreams struct {
	*fixture.Split
	t       *testing.T
	open    sync.Map // shards that are in memory
	tiers   atomic.Pointer[rooms.Tiers]
	hub     *Hub
	streams []*Subscriber
	pages   []map[string]any // of the streams
}

// Get implements [sidecar.Boards].
func (s *splitStreams) Get(id rankcache.BoardID) (sidecar.Board, bool) {
	b, ok := s.open.Load(id)
	if !ok {
		return nil, false
	}
	return b.(sidecar.Board), true
}

func newSplitStreams(t *testing.T, cfg Config) *splitStreams {
	t.Helper()
	s := &splitStreams{Split: fixture.NewSplit("gift:7", 8), t: t}
	rows := make(map[string]float64)
	for i := range 60 {
		rows[fixture.Member(i)] = float64(i % 4)
	}
	s.Set(t, rows)
	for id, b := range s.Shards {
		s.open.Store(id, b)
	}
	s.tiers.CompareAndSwap(nil, fixture.Tiers("classes: [{name: gift, board: \"gift:{zone}\", period: none, shards: 8}]\nboards: [{match: \"gift:7\", mode: super-hot}]\n")())
	reader, err := sidecar.NewReader(sidecar.Config{Tiers: s.tiers.Load, Boards: s, Origin: s.Split}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if s.hub, err = New(reader, cfg, nil); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		stream, err := s.hub.Subscribe(t.Context(), Key{Board: s.ID, Limit: 20}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		s.streams, s.pages = append(s.streams, stream), append(s.pages, nil)
	}
	t.Cleanup(func() {
		s.hub.Drain()
		for _, stream := range s.streams {
			stream.Close()
		}
		s.hub.Wait()
	})
	return s
}

// wait waits until all clients have the board as it is, from a source.
func (s *splitStreams) wait(source string) {
	s.t.Helper()
	for i := range s.streams {
		for !s.has(s.pages[i], source) {
			s.next(i)
		}
	}
}

// next takes the next event of a stream.
func (s *splitStreams) next(i int) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 20*time.Second)
	defer cancel()
	ev, err := s.streams[i].Next(ctx)
	if err != nil {
		s.t.Fatalf("no event: stream %d has %v, want shards %v", i, s.pages[i], s.Seqs())
	}
	fields := parseEvent(s.t, string(ev.SSE()))
	var data map[string]any
	if err := json.Unmarshal([]byte(fields["data"]), &data); err != nil {
		s.t.Fatal(err)
	}
	switch fields["event"] {
	case "page":
		s.pages[i] = data
	case "diff":
		applyDiff(s.pages[i], data)
	}
}

// has reports whether a page is the board as it is. One with the seqs of now has the rows of now.
func (s *splitStreams) has(page map[string]any, source string) bool {
	s.t.Helper()
	var seqs []any
	for _, seq := range s.Seqs() {
		seqs = append(seqs, float64(seq))
	}
	got, _ := page["shards"].([]any)
	if page == nil || page["source"] != source || !slices.Equal(got, seqs) {
		return false
	}
	var want []any
	for i, row := range s.Ranked()[:20] {
		want = append(want, map[string]any{"rank": float64(i + 1), "member": row.Member, "score": row.Score})
	}
	if diff := cmp.Diff(want, page["entries"]); diff != "" {
		s.t.Fatalf("rows of shards %v (-want +got):\n%s", seqs, diff)
	}
	return true
}

// TestSplitIsPushed: a change of any shard reaches all clients of the page at once, by one version for all of them.
func TestSplitIsPushed(t *testing.T) {
	s := newSplitStreams(t, Config{Interval: time.Millisecond, Poll: time.Hour, Heartbeat: time.Hour})
	s.wait("local")
	const moves = 60
	for i := range moves {
		s.hub.Changed(s.Move(t, fixture.Member(rand.IntN(60)), float64(rand.IntN(6))))
		if i%3 > 0 {
			s.wait("local")
		}
	}
	s.wait("local")
	if n := testutil.ToFloat64(s.hub.metrics.versions); n > moves+1 {
		t.Errorf("%v versions of %d states", n, moves+1)
	}
	if n := s.Calls.Load(); n > 0 {
		t.Errorf("%d calls of Redis", n)
	}
}

// TestSplitOfRedisIsPolled: where a shard is not in memory the page is read at polls alone, whatever the others publish, and not while
// that shard can't be read.
func TestSplitOfRedisIsPolled(t *testing.T) {
	s := newSplitStreams(t, Config{Interval: time.Millisecond, Poll: 20 * time.Millisecond, Heartbeat: time.Hour})
	s.wait("local")
	s.open.Delete(rankcache.BoardID("gift:7.s3"))
	s.hub.Changed(s.Move(t, fixture.Member(1), 50))
	s.wait("redis")
	s.Away.Store(true)
	before := s.Calls.Load()
	shard := s.Move(t, fixture.Member(2), 60)
	s.hub.Changed(shard)
	kit.Eventually(t, 10*time.Second, func() error {
		if n := s.Calls.Load() - before; n < 2 {
			return fmt.Errorf("%d polls", n)
		}
		return nil
	})
	s.Away.Store(false)
	s.wait("redis")
	s.open.Store(rankcache.BoardID("gift:7.s3"), s.Shards["gift:7.s3"])
	s.wait("local")
}

// TestClassIsSplitLater: a page that is watched when the class of its board is set, and when it is removed again, is pushed by the
// changes of what it is then made of.
func TestClassIsSplitLater(t *testing.T) {
	s := newSplitStreams(t, Config{Interval: time.Millisecond, Poll: 20 * time.Millisecond, Heartbeat: time.Hour})
	s.wait("local")
	split, one := s.tiers.Load(), fixture.Tiers("boards: [{match: \"gift:7\", mode: super-hot}]\n")()
	s.open.Store(s.ID, s.Whole)
	follows := func(id rankcache.BoardID) func() error {
		return func() error {
			s.hub.mu.RLock()
			defer s.hub.mu.RUnlock()
			if len(s.hub.byBoard[id]) != 1 {
				return fmt.Errorf("changes of %s are changes of %d publishers", id, len(s.hub.byBoard[id]))
			}
			if n := len(s.hub.byBoard); n != len(s.hub.reader.Tiers().Parts(s.ID)) {
				return fmt.Errorf("%d boards are followed", n)
			}
			return nil
		}
	}
	for range 2 {
		s.tiers.Store(one)
		kit.Eventually(t, 10*time.Second, follows(s.ID))
		s.tiers.Store(split)
		kit.Eventually(t, 10*time.Second, follows("gift:7.s3"))
	}
	s.wait("local")
}
