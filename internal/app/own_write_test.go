package app

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/internal/testkit"
)

// TestOwnWritesAreRead writes from several clients at once and reads each write
// back with its seq and its state, from a super-hot and from a small board, while others read
// the same boards: the answer always has the write.
func TestOwnWritesAreRead(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	h.give(t, h.star, 2)
	h.give(t, h.small, 2)
	s := h.serve(t)
	s.WaitReady(time.Minute)
	over := make(chan struct{})
	var readers, writers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for {
				select {
				case <-over:
					return
				default:
					s.Get("data", "/v1/boards/"+string(h.star)+"/top")
					s.Get("data", "/v1/boards/"+string(h.small)+"/top")
				}
			}
		})
	}
	var local atomic.Int64
	for i := range 4 {
		writers.Go(func() {
			for n := range 25 {
				for _, board := range []rankcache.BoardID{h.star, h.small} {
					if h.ownWrite(t, s, board, fmt.Sprintf("own%d", i), n+1) == "local" {
						local.Add(1)
					}
				}
			}
		})
	}
	writers.Wait()
	close(over)
	readers.Wait()
	if local.Load() == 0 {
		t.Error("no write was read from the local copy, though each was waited for")
	}
}

// written is what the tests read of the writer's answer.
type written struct {
	Seq   uint64
	State string
}

// write has the member's n-th point counted.
func (h *fixture) write(t *testing.T, board rankcache.BoardID, member string, n int) (wrote written) {
	body := fmt.Sprintf(`{"order":"%s-%d","board":%q,"member":%q,"op":"incr","delta":1}`, member, n, board, member)
	resp, err := http.Post(h.writer.URL("scores", "/v1/scores"), "application/json", strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return wrote
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&wrote); err != nil || wrote.Seq == 0 {
		t.Errorf("write %d of %s: %s, %v", n, member, resp.Status, err)
	}
	return wrote
}

// ownWrite gives the member one point, its n-th, and reads it back by seq and by state.
// It returns what answered.
func (h *fixture) ownWrite(t *testing.T, s *child, board rankcache.BoardID, member string, n int) (source string) {
	wrote := h.write(t, board, member, n)
	for _, least := range []string{fmt.Sprintf("min_seq=%d", wrote.Seq), "min_state=" + wrote.State} {
		var read struct {
			Seq    uint64
			Score  float64
			Source string
		}
		code, text := s.Get("data", fmt.Sprintf("/v1/boards/%s/members/%s?%s&wait_ms=500", board, member, least))
		if err := json.Unmarshal([]byte(text), &read); err != nil || code != 200 || read.Score != float64(n) || read.Seq < wrote.Seq {
			t.Errorf("write %d of %s with %s is read as %d %s", n, member, least, code, text)
		}
		source = read.Source
	}
	return source
}

// TestLostWritesAreNotRead: Redis loses acknowledged writes and gives their seqs out again,
// as after a failover. No read with the state of a lost write is answered as if it were
// there, by Redis or by the local copy, while that of a later write is. Once the run has ended nobody knows.
func TestLostWritesAreNotRead(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	h.give(t, h.star, 2)
	h.give(t, h.small, 2)
	s := h.serve(t)
	s.WaitReady(time.Minute)
	client := redis.NewClient(&redis.Options{Addr: testkit.Redis(t), Protocol: 2})
	t.Cleanup(func() { client.Close() })
	for _, board := range []rankcache.BoardID{h.star, h.small} {
		read := func(state string) (int, string) {
			return s.Get("data", fmt.Sprintf("/v1/boards/%s/top?min_state=%s&wait_ms=2000", board, state))
		}
		kept := h.write(t, board, "kept", 1)
		restore := saveKeys(t, client, board)
		lost := h.write(t, board, "lost", 1)
		if code, text := read(lost.State); code != http.StatusOK {
			t.Errorf("%s before the loss: %d %s", board, code, text)
		}
		restore()
		if code, text := read(kept.State); code != http.StatusOK {
			t.Errorf("%s: a write that is there: %d %s", board, code, text)
		}
		instead := h.write(t, board, "instead", 1)
		if instead.Seq != lost.Seq {
			t.Fatalf("%s: seq %d after the loss, want %d again", board, instead.Seq, lost.Seq)
		}
		testkit.Eventually(t, 30*time.Second, func() error { // the copy has the lost write until it is compared
			code, text := read(instead.State)
			if code != http.StatusOK {
				return fmt.Errorf("%s: %d %s", board, code, text)
			}
			return nil
		})
		for range 20 {
			if code, text := read(lost.State); code != http.StatusPreconditionFailed || !strings.Contains(text, `"write_lost"`) {
				t.Errorf("%s: the lost write is answered %d %s", board, code, text)
			}
		}
		must(t, client.ZAdd(t.Context(), string(board), redis.Z{Member: "by hand", Score: 1}).Err()) // its next change begins a run
		adopted := h.write(t, board, "adopted", 1)
		testkit.Eventually(t, 30*time.Second, func() error {
			if code, text := read(adopted.State); code != http.StatusOK {
				return fmt.Errorf("%s: %d %s", board, code, text)
			}
			return nil
		})
		for _, state := range []string{lost.State, instead.State} {
			if code, text := read(state); code != http.StatusPreconditionFailed || !strings.Contains(text, `"unknown_state"`) {
				t.Errorf("%s: the state of a run that has ended is answered %d %s", board, code, text)
			}
		}
	}
}

// saveKeys returns what gives a board's keys the values that they have now.
func saveKeys(t *testing.T, client *redis.Client, board rankcache.BoardID) (restore func()) {
	t.Helper()
	ctx := t.Context()
	keys := append(client.Keys(ctx, "{"+string(board)+"}*").Val(), client.Keys(ctx, string(board)).Val()...)
	dumps := map[string]string{}
	for _, key := range keys {
		dump, err := client.Dump(ctx, key).Result()
		must(t, err)
		dumps[key] = dump
	}
	if len(dumps) < 2 {
		t.Fatalf("board %s has the keys %q: want its companions, too", board, keys)
	}
	return func() {
		for key, dump := range dumps {
			must(t, client.RestoreReplace(ctx, key, 0, dump).Err())
		}
	}
}
