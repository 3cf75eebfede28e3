package localboard

import (
	"encoding/binary"
	"math"
	"testing"

	"rankcache"
	"rankcache/wire"
)

// FuzzBoard runs operations, eight bytes each, on a board and on the model.
func FuzzBoard(f *testing.F) {
	f.Add([]byte("\x00a\x01\x00\x00\x00\x00\x05\x07........\x00a\x02\x00\x00\x00\x00\x06\x07......."))
	f.Add([]byte("\x01a.......\x03b......\x08.......\x05c......\x09\xff.....\x0a......\x07......."))
	f.Fuzz(func(t *testing.T, ops []byte) {
		if len(ops) > 8*512 {
			return
		}
		b, m := newBoard(t), newModel()
		for ; len(ops) >= 8; ops = ops[8:] {
			step(t, b, m, ops)
		}
		b.Publish()
		m.compare(t, b)
	})
}

// step does one operation: what, member, seq (2 bytes), score (3 bytes), order id.
func step(t *testing.T, b *Board, m *model, op []byte) {
	seq := uint64(binary.BigEndian.Uint16(op[2:]))
	score := float64(int8(op[4])) * math.Pow(2, float64(int8(op[5])))
	u := wire.Update{Member: fuzzID(op[1]), Delta: score, Score: score, OrderID: string(op[7])}
	switch what := op[0] % 16; what {
	case 7:
		es := []rankcache.Entry{{Member: u.Member, Score: score}, {Member: fuzzID(op[6]), Score: 1}}
		if es[0].Member == es[1].Member {
			es = es[:1]
		}
		if b.Load(seq, es) == nil {
			m.load(seq, es)
		}
	case 8, 9:
		b.Publish()
		m.compare(t, b)
	case 10:
		compact(&b.writerState) // at any time, not only when it is due
		check(t, b)
	default:
		u.Op = wire.Op(what%3 + 1)
		if what < 11 {
			u.Seq = seq + 1
		}
		forget(t, b, m, u.Member)
		if got, want := b.Apply([]wire.Update{u}), m.apply([]wire.Update{u}); got != want {
			t.Fatalf("%+v: applied %+v, want %+v", u, got, want)
		}
	}
}

// forget gives the model the seq up to which the board counts a member as removed.
// The board may have dropped the tombstone: then that seq is at least the removal's,
// and no missing update is below it.
func forget(t *testing.T, b *Board, m *model, id string) {
	_, until, on := b.Score(id)
	if on {
		return
	}
	is := m.members[id]
	if is.present || until < is.seq || until > b.Progress().Contiguous && until != is.seq {
		t.Fatalf("%q is removed until seq %d, want %+v", id, until, is)
	}
	m.members[id] = modelMember{seq: until}
}

// fuzzID returns ids that are prefixes of each other, with bytes that are not
// text, but none that separates an id from its data.
func fuzzID(b byte) string { return "user:\xff\x01zzzzzzzz"[:1+b%15] }
