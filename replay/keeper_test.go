package replay_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"rankcache"
	"rankcache/internal/testkit"
	"rankcache/localboard"
	"rankcache/origin"
	"rankcache/replay"
	"rankcache/wire"
)

// liveKeeper publishes what Redis has whenever it is looked at.
type liveKeeper struct {
	*origin.Origin
	boards []rankcache.BoardID
	serial atomic.Uint64
}

// keptBy is a sidecar beside a keeper, without looks of its own as long as it is heard.
func keptBy(e *env, boards ...rankcache.BoardID) option {
	k := &liveKeeper{Origin: origin.New(e.redis, e.names), boards: boards}
	return func(s *setup) { s.States = k }
}

func (k *liveKeeper) States(ctx context.Context) (wire.States, error) {
	stamps, err := k.Stamps(ctx, k.boards)
	var states []wire.BoardState
	for i, s := range stamps {
		if !s.At.IsZero() {
			states = append(states, wire.BoardState{Board: wire.StateKey(string(k.boards[i])), State: s.State, Members: s.Members, Life: s.Life, Primed: s.Primed})
		}
	}
	if err != nil {
		return wire.States{}, err
	}
	return wire.ParseStates(string(wire.AppendStates(nil, "it", k.serial.Add(1), 100*time.Millisecond, states)), "it")
}

// waitHeard waits until a keeper has told of boards n times more.
func (s *sidecar) waitHeard(n float64) {
	s.env.t.Helper()
	before := s.counter("rankcache_replay_readings_total", "keeper")
	testkit.Eventually(s.env.t, timeout, func() error {
		if now := s.counter("rankcache_replay_readings_total", "keeper"); now < before+n {
			return fmt.Errorf("a keeper has told of %v boards", now-before)
		}
		return nil
	})
}

// A member that changed in this process's memory is found though a keeper compares the rows: the copy is added up here.
func TestCorruptMemoryBesideAKeeper(t *testing.T) {
	t.Parallel()
	e := newEnv(t, testkit.Kafka(t))
	b := e.newBoard(1, nil)
	b.produce(b.gifts(300, 100)...)
	var wrong *corrupt
	s := e.start(ids(b), keptBy(e, b.id), func(s *setup) {
		s.wrap = func(local *localboard.Board) replay.Board { wrong = &corrupt{Board: local}; return wrong }
	})
	s.waitOpen(b.id)
	s.waitHeard(3)
	best := rowsOf(s.local(b.id), 1).Entries[0].Member
	wrong.member.Store(&best)
	s.waitClosed(b.id)
	s.wantDifferences("memory")
	s.waitOpen(b.id)
}

// Redis loses writes that the copy has, and gives their seqs out again: the keeper's value tells, Redis confirms it, the copy is
// loaded again. The sidecar looks at no state itself.
func TestLossThatAKeeperTells(t *testing.T) {
	t.Parallel()
	e := newEnv(t, testkit.Kafka(t))
	e.still = false // it may open between the loss and what is written then
	b := e.newBoard(1, nil)
	b.produce(b.gifts(200, 40)...)
	s := e.start(ids(b), keptBy(e, b.id), auditEvery(-1), func(s *setup) { s.AuditRows = -1 })
	s.waitOpen(b.id)
	saved := b.dump()
	b.produce(b.gifts(30, 40)...)
	s.waitOpen(b.id)
	s.waitHeard(3)
	b.restore(saved)
	testkit.Eventually(t, timeout, func() error {
		if s.counter("rankcache_replay_states_doubts_total", "different") == 0 {
			return errors.New("the loss was not noticed")
		}
		return nil
	})
	s.waitOpen(b.id)
	if n := s.counter("rankcache_replay_states_doubts_total", "equal"); n != 0 {
		t.Errorf("the keeper was refuted %v times", n)
	}
	us := b.gifts(45, 40)
	for i := range us {
		us[i].OrderID = "again" + us[i].OrderID
	}
	b.produce(us...)
	s.waitOpen(b.id)
	s.waitHeard(3)
}
