package replay

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"rankcache/wire"
)

// strictBoard takes updates as a board does, and fails when one comes ahead of another.
type strictBoard struct {
	t          *testing.T
	contiguous uint64
	applied    map[uint64]string
}

func (s *strictBoard) apply(us []wire.Update) {
	for _, u := range us {
		if u.Seq > s.contiguous+1 {
			s.t.Fatalf("update %d is applied after %d", u.Seq, s.contiguous)
		}
		s.contiguous = max(s.contiguous, u.Seq)
		s.applied[u.Seq] = u.Member
	}
}

func newBuffer(enabled bool) *reorderBuffer {
	return &reorderBuffer{enabled: enabled, all: new(atomic.Int64)}
}

// add is Add of a buffer that has room.
func add(t *testing.T, b *reorderBuffer, contiguous uint64, us ...wire.Update) []wire.Update {
	t.Helper()
	ready, overflow := b.Add(us, contiguous)
	if overflow {
		t.Fatal("overflow")
	}
	return ready
}

func numbered(seqs ...uint64) (us []wire.Update) {
	for _, seq := range seqs {
		us = append(us, wire.Update{Seq: seq, Member: fmt.Sprint(seq)})
	}
	return us
}

func seqsOf(us []wire.Update) (seqs []uint64) {
	for _, u := range us {
		seqs = append(seqs, u.Seq)
	}
	return seqs
}

func wantSeqs(t *testing.T, what string, got []wire.Update, want ...uint64) {
	t.Helper()
	if seqs := seqsOf(got); !slices.Equal(seqs, want) {
		t.Errorf("%s: updates %d, want %d", what, seqs, want)
	}
}

// wantEmpty fails unless the buffer counts nothing and holds nothing.
func wantEmpty(t *testing.T, b *reorderBuffer) {
	t.Helper()
	if len(b.updates) != 0 || len(b.others) != 0 || b.bytes != 0 || b.all.Load() != 0 || b.highest != 0 {
		t.Errorf("not empty: %d and %d held, %d bytes, highest %d", len(b.updates), len(b.others), b.bytes, b.highest)
	}
}

// Updates that come in any order, with repeats, are all applied in the order of
// their seqs, and the strings of those that waited are not the batch's.
func TestReorderBufferOrders(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 1))
		const n = 2000
		buffer, board := newBuffer(true), strictBoard{t: t, applied: map[uint64]string{}}
		for from := 0; from < n; from += 100 {
			seqs := rng.Perm(100)
			for len(seqs) > 0 {
				var batch []wire.Update
				for range min(len(seqs), 1+rng.IntN(20)) {
					batch, seqs = append(batch, numbered(uint64(from+seqs[0]+1))...), seqs[1:]
					if rng.IntN(5) == 0 {
						batch = append(batch, batch[rng.IntN(len(batch))])
					}
				}
				board.apply(add(t, buffer, board.contiguous, batch...))
			}
		}
		wantEmpty(t, buffer)
		if board.contiguous != n || len(board.applied) != n {
			t.Fatalf("seed %d: up to %d, %d applied", seed, board.contiguous, len(board.applied))
		}
		for seq, member := range board.applied {
			if member != fmt.Sprint(seq) {
				t.Fatalf("update %d is of %s", seq, member)
			}
		}
	}
}

// A gate's limit: what is beyond it waits, the rest is returned as it came, and a
// higher limit frees what waited in order of seqs, with holes.
func TestReorderBufferHoldsBeyondALimit(t *testing.T) {
	b := newBuffer(false)
	wantSeqs(t, "without a limit", add(t, b, 0, numbered(7, 3, 9)...), 7, 3, 9)
	b.Hold(10)
	wantSeqs(t, "up to the limit", add(t, b, 3, numbered(15, 10, 12, 4, 11, 20)...), 10, 4)
	wantSeqs(t, "a repeat", add(t, b, 3, numbered(12)...))
	if b.highest != 20 || len(b.updates) != 4 {
		t.Errorf("highest %d, %d held", b.highest, len(b.updates))
	}
	wantSeqs(t, "raised", b.Raise(12), 11, 12)
	wantSeqs(t, "up to the raised limit", add(t, b, 3, numbered(12, 13)...), 12)
	wantSeqs(t, "no limit any more", b.Raise(math.MaxUint64), 13, 15, 20)
	wantEmpty(t, b)
	wantSeqs(t, "afterwards", add(t, b, 3, numbered(30)...), 30)
}

// A limit of 0 holds everything: nothing is known of Redis yet.
func TestReorderBufferHoldsEverything(t *testing.T) {
	b := newBuffer(false)
	b.Hold(0)
	wantSeqs(t, "held", add(t, b, 0, numbered(2, 1)...))
	wantSeqs(t, "raised", b.Raise(5), 1, 2)
	wantEmpty(t, b)
}

// A board that is read and has a limit gets neither holes nor what is beyond.
func TestReorderBufferOrdersUpToALimit(t *testing.T) {
	b := newBuffer(true)
	b.Hold(4)
	wantSeqs(t, "ordered", add(t, b, 0, numbered(5, 3, 1, 6, 4, 2)...), 1, 2, 3, 4)
	wantSeqs(t, "beyond the limit", b.Next(4))
	wantSeqs(t, "raised, but the board is read", b.Raise(5))
	wantSeqs(t, "next", b.Next(4), 5)
	b.Hold(math.MaxUint64)
	wantSeqs(t, "no limit", b.Next(5), 6)
	wantEmpty(t, b)
}

