package origin

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"rankcache"
	"rankcache/internal/testkit"
)

func TestAround(t *testing.T) {
	b := newBoard(t)
	b.fill(t, 917, abc...)
	for _, c := range []struct {
		member      string
		n           int
		order       rankcache.Direction
		start, rank int
		want        []rankcache.Entry
	}{
		{"b", 1, rankcache.Descending, 1, 3, desc[1:4]},
		{"a", 1, rankcache.Descending, 0, 1, desc[:2]},
		{"d", 2, rankcache.Descending, 2, 5, desc[2:]},
		{"d", 0, rankcache.Ascending, 0, 1, abc[4:]},
		{"b1", MaxAround, rankcache.Descending, 0, 2, desc},
	} {
		page, rank, err := b.Around(t.Context(), b.id, c.member, c.n, c.order)
		must(t, err)
		name := fmt.Sprint(c.member, c.n, c.order)
		equal(t, name, page.Entries, c.want)
		equal(t, name, []any{page.Start, rank, page.Seq, page.Members}, []any{c.start, c.rank, uint64(917), 5})
	}
}

func TestAroundNobody(t *testing.T) {
	b := newBoard(t)
	b.fill(t, 917, abc...)
	page, rank, err := b.Around(t.Context(), b.id, "nobody", 4, rankcache.Descending)
	if !errors.Is(err, rankcache.ErrUnknownMember) {
		t.Fatal("error", err)
	}
	equal(t, "page", []any{len(page.Entries), rank, page.Seq, page.Members}, []any{0, 0, uint64(917), 5})
	_, _, err = b.Around(t.Context(), rankcache.BoardID(testkit.Name(t)), "nobody", 4, rankcache.Descending)
	if !errors.Is(err, rankcache.ErrUnknownMember) {
		t.Error("of a board that is not there: error", err)
	}
	for _, n := range []int{-1, MaxAround + 1} {
		if _, _, err := b.Around(t.Context(), b.id, "a", n, rankcache.Descending); err == nil {
			t.Error(n, "neighbours were given")
		}
	}
}

// A script that Redis has forgotten is sent again within the same call.
func TestScriptFlush(t *testing.T) {
	b := newBoard(t)
	b.fill(t, 1, abc...)
	for range 2 {
		must(t, b.client.ScriptFlush(context.Background()).Err()) // other tests load theirs again, too
		_, rank, err := b.Around(t.Context(), b.id, "a", 1, rankcache.Descending)
		must(t, err)
		equal(t, "rank", rank, 1)
	}
}
