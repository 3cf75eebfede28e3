package wire

import (
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// logEntry packs changes as apply.lua does: of each the member and its order's record.
func logEntry(flags byte, changes ...string) string {
	entry := []byte{logVersion, flags}
	for _, text := range changes {
		entry = append(binary.BigEndian.AppendUint16(entry, uint16(len(text))), text...)
	}
	return string(entry)
}

func TestDecodeLog(t *testing.T) {
	first := Update{Board: "1_2_3", Member: "a", Op: OpIncr, Score: 42, Run: 7, Seq: 3, Sum: 5, HasSum: true, Members: 9, At: 1700000000123}
	trim := Update{Board: "1_2_3", Member: "b", Op: OpTrim, Run: 7, Seq: 4, Sum: 6, HasSum: true, Members: 8, At: first.At}
	best := Update{Board: "1_2_3", Member: "c", Op: OpBest, Delta: 1, Score: 2, Run: 7, Seq: 5, Sum: 7, HasSum: true, Members: 8, At: first.At}
	hide := Update{Board: "1_2_3", Member: "d", Op: OpHide, Score: 3, Run: 7, Seq: 6, HasSum: true, Members: 7, At: first.At, Hiding: Hiding{Serial: 9, Hidden: true}}
	before := Update{Board: "other", Member: "kept"}
	set, hidden := best, hide
	set.Op, set.Delta = OpSet, 0
	hidden.Op, hidden.Score, hidden.Hiding = OpDelete, 0, Hiding{}
	trimmed := string(AppendTrim(AppendOrder(nil, &first, 1, false), &trim))
	got, err := DecodeLog("1_2_3", logEntry(0, "a", trimmed, "c", string(AppendOrder(nil, &best, 1, false))+"orig", "d", string(AppendOrder(nil, &hide, 9, false))), []Update{before})
	if diff := cmp.Diff([]Update{before, first, trim, set, hidden}, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	with := first
	with.Data = "car"
	got, err = DecodeLog("1_2_3", logEntry(logData, "a", string(AppendOrder(nil, &with, 1, true))), nil)
	if diff := cmp.Diff([]Update{with}, got); err != nil || diff != "" {
		t.Errorf("with data: %v (-want +got):\n%s", err, diff)
	}
}

func TestDecodeLogRejects(t *testing.T) {
	good := Update{Member: "a", Op: OpIncr, Score: 1, Run: 1, Seq: 1, Members: 1}
	record := func(change func(u *Update)) string {
		u := good
		change(&u)
		return string(AppendOrder(nil, &u, 1, u.Data != ""))
	}
	whole := record(func(*Update) {})
	for name, c := range map[string]struct{ entry, reason string }{
		"empty":         {"", "version"},
		"version":       {"\x02\x00", "version"},
		"flags":         {"\x01\x04", "version"},
		"long":          {strings.Repeat("\x01", maxLogLen+1), "size"},
		"half a length": {"\x01\x00\x00", "record"},
		"half a record": {logEntry(0, "a", whole[:len(whole)-1]), "record"},
		"no record":     {logEntry(0, "a"), "record"},
		"no data":       {logEntry(logData, "a", whole), "record"},
		"rest":          {logEntry(0, "a", whole+"origi"), "record"},
		"trims":         {logEntry(0, "a", whole+strings.Repeat("sum...\x01m", 2)), "record"},
		"member":        {logEntry(0, "", whole), "member"},
		"trimmed":       {logEntry(0, "a", whole+"sum...\x01\xff"), "member"},
		"op":            {logEntry(0, "a", "\x09"+whole[1:]), "op"},
		"trim as op":    {logEntry(0, "a", "\x04"+whole[1:]), "op"},
		"run":           {logEntry(0, "a", record(func(u *Update) { u.Run = 0 })), "run"},
		"seq":           {logEntry(0, "a", record(func(u *Update) { u.Seq = 0 })), "run"},
		"score":         {logEntry(0, "a", record(func(u *Update) { u.Score = math.Inf(1) })), "score"},
		"data":          {logEntry(logData, "a", record(func(u *Update) { u.Data = "\n" })), "data"},
		"data of none":  {logEntry(logData, "a", record(func(u *Update) { u.Op, u.Data = OpDelete, "car" })), "data"},
	} {
		into := make([]Update, 1, 9)
		got, err := DecodeLog("b", c.entry, into)
		if bad, ok := errors.AsType[*BadUpdate](err); !ok || bad.Reason != c.reason || len(got) != 1 {
			t.Errorf("%s: %v and %d updates, want %s", name, err, len(got), c.reason)
		}
	}
	if _, err := DecodeLog("rankcache:log", logEntry(0, "a", whole), nil); err == nil {
		t.Error("an entry of no board was read")
	}
}

// FuzzDecodeLog looks for updates that no board's topic could have, and for entries that are refused without a reason.
func FuzzDecodeLog(f *testing.F) {
	u := Update{Member: "a", Op: OpIncr, Score: 1, Run: 1, Seq: 1, Sum: 3, Members: 2, Data: "car"}
	for _, data := range []bool{false, true} {
		record := string(AppendTrim(AppendOrder(nil, &u, 1, data), &Update{Sum: 4, Member: "m"}))
		f.Add(logEntry(0, "a", record))
		f.Add(logEntry(logData, "a", record, "b", record+"orig"))
	}
	u.Op, u.Hiding = OpHide, Hiding{Serial: 9, Hidden: true}
	f.Add(logEntry(0, "a", string(AppendOrder(nil, &u, 9, false))))
	f.Fuzz(func(t *testing.T, entry string) {
		updates, err := DecodeLog("1_2_3", entry, nil)
		if err != nil {
			if bad, ok := errors.AsType[*BadUpdate](err); !ok || bad.Err == nil || updates != nil {
				t.Fatalf("%q: %v, %d updates", entry, err, len(updates))
			}
			return
		}
		for i := range updates {
			var told Update
			want := updates[i]
			want.OrderID = "o" // which the topic's records have
			if err := DecodeUpdate(AppendUpdate(nil, &want), &told); err != nil {
				t.Fatalf("%q: %+v: %v", entry, want, err)
			}
			if told.Score == 0 {
				told.Score, want.Score = 0, want.Score+0 // -0 is written 0
			}
			if want.Op == OpDelete {
				want.Score = 0
			}
			if diff := cmp.Diff(want, told); diff != "" {
				t.Fatalf("%q (-log +topic):\n%s", entry, diff)
			}
		}
	})
}
