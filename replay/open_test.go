package replay_test

import (
	"testing"

	"rankcache"
	"rankcache/internal/testkit"
)

func TestBoardsOpenEqualToRedis(t *testing.T) {
	w := newWorld(t, testkit.Kafka(t))
	one, four := w.newBoard(1, nil), w.newBoard(4, nil)
	for _, b := range []*board{one, four} {
		b.produce(b.gifts(500, 50)...)
	}
	s := w.start(ids(one, four))
	s.waitOpen(one.id)
	s.waitOpen(four.id)
	s.waitSettled()
	for _, b := range []*board{one, four} {
		b.produce(b.gifts(300, 60)...)
		s.waitOpen(b.id)
	}
	for _, b := range s.Status() {
		if b.State != rankcache.StateOpen || b.Have != 800 {
			t.Errorf("status %+v", b)
		}
	}
}
