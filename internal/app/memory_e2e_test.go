package app

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"rankcache"
	"rankcache/internal/testkit"
	"rankcache/wire"
)

// TestBoardsBeyondTheBudgetAreAnsweredByRedis: with room for two boards the third
// is refused, reported, answered by Redis, and opens when one of the two goes.
func TestBoardsBeyondTheBudgetAreAnsweredByRedis(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	third := rankcache.BoardID(testkit.Name(t))
	h.nameRooms(t, h.star, h.small, third)
	h.waitWriter(t, `rules":4`)
	for _, b := range []rankcache.BoardID{h.star, h.small, third} {
		h.give(t, b, 3)
	}
	s := h.serve(t, "--memory-budget", "350KiB", "--hot-promote-rate", "1e9")
	s.WaitReady(time.Minute)
	s.waitSource(h.star, "local")
	s.waitSource(h.small, "local")
	if code, source := s.answers(third); code != http.StatusOK || source != "redis" {
		t.Errorf("the third board answers %d from %s", code, source)
	}
	s.waitStatus("memory.refused.0.board", string(third))
	if _, body := s.Get("admin", "/metrics"); !strings.Contains(body, "\nrankcache_memory_refused_boards{reason=\"over_budget\"} 1\n") {
		t.Error("no metric tells of the refused board")
	}
	if text := s.Log(); !strings.Contains(text, "board is not kept in memory") || !strings.Contains(text, "350 KiB") {
		t.Errorf("no log line tells of the refused board: %s", text)
	}
	h.nameRooms(t, h.small, third)
	s.waitSource(third, "local")
	s.waitSource(h.star, "redis")
	s.waitSource(h.small, "local")
}

// TestARefusedBoardMayBecomeHot by its own traffic, as any other.
func TestARefusedBoardMayBecomeHot(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	h.give(t, h.star, 3)
	s := h.serve(t, "--memory-budget", "1KiB", "--hot-promote-rate", "5")
	s.WaitReady(time.Minute)
	testkit.Eventually(t, 30*time.Second, func() error {
		for range 50 {
			if code, source := s.answers(h.star); source == "hot" {
				return nil
			} else if code != http.StatusOK {
				return fmt.Errorf("answers %d", code)
			}
		}
		return fmt.Errorf("not hot")
	})
}

// TestReadinessWaitsForBoardsThatOnlyRedisNames: the file names a room and Redis
// its boards; the sidecar is not ready before they are open.
func TestReadinessWaitsForBoardsThatOnlyRedisNames(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	h.give(t, h.star, 3)
	client := h.redis(t)
	uid := testkit.Name(t)
	must(t, client.SAdd(t.Context(), wire.DefaultNames().RoomKey(uid), string(h.star)).Err())
	h.writeRooms(t, fmt.Sprintf("rooms:\n- {uid: %q, mode: super-hot}\n", uid))
	for range 5 {
		s := h.serve(t)
		s.WaitReady(time.Minute)
		if _, source := s.answers(h.star); source != "local" {
			t.Fatalf("ready, and answers from %s", source)
		}
		s.Kill()
	}
}

// TestASidecarWithoutRoomsIsReady though there is nothing that it follows.
func TestASidecarWithoutRoomsIsReady(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	s := h.serve(t, "--rooms", "")
	s.WaitReady(time.Minute)
}
