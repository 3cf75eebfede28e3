package replay_test

import (
	"testing"

	"rankcache"
	"rankcache/internal/testkit"
)

func TestBoardsOpenEqualToRedis(t *testing.T) {
	e := newEnv(t, testkit.Kafka(t))
	one, four := e.newBoard(1, nil), e.newBoard(4, nil)
	for _, b := range []*board{one, four} {
		b.produce(b.gifts(500, 50)...)
	}
	s := e.start(ids(one, four))
	s.waitOpen(one.id)
	s.waitOpen(four.id)
	s.waitReady()
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
