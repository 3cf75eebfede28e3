package roomsync_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"rankcache"
	"rankcache/internal/roomsync"
	"rankcache/rooms"
)

// bypass returns one that begins now.
func bypass(board rankcache.BoardID, length time.Duration) rooms.Bypass {
	from := time.Now().UTC().Truncate(time.Millisecond)
	return rooms.Bypass{Board: board, All: board == "", By: "alice@desk", From: from, Until: from.Add(length)}
}

func wantBypassed(t *testing.T, f *roomsync.Follower, board rankcache.BoardID, want bool) {
	t.Helper()
	if got := f.Tiers().Bypassed(board); got != want {
		t.Errorf("%s bypassed: %v, want %v", board, got, want)
	}
}

// A bypass acts here at once and elsewhere with the next poll, changes no mode, and ends by
// the clock on all, and on those that can't read Redis.
func TestBypassReachesAllAndEndsByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hash := newShared(`{"match":"a","mode":"super-hot"}`)
		here := run(t, newFollower(roomsync.Config{Origin: &running{}, Shared: hash}))
		there := run(t, newFollower(roomsync.Config{Origin: &running{}, Shared: hash}))
		b := bypass("a", 10*time.Minute)
		must(t, here.SetBypass(t.Context(), b))
		wantBypassed(t, here, "a", true)
		wantBypassed(t, there, "a", false)
		nextPoll()
		wantBypassed(t, there, "a", true)
		wantBypassed(t, there, "b", false)
		wantSuperHot(t, there, "a")
		if got := there.Bypasses(); len(got) != 1 || got[0] != b {
			t.Errorf("bypasses %+v, want %+v", got, b)
		}
		restarted := run(t, newFollower(roomsync.Config{Origin: &running{}, Shared: hash}))
		wantBypassed(t, restarted, "a", true)
		if got := there.Status().Dynamic; got.Entries != 1 || got.BadEntries != 0 {
			t.Errorf("status %+v: a bypass is no entry", got)
		}

		hash.fail(errRedis)
		time.Sleep(time.Until(b.Until) - time.Millisecond)
		synctest.Wait()
		for _, f := range []*roomsync.Follower{here, there, restarted} {
			wantBypassed(t, f, "a", true)
		}
		nextPoll()
		for _, f := range []*roomsync.Follower{here, there, restarted} {
			wantBypassed(t, f, "a", false)
			wantSuperHot(t, f, "a")
		}
	})
}

func TestBypassEndsEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hash := newShared()
		here := run(t, newFollower(roomsync.Config{Origin: &running{}, Shared: hash}))
		there := run(t, newFollower(roomsync.Config{Origin: &running{}, Shared: hash}))
		must(t, here.SetBypass(t.Context(), bypass("a", time.Hour)))
		must(t, here.SetBypass(t.Context(), bypass("", time.Hour)))
		nextPoll()
		wantBypassed(t, there, "other", true)
		end := func(board rankcache.BoardID, all, want bool) {
			t.Helper()
			if found, err := there.EndBypass(t.Context(), board, all); found != want || err != nil {
				t.Errorf("ended: %v, %v; want %v", found, err, want)
			}
		}
		end("other", false, false)
		end("a", false, true)
		wantBypassed(t, there, "a", true) // with all
		end("", true, true)
		end("", true, false)
		wantBypassed(t, there, "a", false)
		nextPoll()
		wantBypassed(t, here, "a", false)

		must(t, here.SetBypass(t.Context(), bypass("a", time.Hour)))
		must(t, here.SetBypass(t.Context(), bypass("b", time.Hour)))
		nextPoll()
		end("", true, true) // those of single boards, too
		nextPoll()
		wantBypassed(t, here, "a", false)
		wantBypassed(t, here, "b", false)
		if len(hash.fields) != 0 {
			t.Errorf("left in the hash: %v", hash.fields)
		}
	})
}

// A later bypass replaces the last one of its board, and takes away what has ended.
func TestBypassAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hash := newShared()
		f := run(t, newFollower(roomsync.Config{Origin: &running{}, Shared: hash}))
		must(t, f.SetBypass(t.Context(), bypass("a", time.Second)))
		must(t, f.SetBypass(t.Context(), bypass("a", time.Minute)))
		time.Sleep(30 * time.Second)
		wantBypassed(t, f, "a", true)
		must(t, f.SetBypass(t.Context(), bypass("a", time.Second)))
		nextPoll()
		nextPoll()
		wantBypassed(t, f, "a", false)
		time.Sleep(2 * time.Minute)
		must(t, f.SetBypass(t.Context(), bypass("b", time.Second)))
		if len(hash.fields) != 1 {
			t.Errorf("in the hash: %v", hash.fields)
		}
	})
}

func TestBypassLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := run(t, newFollower(roomsync.Config{Origin: &running{}, Shared: newShared()}))
		for i := range roomsync.MaxBypasses {
			must(t, f.SetBypass(t.Context(), bypass(rankcache.BoardID(fmt.Sprint("b", i)), time.Hour)))
		}
		if err := f.SetBypass(t.Context(), bypass("more", time.Hour)); err == nil || !strings.Contains(err.Error(), "limit") {
			t.Errorf("one more: %v", err)
		}
		wantBypassed(t, f, "more", false)
		must(t, f.SetBypass(t.Context(), bypass("b7", time.Minute)))
		must(t, f.SetBypass(t.Context(), bypass("", time.Hour)))
		wantBypassed(t, f, "more", true)
	})
}

func TestBypassIsRefusedWithoutRedis(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hash := newShared()
		f := run(t, newFollower(roomsync.Config{Origin: &running{}, Shared: hash}))
		hash.fail(errRedis)
		if err := f.SetBypass(t.Context(), bypass("a", time.Hour)); !errors.Is(err, errRedis) {
			t.Errorf("set: %v", err)
		}
		wantBypassed(t, f, "a", false)
	})
}

func TestBypassHandler(t *testing.T) {
	f := newFollower(roomsync.Config{Origin: &running{}, Shared: newShared()})
	must(t, f.Load())
	for _, c := range []struct {
		method, target, body string
		status               int
		want                 string
	}{
		{"POST", "/rooms/bypass", `{"board":"a","for_s":600,"by":"alice"}`, 200, `{"board":"a","by":"alice","from":"`},
		{"GET", "/rooms", ``, 200, `"bypasses":[{"board":"a","by":"alice"`},
		{"POST", "/rooms/bypass", `{"all":true,"for_s":600,"by":"alice"}`, 200, `{"all":true,"by":"alice"`},
		{"GET", "/rooms", ``, 200, `"bypasses":[{"all":true`},
		{"POST", "/rooms/bypass", `{"all":true,"for_s":600}`, 400, `bad_argument body`},
		{"POST", "/rooms/bypass", strings.Repeat(" ", rooms.MaxBypassJSON+1), 400, `body_too_large`},
		{"DELETE", "/rooms/bypass?board=b", ``, 400, `unknown_room`},
		{"DELETE", "/rooms/bypass", ``, 400, `bad_argument board`},
		{"DELETE", "/rooms/bypass?board=a&all=true", ``, 400, `bad_argument board`},
		{"DELETE", "/rooms/bypass?all=true", ``, 204, ``},
		{"GET", "/rooms", ``, 200, `"bypasses":[],`},
	} {
		if status, body := request(f, c.method, c.target, c.body); status != c.status || !strings.Contains(body, c.want) {
			t.Errorf("%s %s %.60s: %d %s, want %d %s", c.method, c.target, c.body, status, body, c.status, c.want)
		}
	}
}
