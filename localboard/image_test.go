package localboard

import (
	"fmt"
	"slices"
	"testing"

	"rankcache"
	"rankcache/wire"
)

// An image is one moment, whatever is published while it is read.
func TestImageIsOfOneMoment(t *testing.T) {
	b := New("1")
	if at, pieces := b.Image(); at != (rankcache.Stamp{}) || len(slices.Collect(pieces)) != 0 {
		t.Errorf("an unpublished board has an image of %+v", at)
	}
	var seq uint64
	give := func() {
		for i := range 3000 {
			seq++
			b.Apply([]wire.Update{{Board: "1", Member: fmt.Sprint(i * int(seq) % 5000), Op: wire.OpIncr, Score: float64(seq), Seq: seq}})
		}
		b.Publish()
	}
	give()
	want := b.Page(0, 10_000, rankcache.Descending)
	at, pieces := b.Image()
	var got []rankcache.Entry
	for piece := range pieces {
		got = append(got, piece...)
		if len(got)%500 < len(piece) {
			give()
		}
	}
	if at != want.Stamp || !slices.Equal(got, want.Entries) {
		t.Errorf("image of %+v with %d rows, want %+v with %d", at, len(got), want.Stamp, len(want.Entries))
	}
	for piece := range pieces {
		if len(piece) == 0 {
			t.Error("an empty piece")
		}
		break // a reader may stop
	}
}
