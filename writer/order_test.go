package writer

import (
	"errors"
	"strings"
	"testing"

	"rankcache/wire"
)

// FuzzOutcome looks for replies of Redis that are neither read nor refused.
func FuzzOutcome(f *testing.F) {
	c := &Command{Board: "b", Member: "m", Op: wire.OpIncr, Number: 2, OrderID: "o", At: 5}
	for _, seed := range []string{"", "+", "=" + mark(c) + "123456789012345678901234567890123456", "+" + mark(c) + "1234567890123456789012345678901234567", "+" + mark(c) + strings.Repeat("1", 37) + "sum..\x00\x01m", "+" + mark(c) + strings.Repeat("1", 37) + "sum..\x00\x09m", "C", "!C", "!", "!early", "!other", "p", "s", "w", "n7", "m", "?"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, reply string) {
		out, then, err := outcome(c, reply)
		if err != nil {
			if refusal, ok := errors.AsType[*Refusal](err); !ok || refusal.Err == nil {
				t.Fatalf("%q: %v", reply, err)
			}
			return
		}
		if out.Refusal != nil && out.Refusal.Err == nil {
			t.Fatalf("%q: refused without a reason", reply)
		}
		if out.Refusal == nil && then == needNothing {
			equal(t, reply, []any{out.Update.Board, out.Update.Member, out.Update.Delta, out.Update.OrderID}, []any{c.Board, c.Member, c.Number, c.OrderID})
		}
	})
}

// A class that gets data: true has records of order ids without any yet.
func TestRecordsOfATimeWithoutData(t *testing.T) {
	c := &Command{Board: "b", Member: "m", Op: wire.OpIncr, Number: 2, OrderID: "o", At: 5, HasData: true}
	before := wire.Update{Board: "b", Member: "m", Op: wire.OpIncr, Delta: 2, Score: 7, Run: 1, Seq: 2, HasSum: true, Members: 1, OrderID: "o", At: 5}
	with := before
	with.Data = "car"
	for record, want := range map[string]wire.Update{
		string(wire.AppendOrder(nil, &before, 2, false)):                before,
		string(wire.AppendOrder(nil, &before, 2, false)) + "\x00\x00ab": before, // its origin
		string(wire.AppendOrder(nil, &before, 2, true)) + "\x00\x00ab":  before,
		string(wire.AppendOrder(nil, &with, 2, true)):                   with,
		string(wire.AppendOrder(nil, &with, 2, true)) + "abcd":          with,
	} {
		u, trims, err := readRecord(c, record)
		if err != nil || u != want || len(trims) > 0 {
			t.Errorf("%q: %+v, %v, %v, want %+v", record, u, trims, err, want)
		}
	}
}
