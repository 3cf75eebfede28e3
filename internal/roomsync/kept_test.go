package roomsync_test

import (
	"io/fs"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"

	"rankcache"
	"rankcache/internal/roomsync"
)

// disk is a roomsync.Kept in memory.
type disk struct {
	mu    sync.Mutex
	data  []byte
	saves int
	full  bool
}

func (d *disk) SaveRooms(data []byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.full {
		return syscall.ENOSPC
	}
	d.data, d.saves = data, d.saves+1
	return nil
}

func (d *disk) LoadRooms() ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.data == nil {
		return nil, fs.ErrNotExist
	}
	return d.data, nil
}

// TestRoomsOfTheProcessBefore: without Redis what it has told last is in force, until it tells
// something else.
func TestRoomsOfTheProcessBefore(t *testing.T) {
	path := writeFile(t, superHot88)
	synctest.Test(t, func(t *testing.T) {
		kept, redis := &disk{}, &running{}
		redis.set("88", nil, "a")
		hash := newShared(`{"match":"b","mode":"super-hot"}`)
		hash.fields["classes"] = "classes: [{name: c, board: c, period: none, mode: super-hot}]"
		follow := func(redis *running, hash *shared) *roomsync.Follower {
			return run(t, newFollower(roomsync.Config{File: path, Origin: redis, Shared: hash, Kept: kept}))
		}
		wantSuperHot(t, follow(redis, hash), "a", "b", "c")
		nextPoll()
		if kept.saves != 1 {
			t.Errorf("saved %d times, want once", kept.saves)
		}

		away, none := &running{err: rankcache.ErrUnavailable}, newShared()
		none.fail(errRedis)
		f := follow(away, none)
		wantSuperHot(t, f, "a", "b", "c")
		if f.Resolved() || kept.saves != 1 {
			t.Errorf("resolved %v without Redis, saved %d times", f.Resolved(), kept.saves)
		}
		none.fail(nil) // nothing is set any more
		nextPoll()
		wantSuperHot(t, f, "a")
		away.set("88", nil, "d")
		nextPoll()
		wantSuperHot(t, f, "d")
		if kept.saves != 2 {
			t.Errorf("saved %d times, want twice", kept.saves)
		}

		kept.data = []byte(`{"fields":{"board:b":"{"},"running":{"88":["a b","e"]}}`)
		away.set("88", rankcache.ErrUnavailable)
		none.fail(errRedis)
		wantSuperHot(t, follow(away, none), "e")
		kept.data = []byte(`{`)
		wantSuperHot(t, follow(away, none))
	})
}

// TestRoomsAreKeptOnceTheDiskTakesThem: a save that failed is tried again, though nothing has changed since.
func TestRoomsAreKeptOnceTheDiskTakesThem(t *testing.T) {
	path := writeFile(t, superHot88)
	synctest.Test(t, func(t *testing.T) {
		kept, redis := &disk{full: true}, &running{}
		redis.set("88", nil, "a")
		run(t, newFollower(roomsync.Config{File: path, Origin: redis, Shared: newShared(), Kept: kept}))
		nextPoll()
		kept.mu.Lock()
		kept.full = false
		kept.mu.Unlock()
		nextPoll()
		if _, err := kept.LoadRooms(); err != nil {
			t.Errorf("what Redis told is not kept: %v", err)
		}
	})
}
