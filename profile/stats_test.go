package profile

import (
	"testing"
	"time"
)

func TestStats(t *testing.T) {
	source := newFake(t, nick)
	c := start(t, Options{TTL: time.Hour}, source)
	page := members("m", 20)
	dst := make([][]byte, len(page))
	c.Get(t.Context(), page, dst)
	c.Get(t.Context(), page, dst)
	s := c.Stats()
	if s.Misses != 20 || s.Hits != 20 || s.Loads == 0 || s.Failed != 0 || s.Bytes <= 0 || s.Budget != c.opts.Budget || s.Breaker != "closed" {
		t.Errorf("after a page of 20 was loaded and read again: %+v", s)
	}
}
