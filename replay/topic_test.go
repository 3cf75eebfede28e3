package replay

import (
	"fmt"
	"testing"
	"time"
)

// An update is missing only if each partition had a leader for some time, and was then
// read to its end: one whose leader is away may still bring it.
func TestLogIsExhausted(t *testing.T) {
	const grace = 10 * time.Second
	log := newTopic(topicInfo{"t", "id", 2}, false)
	first, second := log.parts[0], log.parts[1]
	start := time.Now()
	poll := func(after time.Duration, highs map[*partition]int64) { log.setEnd(start.Add(after), highs) }
	want := func(what string, exhausted bool) {
		t.Helper()
		if log.exhausted(start, grace) != exhausted {
			t.Errorf("%s: exhausted %t, want %t", what, !exhausted, exhausted)
		}
	}
	both := map[*partition]int64{first: 4, second: 9}
	first.next.Store(4)
	second.next.Store(9)
	want("before the first answer", false)
	poll(-time.Second, both)
	poll(time.Second, both)
	want("after a second", false)
	poll(2*time.Second, map[*partition]int64{first: 4})
	want("one leader is away", false)
	poll(12*time.Second, map[*partition]int64{first: 4})
	want("one leader is away for long", false)
	poll(13*time.Second, both)
	want("it is back", false)
	poll(22*time.Second, both)
	want("it is back for 9 s", false)
	poll(23*time.Second, map[*partition]int64{first: 4, second: 10})
	want("not read to the end", false)
	second.next.Store(10)
	want("read to the end", true)
}

// The same at a time.
func TestLogIsDrained(t *testing.T) {
	log := newTopic(topicInfo{"t", "id", 2}, false)
	first, second := log.parts[0], log.parts[1]
	at := time.Now()
	first.next.Store(4)
	log.setEnd(at.Add(1), map[*partition]int64{first: 4, second: 9})
	if log.drained(at) {
		t.Error("drained, though a partition is not read to its end")
	}
	second.next.Store(9)
	if !log.drained(at) || log.drained(at.Add(1)) {
		t.Error("not drained, or drained at a later time")
	}
	log.setEnd(at.Add(2), map[*partition]int64{first: 4})
	if log.drained(at) {
		t.Error("drained, though the end of a partition is not known")
	}
}

// Of many topics that are read, some are described at a time, all of them in turn; those for
// which there may be something to do are described each time.
func TestTopicsAreDescribedInTurn(t *testing.T) {
	const quiet = 2*describedAtOnce + 50
	w, wanted := &topicWatcher{known: make(map[string]*topic)}, make(map[string][]*feed)
	for i := range quiet + 4 {
		name, board := fmt.Sprintf("t%04d", i), &feed{replica: new(replica)}
		board.replica.readable.Store(i != 3)
		wanted[name] = []*feed{board}
		if i > 0 { // the first one is not read yet
			w.reads(newTopic(topicInfo{name, "id", 1}, false), wanted[name])
		}
	}
	w.known["t0001"].gone.Store(true)
	wanted["t0002"] = append(wanted["t0002"], &feed{replica: new(replica)}) // one more board
	described := make(map[string]int)
	for range 3 {
		names := w.due(wanted)
		if len(names) != describedAtOnce+4 {
			t.Errorf("%d topics are described at once", len(names))
		}
		for _, name := range names {
			described[name]++
		}
	}
	for name := range wanted {
		if described[name] == 0 || (described[name] == 3) != (name < "t0004") {
			t.Errorf("%s is described %d times", name, described[name])
		}
	}
	if clear(w.known); len(w.due(wanted)) != len(wanted) {
		t.Error("topics that are not read are not all described")
	}
}
