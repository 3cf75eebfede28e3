package roomsync_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"rankcache"
	"rankcache/internal/roomsync"
	"rankcache/rooms"
)

// running is a roomsync.Origin in memory.
type running struct {
	mu     sync.Mutex
	boards map[string][]rankcache.BoardID
	err    error
}

func (r *running) set(uid string, err error, boards ...rankcache.BoardID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = err
	r.boards = map[string][]rankcache.BoardID{uid: boards}
}

func (r *running) RoomBoards(_ context.Context, uids []string) (map[string][]rankcache.BoardID, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return nil, r.err
	}
	got := map[string][]rankcache.BoardID{}
	for _, uid := range uids {
		got[uid] = slices.Sorted(slices.Values(r.boards[uid]))
	}
	return got, nil
}

const superHot88 = "rooms:\n- {uid: \"88\", mode: super-hot}\n"

func TestBoardsFollowTheRoomSet(t *testing.T) {
	path := writeFile(t, superHot88)
	synctest.Test(t, func(t *testing.T) {
		redis := &running{}
		redis.set("88", nil, "b", "a")
		f := start(t, path, redis)
		wantSuperHot(t, f, "a", "b")
		redis.set("88", nil, "b", "c")
		nextPoll()
		wantSuperHot(t, f, "b", "c")

		redis.set("88", rankcache.ErrUnavailable)
		nextPoll()
		wantSuperHot(t, f, "b", "c") // the last boards stay
		redis.set("88", nil)
		nextPoll()
		wantSuperHot(t, f)
	})
}

func TestUnresolvedUntilRedisAnswers(t *testing.T) {
	path := writeFile(t, superHot88)
	synctest.Test(t, func(t *testing.T) {
		redis := &running{err: rankcache.ErrUnavailable}
		f := start(t, path, redis)
		if f.Resolved() {
			t.Error("resolved without an answer")
		}
		redis.set("88", nil, "a")
		nextPoll()
		if !f.Resolved() {
			t.Error("not resolved by an answer")
		}
	})
}

// A ConfigMap is a directory of links through ..data, which Kubernetes replaces
// by a rename.
func TestConfigMapSwap(t *testing.T) {
	dir := t.TempDir()
	swap := func(generation, content string) {
		must(t, os.Mkdir(filepath.Join(dir, generation), 0o755))
		must(t, os.WriteFile(filepath.Join(dir, generation, "rooms.yaml"), []byte(content), 0o644))
		must(t, os.Symlink(generation, filepath.Join(dir, "..tmp")))
		must(t, os.Rename(filepath.Join(dir, "..tmp"), filepath.Join(dir, "..data")))
	}
	swap("..1", `boards: [{match: "a", mode: super-hot}]`)
	must(t, os.Symlink("..data/rooms.yaml", filepath.Join(dir, "rooms.yaml")))
	synctest.Test(t, func(t *testing.T) {
		f := start(t, filepath.Join(dir, "rooms.yaml"), &running{})
		wantSuperHot(t, f, "a")
		swap("..2", `boards: [{match: "b", mode: super-hot}]`)
		nextPoll()
		wantSuperHot(t, f, "b")
	})
}

func TestBadFileIsRejectedAndTheLastGoodOneStays(t *testing.T) {
	path := writeFile(t, `boards: [{match: "a", mode: super-hot}]`)
	synctest.Test(t, func(t *testing.T) {
		f := start(t, path, &running{})
		must(t, os.WriteFile(path, []byte("boards:\n- {match: \"b\", mode: super-hot}\n- {match: 1_2, mode: hot}"), 0o644))
		nextPoll()
		wantSuperHot(t, f, "a")
		if got := f.Status().File.Error; !strings.Contains(got, path) || !strings.Contains(got, "line 3") {
			t.Errorf("status has %q, want file and line", got)
		}
		must(t, os.Remove(path))
		nextPoll()
		wantSuperHot(t, f, "a")
		must(t, os.WriteFile(path, []byte(`boards: [{match: "c", mode: super-hot}]`), 0o644))
		nextPoll()
		wantSuperHot(t, f, "c")
		if got := f.Status().File.Error; got != "" {
			t.Errorf("error stays: %q", got)
		}
	})
}

const minuteClass = `classes: [{name: gift, board: "gift:{zone}:{period}", period: 1m, lead: 10s, linger: 0s, mode: super-hot, dims: {zone: ["7"]}}]`

