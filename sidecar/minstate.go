package sidecar

import (
	"errors"
	"fmt"
	"time"

	"rankcache"
)

// ErrWriteLost reports that the board has not been through [rankcache.Query].MinState: Redis lost the write.
var ErrWriteLost = errors.New("write is lost")

// ErrUnknownState reports that the run of [rankcache.Query].MinState has ended, so that nobody knows.
var ErrUnknownState = errors.New("state is not known any more")

// WriteLostError is [ErrWriteLost] with both sides.
type WriteLostError struct {
	Want   rankcache.State
	Have   rankcache.State  // of the copy, at Want's seq if it knows that; or Redis's
	Source rankcache.Source // that has it
}

func (e *WriteLostError) Error() string {
	where := "Redis"
	if e.Source == rankcache.SourceLocal {
		where = "the local copy"
	}
	return fmt.Sprintf("%v: want %s, but %s has %s", ErrWriteLost, inWords(e.Want), where, inWords(e.Have))
}

// Is reports whether target is [ErrWriteLost].
func (e *WriteLostError) Is(target error) bool { return target == ErrWriteLost }

// UnknownStateError is [ErrUnknownState] with both sides.
type UnknownStateError struct {
	Want rankcache.State
	Have rankcache.State // of Redis
}

func (e *UnknownStateError) Error() string {
	return fmt.Sprintf("%v: want %s, but Redis has %s, and tells its newest run alone", ErrUnknownState, inWords(e.Want), inWords(e.Have))
}

// Is reports whether target is [ErrUnknownState].
func (e *UnknownStateError) Is(target error) bool { return target == ErrUnknownState }

func inWords(s rankcache.State) string {
	switch {
	case s.Run == 0:
		return "no known state of the board"
	case !s.HasSum:
		return fmt.Sprintf("run %d at seq %d", s.Run, s.Seq)
	}
	return fmt.Sprintf("run %d at seq %d with the sum %012x", s.Run, s.Seq, s.Sum)
}

type verdict uint8 // whether a copy meets the bounds of a query

const (
	enough  verdict = iota // the copy may answer
	behind                 // it may become enough
	unknown                // Redis has to be read
	lost                   // it has been through another state
)

// compare returns whether a board with the state s has been through the wanted one, as far as s tells: it has at a
// later seq of the run, which is proof for durable boards, whose runs are of one history.
func compare(want *rankcache.State, s rankcache.State) verdict {
	switch {
	case want.Run == 0:
		return enough
	case s.Before(*want):
		return behind
	case s.Run > want.Run:
		return unknown
	case s.Seq == want.Seq && s.HasSum && want.HasSum && s.Sum != want.Sum:
		return lost
	}
	return enough
}

// compareLocal is compare for a local board that has answered with s. It returns the state compared.
func compareLocal(want *rankcache.State, b Board, s rankcache.State) (verdict, rankcache.State) {
	switch {
	case want.Run != 0 && s.Run == 0:
		return unknown, s
	case s.Run != want.Run || s.Seq <= want.Seq || !want.HasSum:
		return compare(want, s), s
	}
	sum, known := b.SumAt(want.Run, want.Seq)
	if !known {
		return unknown, s // it is too long ago
	}
	s.Seq, s.Sum, s.HasSum = want.Seq, sum, true
	return compare(want, s), s
}

// reached reports whether an answer with the state s is one to q.
func reached(q *rankcache.Query, s rankcache.State) bool {
	return s.Seq >= q.MinSeq && compare(&q.MinState, s) == enough
}

// missed returns the error of an answer of Redis that has not reached q.
func missed(q *rankcache.Query, s rankcache.State) error {
	switch {
	case s.Seq < q.MinSeq:
		return &NotReachedError{q.MinSeq, s.Seq}
	case compare(&q.MinState, s) == unknown:
		return &UnknownStateError{q.MinState, s}
	}
	return &WriteLostError{q.MinState, s, rankcache.SourceRedis}
}

// tooOld returns the error of an answer of the ledger, or of a replica of Redis, that is not within the bounds of q,
// nil if it is; at is of which time it is. Redis may be further, so that nothing is known to be lost.
func tooOld(q *rankcache.Query, a *rankcache.Answer, at time.Time) error {
	if reached(q, a.State) && (q.MaxAge == 0 || time.Since(at) <= q.MaxAge) {
		return nil
	}
	age := "an unknown time"
	if !at.IsZero() {
		age = time.Since(at).Round(time.Millisecond).String()
	}
	if a.Source == rankcache.SourceLedger {
		return fmt.Errorf("%w: Redis does not answer, and what the ledger has, %s of %s ago, is not within the bounds of the request",
			rankcache.ErrUnavailable, inWords(a.State), age)
	}
	return fmt.Errorf("%w: what is here, %s of %s ago, is not within the bounds of the request", rankcache.ErrRegion, inWords(a.State), age)
}

// asOf returns of which time an answer of the origin is; zero: unknown. lags is that of [Config].OriginLags.
func asOf(a *rankcache.Answer, lags bool) time.Time {
	if lags || a.Lags {
		return a.CurrentAt
	}
	return a.At
}