// A board that has come further by itself is given what waited for that, late
// updates included: they are compared with those that it has.
func TestReorderBufferAfterALoad(t *testing.T) {
	b := newBuffer(true)
	wantSeqs(t, "held", add(t, b, 0, numbered(12, 3, 9, 11, 14)...))
	wantSeqs(t, "after a load at 10", b.Next(10), 3, 9, 11, 12)
	wantSeqs(t, "nothing more", b.Next(12))
	wantSeqs(t, "the missing one", add(t, b, 12, numbered(13)...), 13, 14)
	wantEmpty(t, b)
}

// Two updates of one seq are of two histories. The buffer can't decide which one is
// true: both are returned, repeats are not.
func TestReorderBufferKeepsBothHistories(t *testing.T) {
	own, zombies := numbered(3)[0], wire.Update{Seq: 3, Member: "z"}
	for name, order := range map[string][]wire.Update{
		"both held":             {own, zombies, own, zombies, numbered(2)[0]},
		"the second comes last": {own, numbered(2)[0], zombies},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBuffer(true)
			var got []wire.Update
			for _, u := range order {
				got = append(got, add(t, b, 1, u)...)
			}
			if want := []wire.Update{numbered(2)[0], own, zombies}; name == "both held" && !reflect.DeepEqual(got, want) {
				t.Errorf("got %+v", got)
			}
			if name != "both held" { // the board does not know that it has got beyond 1
				got = append(got, b.Next(3)...)
			}
			if !slices.Contains(got, own) || !slices.Contains(got, zombies) || len(got) != 3 {
				t.Errorf("got %+v", got)
			}
			wantEmpty(t, b)
		})
	}
}

// What a board could not apply is taken back.
func TestReorderBufferKeepsTheRest(t *testing.T) {
	b := newBuffer(true)
	ready := add(t, b, 0, numbered(3, 2, 1)...)
	if !b.Keep(ready[1:]) {
		t.Error("overflow")
	}
	wantSeqs(t, "again", b.Next(1), 2, 3)
	wantEmpty(t, b)
}

// The buffer is bounded. When it is full, what is held is dropped, and the caller
// gets that; nothing comes out of order, and what may be applied is returned.
func TestReorderBufferIsBounded(t *testing.T) {
	long := strings.Repeat("x", 1000)
	for name, u := range map[string]wire.Update{"many": {}, "long": {Member: long, OrderID: long}} {
		t.Run(name, func(t *testing.T) {
			b := newBuffer(true)
			for u.Seq = 7; ; u.Seq++ {
				ready, overflow := b.Add([]wire.Update{u, {Seq: 4}}, 5)
				if !slices.Equal(seqsOf(ready), []uint64{4}) || b.bytes > maxHeldBytes {
					t.Fatalf("%d: %d returned, %d bytes held", u.Seq, seqsOf(ready), b.bytes)
				}
				if overflow {
					break
				}
			}
			wantEmpty(t, b)
		})
	}
}

// A full buffer of a board that is not read drops nothing: what waited for the gate is
// applied, in order, and the gate finds the board beyond its target.
func TestReorderBufferEndsAHold(t *testing.T) {
	b := newBuffer(false)
	b.Hold(5)
	u := wire.Update{Seq: 6, Member: strings.Repeat("x", 10_000)}
	for ; b.limited; u.Seq++ {
		ready := add(t, b, 5, u)
		if b.limited == (len(ready) > 0) {
			t.Fatalf("%d: limited %t, %d returned", u.Seq, b.limited, len(ready))
		}
		if !b.limited && (len(ready) != int(u.Seq)-5 || ready[0].Seq != 6 || !slices.IsSorted(seqsOf(ready))) {
			t.Errorf("%d returned, from %d on", len(ready), ready[0].Seq)
		}
	}
	wantEmpty(t, b)
	wantSeqs(t, "afterwards", add(t, b, u.Seq, numbered(u.Seq+9)...), u.Seq+9)
}

// What all boards hold is bounded, too.
func TestReorderBuffersAreBounded(t *testing.T) {
	full := newBuffer(true)
	b := &reorderBuffer{enabled: true, all: full.all}
	add(t, b, 0, numbered(7)...)
	full.count(maxHeldInAll - b.bytes)
	if _, overflow := b.Add(numbered(8), 0); !overflow || b.bytes != 0 {
		t.Errorf("overflow %t, %d bytes", overflow, b.bytes)
	}
	full.Clear()
	add(t, b, 0, numbered(8)...)
	b.Clear()
	wantEmpty(t, b)
}

// Only what had come before Redis was asked, and is of the run that it has, is known to be lost.
func TestReorderDropsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBuffer(true)
		add(t, b, 10, numbered(13, 14, 15, 16)...)
		add(t, b, 10, wire.Update{Seq: 16, Member: "another"}, wire.Update{Seq: 17, Run: 2})
		asked := time.Now().Add(time.Millisecond)
		time.Sleep(2 * time.Millisecond)
		add(t, b, 10, wire.Update{Seq: 15, Member: "since"}, wire.Update{Seq: 18})
		if n := b.DropLost(0, 13, asked); n != 3 {
			t.Errorf("%d dropped", n)
		}
		if got := seqsOf(b.Flush()); !slices.Equal(got, []uint64{13, 15, 15, 17, 18}) || b.bytes != 0 || b.came != nil {
			t.Errorf("held %v, %d bytes", got, b.bytes)
		}
	})
}
