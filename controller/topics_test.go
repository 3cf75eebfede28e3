package controller

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"rankcache"
	"rankcache/internal/testkit"
	"rankcache/wire"
)

func TestOwnerOfATopic(t *testing.T) {
	f := newFixture(t, testkit.Kfake(t).Addr(), nil, nil)
	n := f.name
	var owners owners
	must(t, owners.use(f.tiers.file))
	utc := func(text string) time.Time {
		at, err := time.Parse(time.RFC3339, text)
		must(t, err)
		return at
	}
	for topic, want := range map[string]owner{
		"update_cache_" + n + ".7.20261122-35": {boards: []rankcache.BoardID{rankcache.BoardID(n + ":7:20261122-35")}, due: utc("2026-11-22T18:30:00Z")},
		"update_cache_" + n + "d.7.20261122":   {boards: []rankcache.BoardID{rankcache.BoardID(n + "d.7:20261122")}, due: utc("2026-11-23T01:00:00Z")},
		"update_cache_" + n + "f.7":            {boards: []rankcache.BoardID{rankcache.BoardID(n + "f:7")}},
		"update_cache_" + n + "s.s1":           {boards: []rankcache.BoardID{rankcache.BoardID(n + "s:s1")}, due: utc("2026-11-22T06:00:00Z")},
		"update_cache_" + n + "s.s9":           {boards: []rankcache.BoardID{rankcache.BoardID(n + "s.s9"), rankcache.BoardID(n + "s:s9")}},
		"update_cache_1_2_3":                   {boards: []rankcache.BoardID{"1_2_3"}},
		"update_cache_a.b":                     {boards: []rankcache.BoardID{"a.b", "a:b"}},
		"update_cache_a.b.c.d.e.f.g":           {},
		"update_class_gift.20261122":           {due: utc("2026-11-23T01:00:00Z")},
		"update_class_gift.2026112":            {},
		"update_class_day.20261122":            {}, // its boards have topics of their own
		"update_class_other.20261122":          {},
		"update_class_":                        {},
	} {
		got := owners.of(topic, f.opts.Names)
		if got.topic != topic || !slices.Equal(got.boards, want.boards) || !got.due.Equal(want.due) {
			t.Errorf("%s: got %+v, want %+v", topic, got, want)
		}
	}
}

// Snapshots go before their topic, which stays while they can't be deleted.
func TestSnapshotsGoWithTheirTopic(t *testing.T) {
	f := newFixture(t, testkit.Kfake(t).Addr(), brokersTime, nil)
	saved := &savedBoards{err: errors.New("no bucket")}
	f.opts.Snapshots = saved
	f.now = func() time.Time { return time.Date(2026, 11, 24, 17, 10, 0, 0, time.UTC) }
	topic := f.opts.Names.ClassTopic("gift", "20261122")
	testkit.CreateTopic(t, f.broker, topic, 1, nil)
	if err := f.topics.lookAtTopics(t.Context()); !errors.Is(err, saved.err) || !slices.Contains(f.allTopics(t), topic) {
		t.Errorf("%v, topics %q: want %s kept", err, f.allTopics(t), topic)
	}
	saved.err = nil
	if left := f.topicsLeft(t); len(left) != 0 || !slices.Equal(saved.removed, []string{topic}) {
		t.Errorf("topics %q, removed %q", left, saved.removed)
	}
}

type savedBoards struct {
	err     error
	removed []string
}

func (s *savedBoards) RemoveBelow(_ context.Context, folder string) error {
	if s.err == nil {
		s.removed = append(s.removed, folder)
	}
	return s.err
}

