package replay

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"rankcache"
	"rankcache/internal/testkit"
	"rankcache/localboard"
	"rankcache/rooms"
)

// localSet adapts localboard, as serve does.
type localSet struct{ *localboard.Boards }

func (s localSet) Create(id rankcache.BoardID) Board { return s.Boards.Create(id) }
func (localSet) Prepare(context.Context, Board)      {}

// TestGrowth does with many boards what happens once a board or once a topic. The steps of its run are counted at two sizes:
// see TestNothingGrowsAsASquare.
func TestGrowth(t *testing.T) {
	n := testkit.Growth(t)
	r := &Runner{members: newMembership(new(feeds)), common: common{boards: localSet{localboard.NewBoards()}, metrics: newMetrics(),
		log: slog.New(slog.DiscardHandler), totalsWake: newSignal(), topicsWake: newSignal()}}
	r.members.feeds = &r.feeds
	logs := func(id rankcache.BoardID) rooms.Log {
		if strings.HasPrefix(string(id), "shared") {
			return rooms.Log{Topic: "shared", Shared: true}
		}
		return rooms.Log{Topic: "of_" + string(id)}
	}
	start := func(id rankcache.BoardID) *followed {
		return &followed{feed: newFeed(id, logs(id), r.boards, new(atomic.Int64), r.metrics, time.Now())}
	}
	var ids []rankcache.BoardID
	for i := range n {
		ids = append(ids, rankcache.BoardID(fmt.Sprint("shared", i)), rankcache.BoardID(fmt.Sprint("own", i)))
	}
	r.members.want(ids)
	r.members.update(logs, start)
	readAll(t, r, n)
	reg := prometheus.NewRegistry()
	reg.MustRegister(newCollector(&r.feeds, nil))
	if _, err := reg.Gather(); err != nil {
		t.Error(err)
	}
	r.members.readiness()
	r.members.want(nil)
	if gone := r.members.update(logs, start); len(gone) != 2*n {
		t.Errorf("%d boards are let go, want %d", len(gone), 2*n)
	}
}

// readAll has each topic read for its boards, twice looked at, and each board opened.
func readAll(t *testing.T, r *Runner, n int) {
	w := newTopicWatcher(&r.common, nil, nil)
	d := newDispatcher(&r.common, newBatches())
	for name, boards := range w.wanted() {
		var todo topicChanges
		w.plan(topicInfo{name, "id", 1}, boards, &todo)
		for _, of := range todo.start {
			d.dispatch([]item{{part: of.parts[0], kind: itemBegin}, {part: of.parts[0], offset: 1, kind: itemEnd}})
			w.reads(of.topic, boards)
		}
	}
	for _, f := range r.feeds.current() {
		if f.sources.topic() == nil {
			t.Fatalf("board %s has no log", f.id)
		}
		f.replica.board.Sum()
		if !f.replica.open(f.replica.currentEpoch(), opening{equalAt: time.Now(), equalTo: &rankcache.State{HasSum: true}}) {
			t.Fatalf("board %s does not open", f.id)
		}
	}
	wanted := w.wanted()
	for range 2 {
		var todo topicChanges
		w.due(wanted)
		for name, boards := range wanted {
			if !w.settled(name, boards) {
				t.Fatalf("topic %s is not settled", name)
			}
			w.plan(topicInfo{name, "id", 1}, boards, &todo)
		}
		if len(todo.start)+len(todo.stop) > 0 {
			t.Fatal("topics are read again")
		}
	}
	if len(wanted) != n+1 {
		t.Errorf("%d topics, want %d", len(wanted), n+1)
	}
}
