package localboard

import (
	"fmt"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"rankcache"
	"rankcache/wire"
)

// TestTopIsAsDeepAsItIsAskedFor: a board that changes has long tops at first, then short ones,
// and for a while what a page beyond them asks for, which is answered all the same.
func TestTopIsAsDeepAsItIsAskedFor(t *testing.T) {
	b, seq := New("b"), uint64(0)
	change := func(member int) {
		seq++
		b.Apply([]wire.Update{{Board: "b", Member: fmt.Sprintf("m%03d", member), Op: wire.OpSet, Score: float64(1000 - member), Seq: seq}})
	}
	publish := func(times, want int) {
		t.Helper()
		for range times {
			change(0) // none but seq changes
			b.Publish()
			if n := len(topOf(b).Entries); n != want {
				t.Fatalf("the top of seq %d has %d rows, want %d", seq, n, want)
			}
		}
	}
	for i := range 600 {
		change(i)
	}
	publish(longFor, rankcache.MaxTop)
	all := page(b, 0, rankcache.MaxTop, rankcache.Descending).Entries
	publish(3, shortTop)
	for _, rows := range [][2]int{{0, shortTop}, {20, 30}, {0, 501}, {550, 50}} { // these need no longer top, or one longer than it may be
		page(b, rows[0], rows[1], rankcache.Descending)
	}
	page(b, 0, 300, rankcache.Ascending)
	publish(3, shortTop)
	if diff := gocmp.Diff(all[50:150], page(b, 50, 100, rankcache.Descending).Entries); diff != "" {
		t.Fatalf("beyond the top (-want +got):\n%s", diff)
	}
	page(b, 0, 120, rankcache.Descending) // the longest counts
	publish(longFor/2, 150)
	if diff := gocmp.Diff(all[:150], topOf(b).Entries); diff != "" {
		t.Fatalf("the top that was asked for (-want +got):\n%s", diff)
	}
	page(b, 0, rankcache.MaxTop, rankcache.Descending)
	publish(longFor, rankcache.MaxTop)
	publish(3, shortTop)
}