// The topics of a class go once keep is over, the board has expired in Redis and is
// closed; a topic that boards share goes after the last period of its day.
func TestTopicsOfAClass(t *testing.T) {
	f := newFixture(t, testkit.Kfake(t).Addr(), brokersTime, nil)
	at := time.Date(2026, 11, 22, 17, 10, 0, 0, time.UTC)
	set := func(clock string) {
		when, err := time.Parse(time.RFC3339, clock)
		must(t, err)
		f.now = func() time.Time { return when }
	}
	day, gift := f.board(t, "day", at, wire.LifeClosed), f.board(t, "gift", at, wire.LifeClosed)
	must(t, f.redis.Del(t.Context(), f.opts.Names.Ends).Err())
	own, shared := f.opts.Names.Topic(day), f.opts.Names.ClassTopic("gift", "20261122")
	older := f.opts.Names.Topic(gift) // as a sidecar of an older version reads it
	for _, topic := range []string{own, shared, older} {
		testkit.CreateTopic(t, f.broker, topic, 1, nil)
	}
	want := func(clock string, topics ...string) {
		t.Helper()
		set(clock)
		left := f.topicsLeft(t)
		slices.Sort(left)
		slices.Sort(topics)
		if !slices.Equal(left, topics) {
			t.Errorf("at %s: topics %q, want %q", clock, left, topics)
		}
	}
	want("2026-11-22T18:31:00Z", own, shared, older) // the half-hour board is still there
	must(t, f.redis.Del(t.Context(), f.opts.Names.MetaKey(gift)).Err())
	want("2026-11-22T18:31:00Z", own, shared)
	want("2026-11-23T00:59:00Z", own, shared)
	f.board(t, "day", at, wire.LifeClosing)
	f.board(t, "gift", at, wire.LifeClosing)
	must(t, f.redis.Del(t.Context(), f.opts.Names.MetaKey(day), f.opts.Names.MetaKey(gift)).Err())
	want("2026-11-23T01:01:00Z", own, shared) // in the index
	must(t, f.redis.Del(t.Context(), f.opts.Names.Ends).Err())
	f.tiers.wanted = day
	want("2026-11-23T01:01:00Z", own) // sidecars keep the board
	f.tiers.wanted = ""
	want("2026-11-23T01:01:00Z")
	if s := f.Status(); s.TopicsDeleted != 3 || s.Error != "" {
		t.Errorf("status %+v", s)
	}
}

// The topic of a board without class goes when Redis has not known the board at any look
// for --topic-keep, also if the controller is another one by then.
func TestTopicsOfBoardsWithoutClass(t *testing.T) {
	f := newFixture(t, testkit.Kfake(t).Addr(), brokersTime, func(o *Options) {
		n := &o.Names
		n.UpdatePrefix = o.Group // which begins the command topic, too
		n.Board, n.Meta = o.Group+"<board>", o.Group+"{<board>}"
	})
	board := rankcache.BoardID("a:b")
	topics := map[string]string{"there": f.name + "set", "meta": f.name + "meta", "absent": f.opts.Names.Topic(board), "wanted": f.name + "wanted",
		"dots": f.name + "a.b.c.d.e.f.g", "class": "update_class_other.20261122"}
	for _, topic := range topics {
		testkit.CreateTopic(t, f.broker, topic, 1, nil)
	}
	set := func(key string) { must(t, f.redis.Set(t.Context(), key, "", time.Hour).Err()) }
	set(f.opts.Names.BoardKey("set"))
	set(f.opts.Names.MetaKey("meta"))
	f.tiers.wanted = "wanted"
	want := func(after time.Duration, kept ...string) {
		t.Helper()
		f.term = newTerm(f.Controller, f.kafka) // a restart
		f.ahead = after
		left := f.topicsLeft(t)
		if len(left) != len(kept) {
			t.Errorf("after %v: topics %q, want those that are %q", after, left, kept)
		}
		for _, k := range kept {
			if !slices.Contains(left, topics[k]) {
				t.Errorf("after %v: %q is gone", after, topics[k])
			}
		}
	}
	all := []string{"there", "meta", "absent", "wanted", "dots", "class"}
	f.opts.TopicKeep = 0
	want(0, all...)
	want(1000*time.Hour, all...)
	must(t, f.redis.Del(t.Context(), f.opts.Names.AbsentTopics).Err())
	f.opts.TopicKeep = 24 * time.Hour
	want(0, all...)
	want(23*time.Hour, all...)
	set(f.opts.Names.BoardKey(board)) // it is back
	want(23*time.Hour+time.Second, all...)
	must(t, f.redis.Del(t.Context(), f.opts.Names.BoardKey(board)).Err())
	want(25*time.Hour, "there", "meta", "absent", "wanted", "dots")
	want(50*time.Hour, "there", "meta", "wanted", "dots")
	if known := f.redis.HGetAll(t.Context(), f.opts.Names.AbsentTopics).Val(); len(known) != 0 {
		t.Errorf("absent topics in Redis: %v", known)
	}
	if !slices.Contains(f.allTopics(t), f.opts.Names.Commands) {
		t.Error("the command topic is gone")
	}
	if strings.Contains(f.log.String(), "level=WARN") {
		t.Error(f.log.String())
	}
}
