package origin

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"rankcache"
)

// Two members hold the total between them and every change adds a member:
// an answer whose parts are of different moments can't add up.
const change = `
local n = redis.call('INCR', KEYS[2])
redis.call('ZADD', KEYS[1], n, 'a', -n, 'b', -1000000 - n, 'm' .. n)
return n`

func TestAnswersAreOfOneInstant(t *testing.T) {
	b := newBoard(t)
	keys := []string{b.names.BoardKey(b.id), b.names.SeqKey(b.id)}
	must(t, b.client.Eval(t.Context(), change, keys).Err())
	ctx, stop := context.WithCancel(t.Context())
	var changing sync.WaitGroup
	changing.Go(func() {
		for ctx.Err() == nil {
			if err := b.client.Eval(ctx, change, keys).Err(); err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
				return
			}
		}
	})
	defer changing.Wait()
	defer stop()
	for range 300 {
		for _, read := range []func() (rankcache.Stamp, float64, float64, error){b.viaPage, b.viaStandings, b.viaAround, b.viaTops, b.viaSample} {
			stamp, a, other, err := read()
			must(t, err)
			n := float64(stamp.Seq)
			if a != n || other != -n || stamp.Members != int(stamp.Seq)+2 {
				t.Fatalf("seq %d, %d members, a has %v, b has %v", stamp.Seq, stamp.Members, a, other)
			}
		}
	}
}

func (b board) viaPage() (rankcache.Stamp, float64, float64, error) {
	page, err := b.Page(context.Background(), b.id, 0, 2, rankcache.Desc)
	return both(page, err)
}

func (b board) viaAround() (rankcache.Stamp, float64, float64, error) {
	page, _, err := b.Around(context.Background(), b.id, "a", 1, rankcache.Desc)
	return both(page, err)
}

func (b board) viaTops() (rankcache.Stamp, float64, float64, error) {
	tops, err := b.Tops(context.Background(), []rankcache.BoardID{b.id}, 2)
	if err != nil {
		return rankcache.Stamp{}, 0, 0, err
	}
	return both(rankcache.Page{Stamp: rankcache.Stamp{Seq: tops[0].Seq, Members: tops[0].Members}, Entries: tops[0].Entries}, nil)
}

func (b board) viaStandings() (rankcache.Stamp, float64, float64, error) {
	places, stamp, err := b.Standings(context.Background(), b.id, []string{"a", "b"}, rankcache.Desc)
	if err != nil {
		return stamp, 0, 0, err
	}
	return stamp, places[0].Score, places[1].Score, nil
}

func (b board) viaSample() (rankcache.Stamp, float64, float64, error) {
	s, err := b.Sample(context.Background(), b.id, []string{"a", "b"}, 0)
	return s.Stamp, s.Given["a"], s.Given["b"], err
}

func both(page rankcache.Page, err error) (rankcache.Stamp, float64, float64, error) {
	if err == nil && len(page.Entries) != 2 {
		err = fmt.Errorf("%d rows", len(page.Entries))
	}
	if err != nil {
		return page.Stamp, 0, 0, err
	}
	return page.Stamp, page.Entries[0].Score, page.Entries[1].Score, nil
}
