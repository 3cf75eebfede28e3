package roomsync_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/internal/roomsync"
	"rankcache/internal/testkit"
	"rankcache/rooms"
	"rankcache/wire"
)

// A board whose key is one of rankcache's own, as they are configured, is named by no file, entry
// or class.
func TestOwnKeysAreNoBoards(t *testing.T) {
	names := wire.DefaultNames()
	names.Rooms = "lb:rooms"
	config := func(file string, hash roomsync.Shared) roomsync.Config {
		return roomsync.Config{File: writeFile(t, file), Origin: &running{}, Shared: hash, CheckBoard: names.CheckBoard}
	}
	for file, want := range map[string]string{
		`rooms: [{uid: "88", mode: super-hot, boards: ["lb:rooms"]}]`:                                  `room "88"`,
		`boards: [{match: "lb:rooms", mode: hot}]`:                                                     "bad board id",
		`classes: [{name: x, board: "lb:{a}", period: none, mode: hot, dims: {a: ["7", "rooms"]}}]`:    "line 1: class x",
		`classes: [{name: x, board: "lb:{a}:{period}", period: day, mode: hot, dims: {a: ["rooms"]}}]`: "line 1: class x",
		`rooms: [{uid: "88", mode: super-hot, boards: ["1_2_3", "rankcache:ends"]}]`:                   "bad board id",
	} {
		if err := newFollower(config(file, newShared())).Load(); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "rankcache's own") {
			t.Errorf("%s: %v, want %s", file, err, want)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		hash := newShared(`{"match":"lb:rooms","mode":"hot"}`, `{"uid":"88","mode":"super-hot","boards":["a"]}`)
		f := run(t, newFollower(config("rooms: []", hash)))
		wantSuperHot(t, f, "a")
		if got := f.Status().Dynamic; got.Entries != 1 || got.BadEntries != 1 || got.Bad[0].Field != "board:lb:rooms" {
			t.Errorf("status %+v", got)
		}
		for _, entry := range []rooms.Entry{parse(`{"uid":"89","mode":"hot","boards":["lb:rooms"]}`), parse(`{"match":"lb:rooms","mode":"super-hot"}`)} {
			if err := f.Set(t.Context(), entry); !errors.Is(err, rankcache.ErrBoard) {
				t.Errorf("set %v: %v", entry, err)
			}
		}
		if status, body := request(f, "POST", "/rooms", `{"match":"lb:rooms","mode":"hot"}`); status != 400 || body != "bad_argument body" {
			t.Errorf("%d %s", status, body)
		}
		if err := f.SetClasses(t.Context(), []byte(`classes: [{name: x, board: "lb:{a}", period: none, mode: hot, dims: {a: ["rooms"]}}]`)); err == nil || !strings.Contains(err.Error(), "rankcache's own") {
			t.Errorf("classes: %v", err)
		}
	})
}

// A key of another type holds nothing that was set at run time: who waits for that goes on, and
// the status tells why.
func TestAKeyOfAnotherTypeHoldsNobodyUp(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: testkit.Redis(t), Protocol: 2})
	t.Cleanup(func() { client.Close() })
	key := testkit.Name(t)
	must(t, client.ZAdd(t.Context(), key, redis.Z{Member: "m", Score: 1}).Err())
	f := newFollower(roomsync.Config{File: writeFile(t, "boards: [{match: a, mode: super-hot}]"), Origin: &running{}, Shared: roomsync.NewHash(client, key, time.Minute)})
	must(t, f.Load())
	go func() { _ = f.Run(t.Context()) }()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	f.AwaitShared(ctx)
	if got := f.Status().Dynamic.Error; !f.SharedRead() || !strings.Contains(got, key) || !strings.Contains(got, "delete the key") || !strings.Contains(got, "WRONGTYPE") {
		t.Errorf("read %v, %q", f.SharedRead(), got)
	}
	wantSuperHot(t, f, "a")
	must(t, client.Del(t.Context(), key).Err())
	must(t, client.HSet(t.Context(), key, "board:b", `{"match":"b","mode":"super-hot"}`).Err())
	testkit.Eventually(t, time.Minute, func() error {
		if got := f.Status().Dynamic; got.Entries != 1 || got.Error != "" {
			return fmt.Errorf("status %+v", got)
		}
		return nil
	})
}