// Virtual time begins with the year 2000.
func TestBoardsOfAClassFollowItsPeriods(t *testing.T) {
	path := writeFile(t, strings.Replace(minuteClass, "linger: 0s", "linger: 20s", 1))
	synctest.Test(t, func(t *testing.T) {
		f := start(t, path, &running{})
		wantSuperHot(t, f, "gift:7:19991231-1440", "gift:7:20000101-0001") // the grace of the ended one is not over
		time.Sleep(45 * time.Second)
		synctest.Wait()
		wantSuperHot(t, f, "gift:7:20000101-0001")
		time.Sleep(5 * time.Second)
		nextPoll()
		wantSuperHot(t, f, "gift:7:20000101-0001", "gift:7:20000101-0002")
		time.Sleep(10 * time.Second)
		synctest.Wait()
		wantSuperHot(t, f, "gift:7:20000101-0001", "gift:7:20000101-0002")
		time.Sleep(5 * time.Second)
		synctest.Wait()
		wantSuperHot(t, f, "gift:7:20000101-0001", "gift:7:20000101-0002")
		if _, lingering := f.Tiers().ByPriority(rooms.ModeSuperHot); !slices.Equal(lingering, []rankcache.BoardID{"gift:7:20000101-0001"}) {
			t.Errorf("%v linger", lingering)
		}
		time.Sleep(20 * time.Second)
		synctest.Wait()
		wantSuperHot(t, f, "gift:7:20000101-0002")
		if mode := f.Mode("gift:7:20000101-0001", ""); mode != rooms.ModeNone {
			t.Errorf("the ended board is %s", mode)
		}
	})
}

func TestWhatCanNotChangeIsRefusedAndTheOldClassesStay(t *testing.T) {
	path := writeFile(t, minuteClass)
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(10 * time.Second) // the grace of the period before is over
		f := start(t, path, &running{})
		must(t, os.WriteFile(path, []byte(strings.Replace(minuteClass, "1m", "2m", 1)), 0o644))
		nextPoll()
		wantSuperHot(t, f, "gift:7:20000101-0001")
		if got := f.Status().File; !strings.Contains(got.Error, `line 1: class gift: period can't change from "1m" to "2m"`) || got.Classes != 1 || f.File().Class("gift").Calendar().String() != "1m" {
			t.Errorf("status is %+v", got)
		}
		must(t, os.WriteFile(path, []byte(strings.Replace(minuteClass, "[\"7\"]", "[\"8\"]", 1)), 0o644))
		nextPoll()
		wantSuperHot(t, f, "gift:8:20000101-0001")
		if got := f.File().Class("gift").Dims["zone"]; !slices.Equal(got, []string{"8"}) {
			t.Errorf("the file in force has the zones %q", got)
		}
		if got := f.Status().File.Error; got != "" {
			t.Errorf("error stays: %q", got)
		}
	})
}

func TestLoadFailsOnABadFile(t *testing.T) {
	for _, path := range []string{writeFile(t, "rooms: x"), filepath.Join(t.TempDir(), "none")} {
		f := newFollower(roomsync.Config{File: path, Origin: &running{}})
		if err := f.Load(); err == nil {
			t.Errorf("%s: loaded", path)
		} else if strings.Contains(path, "none") && !errors.Is(err, os.ErrNotExist) {
			t.Errorf("got %v", err)
		}
	}
}

func newFollower(cfg roomsync.Config) *roomsync.Follower {
	cfg.Every, cfg.Log = time.Second, slog.New(slog.DiscardHandler)
	return roomsync.New(cfg, prometheus.NewRegistry())
}

func start(t *testing.T, path string, redis roomsync.Origin) *roomsync.Follower {
	t.Helper()
	return run(t, newFollower(roomsync.Config{File: path, Origin: redis}))
}

// run loads and runs a follower inside a synctest bubble and waits for its first
// poll.
func run(t *testing.T, f *roomsync.Follower) *roomsync.Follower {
	t.Helper()
	must(t, f.Load())
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- f.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		must(t, <-done)
	})
	synctest.Wait()
	return f
}

// nextPoll waits, in virtual time, for another poll.
func nextPoll() {
	time.Sleep(time.Second * 11 / 10)
	synctest.Wait()
}

func wantSuperHot(t *testing.T, f *roomsync.Follower, want ...rankcache.BoardID) {
	t.Helper()
	if got := f.Tiers().Boards(rooms.ModeSuperHot); !slices.Equal(got, want) {
		t.Errorf("super-hot boards %v, want %v", got, want)
	}
}

func writeFile(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rooms.yaml")
	must(t, os.WriteFile(path, []byte(content), 0o644))
	return path
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
