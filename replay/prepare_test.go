package replay_test

import (
	"sync"
	"testing"

	"rankcache/internal/testkit"
	"rankcache/replay"
)

// TestPreparingHoldsNothingUp: while one board is prepared, which may wait for profiles,
// updates of it and of others are applied, and the others' are published.
func TestPreparingHoldsNothingUp(t *testing.T) {
	t.Parallel()
	e := newEnv(t, testkit.Kafka(t))
	e.still = false
	open, slow := e.newBoard(1, nil), e.newBoard(1, nil)
	open.produce(open.gifts(10, 5)...)
	preparing, prepared := make(chan struct{}), make(chan struct{})
	begun, end := sync.OnceFunc(func() { close(preparing) }), sync.OnceFunc(func() { close(prepared) })
	defer end()
	s := e.start(ids(open), func(s *setup) {
		s.prepare = func(s *sidecar, b replay.Board) {
			if b == s.boards.Create(slow.id) {
				begun()
				<-prepared
			}
		}
	})
	s.waitOpen(open.id)
	slow.produce(slow.gifts(10, 5)...)
	s.Follow(ids(open, slow))
	<-preparing
	slow.produce(slow.incr("m", 1)) // nothing behind it is read until it is applied
	open.produce(open.incr("m", 1))
	s.waitOpen(open.id)
	end()
	s.waitOpen(slow.id)
}
