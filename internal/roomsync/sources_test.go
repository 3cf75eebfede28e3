package roomsync_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"rankcache"
	"rankcache/internal/roomsync"
	"rankcache/rooms"
)

// shared is a roomsync.Shared in memory.
type shared struct {
	mu     sync.Mutex
	fields map[string]string
	err    error
}

func (s *shared) Key() string { return "the:hash" }

func (s *shared) Entries(context.Context) (map[string]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.fields), s.err
}

func (s *shared) Put(_ context.Context, field, value string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.fields[field] = value
	}
	return s.err
}

func (s *shared) Remove(_ context.Context, field string) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, found := s.fields[field]
	if s.err == nil {
		delete(s.fields, field)
	}
	return found && s.err == nil, s.err
}

func (s *shared) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

func newShared(entries ...string) *shared {
	s := &shared{fields: map[string]string{}}
	for _, text := range entries {
		s.fields[parse(text).Field()] = text
	}
	return s
}

func parse(text string) rooms.Entry {
	e, err := rooms.ParseEntry([]byte(text))
	if err != nil {
		panic(err)
	}
	return e
}

var errRedis = errors.New("redis is down")

func TestFileOverridesHash(t *testing.T) {
	path := writeFile(t, "rooms:\n- {uid: \"88\", mode: hot, boards: [\"a\"]}\nboards:\n- {match: \"b\", mode: super-hot}\n")
	synctest.Test(t, func(t *testing.T) {
		hash := newShared(`{"uid":"88","mode":"blocked"}`, `{"match":"b","mode":"hot"}`,
			`{"match":"c","mode":"super-hot"}`, `{"uid":"89","mode":"super-hot"}`)
		redis := &running{}
		redis.set("89", nil, "d")
		f := run(t, newFollower(roomsync.Config{File: path, Origin: redis, Shared: hash}))
		wantSuperHot(t, f, "b", "c", "d")
		if got := f.Mode("a", "88"); got != rooms.ModeHot {
			t.Errorf("room 88 is %v, want hot, as in the file", got)
		}
	})
}

func TestSetIsVisibleLocallyAtOnceAndElsewhereAfterAPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hash := newShared()
		here := run(t, newFollower(roomsync.Config{Origin: &running{}, Shared: hash}))
		there := run(t, newFollower(roomsync.Config{Origin: &running{}, Shared: hash}))
		must(t, here.Set(t.Context(), parse(`{"match":"a","mode":"super-hot"}`)))
		wantSuperHot(t, here, "a")
		nextPoll()
		wantSuperHot(t, there, "a")

		if ok, err := there.Unset(t.Context(), rooms.BoardField("a")); !ok || err != nil {
			t.Errorf("unset: %v, %v", ok, err)
		}
		wantSuperHot(t, there)
		if ok, err := there.Unset(t.Context(), rooms.BoardField("a")); ok || err != nil {
			t.Errorf("unset again: %v, %v", ok, err)
		}
		nextPoll()
		wantSuperHot(t, here)
	})
}

func TestLastEntriesStayDuringRedisOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hash := newShared(`{"match":"a","mode":"super-hot"}`)
		f := run(t, newFollower(roomsync.Config{Origin: &running{}, Shared: hash}))
		hash.fail(errRedis)
		nextPoll()
		wantSuperHot(t, f, "a")
		if got := f.Status().Dynamic; got.Error != errRedis.Error() || got.Entries != 1 {
			t.Errorf("status %+v", got)
		}
		if err := f.Set(t.Context(), parse(`{"match":"b","mode":"super-hot"}`)); !errors.Is(err, errRedis) {
			t.Errorf("set: %v", err)
		}
		wantSuperHot(t, f, "a")
		hash.fail(nil)
		nextPoll()
		if got := f.Status().Dynamic.Error; got != "" {
			t.Errorf("error stays: %s", got)
		}
	})
}

func TestBadEntriesAreIgnoredAndReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hash := newShared(`{"match":"a","mode":"super-hot"}`)
		hash.fields["board:b"] = `{"match":"c","mode":"super-hot"}` // another field's
		hash.fields["junk"] = `<html>`
		f := run(t, newFollower(roomsync.Config{Origin: &running{}, Shared: hash}))
		wantSuperHot(t, f, "a")
		got := f.Status().Dynamic
		if got.Entries != 1 || got.BadEntries != 2 || got.Bad[0].Field != "board:b" || !strings.Contains(got.Bad[0].Reason, "board:c") {
			t.Errorf("status %+v", got)
		}
	})
}

// Readiness waits for the boards of the first tiers, so they must be complete; but
// an outage of Redis must not block it.
func TestFirstTiersAreCompleteUnlessRedisIsDown(t *testing.T) {
	path := writeFile(t, superHot88)
	for _, outage := range []error{nil, errRedis} {
		synctest.Test(t, func(t *testing.T) {
			hash := newShared(`{"match":"c","mode":"super-hot"}`)
			hash.fail(outage)
			redis := &running{}
			redis.set("88", outage, "a")
			first := make(chan []rankcache.BoardID, 1)
			var once sync.Once
			f := newFollower(roomsync.Config{File: path, Origin: redis, Shared: hash, Changed: func(t *rooms.Tiers) {
				once.Do(func() { first <- t.Boards(rooms.ModeSuperHot) })
			}})
			run(t, f)
			if got := <-first; (outage == nil) != (len(got) == 2) {
				t.Errorf("redis %v: first tiers have %v", outage, got)
			}
			if f.Resolved() != (outage == nil) {
				t.Errorf("redis %v: resolved %v", outage, f.Resolved())
			}
		})
	}
}

// A sidecar without a rooms file publishes empty tiers.
func TestNoFileIsPublished(t *testing.T) {
	calls := 0
	f := newFollower(roomsync.Config{Changed: func(*rooms.Tiers) { calls++ }})
	must(t, f.Load())
	if calls != 1 || !f.Resolved() {
		t.Errorf("Changed was called %d times, resolved %v", calls, f.Resolved())
	}
}

func TestSetRejectsMoreThanMaxDynamic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hash := newShared()
		for i := range roomsync.MaxDynamic {
			e := fmt.Sprintf(`{"match":"b%d","mode":"hot"}`, i)
			hash.fields[parse(e).Field()] = e
		}
		f := run(t, newFollower(roomsync.Config{Origin: &running{}, Shared: hash}))
		if err := f.Set(t.Context(), parse(`{"match":"more","mode":"hot"}`)); err == nil || !strings.Contains(err.Error(), "limit of 1000 rooms and boards") {
			t.Errorf("got %v", err)
		}
		must(t, f.Set(t.Context(), parse(`{"match":"b7","mode":"blocked"}`)))
		if got := f.Mode("b7", ""); got != rooms.ModeBlocked {
			t.Errorf("b7 is %v", got)
		}
	})
}
