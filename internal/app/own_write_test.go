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

	"rankcache"
)

// TestOwnWritesAreRead writes from several clients at once and reads each write
// back with its seq, from a super-hot and from a small board, while others read
// the same boards: the answer always has the write.
func TestOwnWritesAreRead(t *testing.T) {
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

// ownWrite gives the member one point, its n-th, and reads it back. It returns
// what answered.
func (h *fixture) ownWrite(t *testing.T, s *child, board rankcache.BoardID, member string, n int) string {
	body := fmt.Sprintf(`{"order":"%s-%d","board":%q,"member":%q,"op":"incr","delta":1}`, member, n, board, member)
	resp, err := http.Post(h.writer.URL("scores", "/v1/scores"), "application/json", strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return ""
	}
	defer resp.Body.Close()
	var wrote struct{ Seq uint64 }
	if err := json.NewDecoder(resp.Body).Decode(&wrote); err != nil || wrote.Seq == 0 {
		t.Errorf("write %d of %s: %s, %v", n, member, resp.Status, err)
		return ""
	}
	var read struct {
		Seq    uint64
		Score  float64
		Source string
	}
	code, text := s.Get("data", fmt.Sprintf("/v1/boards/%s/members/%s?min_seq=%d&wait_ms=500", board, member, wrote.Seq))
	if err := json.Unmarshal([]byte(text), &read); err != nil || code != 200 || read.Score != float64(n) || read.Seq < wrote.Seq {
		t.Errorf("write %d of %s at seq %d is read as %d %s", n, member, wrote.Seq, code, text)
	}
	return read.Source
}
