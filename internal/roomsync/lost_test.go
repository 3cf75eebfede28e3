package roomsync_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"rankcache"
	"rankcache/internal/roomsync"
	"rankcache/rooms"
)

// TestRoomsThatRedisHasLost: rooms set at run time and boards of rooms that are gone with the history of Redis stay in force for a
// time, until Redis tells them again; those that are deleted go.
func TestRoomsThatRedisHasLost(t *testing.T) {
	path := writeFile(t, superHot88)
	synctest.Test(t, func(t *testing.T) {
		redis, hash := &running{}, newShared(`{"match":"b","mode":"super-hot"}`, `{"match":"c","mode":"super-hot"}`)
		redis.set("88", nil, "a")
		var history atomic.Value
		history.Store("one")
		f := run(t, newFollower(roomsync.Config{File: path, Origin: redis, Shared: hash, Histories: func(_ context.Context, boards []rankcache.BoardID, _ bool) ([]string, error) {
			if history.Load() == "" {
				return nil, errors.New("away")
			}
			return slices.Repeat([]string{history.Load().(string)}, len(boards)), nil
		}}))
		wantSuperHot(t, f, "a", "b", "c")
		nextPoll() // its history is asked when something is in force
		remove(t, hash, "board:c")
		nextPoll()
		wantSuperHot(t, f, "a", "b")

		history.Store("") // it does not tell at first
		redis.set("88", nil)
		remove(t, hash, "board:b")
		nextPoll()
		wantSuperHot(t, f, "a", "b")
		history.Store("two")
		nextPoll()
		time.Sleep(time.Minute)
		wantSuperHot(t, f, "a", "b")

		redis.set("88", nil, "d") // it tells again
		nextPoll()
		wantSuperHot(t, f, "b", "d")
		redis.set("88", nil)
		nextPoll()
		wantSuperHot(t, f, "b")
		time.Sleep(10 * time.Minute)
		wantSuperHot(t, f)
	})
}

func remove(t *testing.T, hash *shared, field string) {
	t.Helper()
	if had, err := hash.Remove(t.Context(), field); err != nil || !had {
		t.Errorf("%s: %v, %v", field, had, err)
	}
}

// TestDeletedThoughOtherBoardsAreHot: what an operator deletes goes, whatever boards are super-hot by then, and on which servers.
func TestDeletedThoughOtherBoardsAreHot(t *testing.T) {
	for name, change := range map[string]func(*shared){
		"one more":  func(hash *shared) { hash.put(t, "d", rooms.ModeSuperHot) },
		"one fewer": func(hash *shared) { hash.put(t, "c", rooms.ModeBlocked) },
		"none":      func(hash *shared) { hash.put(t, "b", rooms.ModeBlocked); hash.put(t, "c", rooms.ModeBlocked) },
	} {
		synctest.Test(t, func(t *testing.T) {
			hash := newShared(`{"match":"b","mode":"super-hot"}`, `{"match":"c","mode":"super-hot"}`)
			f := run(t, newFollower(roomsync.Config{Origin: &running{}, Shared: hash, Histories: func(_ context.Context, boards []rankcache.BoardID, _ bool) (names []string, _ error) {
				for _, b := range boards {
					names = append(names, "server of "+string(b))
				}
				return names, nil
			}}))
			nextPoll()
			change(hash)
			nextPoll()
			remove(t, hash, "board:b")
			nextPoll()
			if mode := f.Mode("b", ""); mode != f.Mode("another", "") {
				t.Errorf("%s: it stays in force: %v", name, mode)
			}
		})
	}
}

// TestDeletedWhileHistoryIsNotTold: where Redis does not tell its history any more, what is deleted goes after a time.
func TestDeletedWhileHistoryIsNotTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hash := newShared(`{"match":"b","mode":"super-hot"}`)
		var tells atomic.Bool
		tells.Store(true)
		f := run(t, newFollower(roomsync.Config{Origin: &running{}, Shared: hash, Histories: func(_ context.Context, boards []rankcache.BoardID, _ bool) ([]string, error) {
			name := ""
			if tells.Load() {
				name = "one"
			}
			return slices.Repeat([]string{name}, len(boards)), nil
		}}))
		nextPoll()
		tells.Store(false)
		remove(t, hash, "board:b")
		nextPoll()
		wantSuperHot(t, f, "b")
		time.Sleep(11 * time.Minute)
		wantSuperHot(t, f)
	})
}

// TestHistoryIsAskedOnceAPoll: however many rooms are gone at a poll, and though Redis does not tell.
func TestHistoryIsAskedOnceAPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hash := newShared()
		for i := range 20 {
			hash.put(t, fmt.Sprint("b", i), rooms.ModeSuperHot)
		}
		var asked, away atomic.Int64
		run(t, newFollower(roomsync.Config{Origin: &running{}, Shared: hash, Histories: func(_ context.Context, boards []rankcache.BoardID, _ bool) ([]string, error) {
			if asked.Add(1); away.Load() > 0 {
				return nil, errors.New("away")
			}
			return slices.Repeat([]string{"one"}, len(boards)), nil
		}}))
		nextPoll()
		for i := range 20 {
			remove(t, hash, fmt.Sprint("board:b", i))
		}
		away.Store(1)
		before := asked.Load()
		nextPoll()
		if n := asked.Load() - before; n < 1 || n > 2 { // before the hash is read, and after it
			t.Errorf("the history is asked %d times", n)
		}
	})
}

func (s *shared) put(t *testing.T, board string, mode rooms.Mode) {
	t.Helper()
	must(t, s.Put(t.Context(), "board:"+board, fmt.Sprintf(`{"match":%q,"mode":%q}`, board, mode)))
}
