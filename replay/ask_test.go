package replay

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"rankcache"
	"rankcache/internal/tick"
)

// slowOrigin answers after a time, and not for one board.
type slowOrigin struct {
	Origin
	asked []int // boards of each request
}

func (o *slowOrigin) Stamps(ctx context.Context, boards []rankcache.BoardID) ([]rankcache.Stamp, error) {
	o.asked = append(o.asked, len(boards))
	tick.Sleep(ctx, 100*time.Millisecond)
	stamps := make([]rankcache.Stamp, len(boards))
	for i, id := range boards {
		if id != "b7" {
			stamps[i] = rankcache.Stamp{State: rankcache.State{Run: 1, Seq: uint64(len(id))}, At: time.Now()}
		}
	}
	return stamps, errors.New("one node does not answer")
}

// TestGatesAskTogether: the questions of gates that come while Redis is slow go together, and each has the answer about its board, as
// of when it was asked.
func TestGatesAskTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		origin := &slowOrigin{}
		a := newAsker(origin)
		go a.run(ctx)
		const boards = 1000
		for i := range boards {
			go func() {
				id, begin := rankcache.BoardID(fmt.Sprint("b", i)), time.Now()
				got, err := a.read(ctx, id, new(sources))
				if i == 7 {
					if err == nil {
						t.Error("a board that was not read has an answer")
					}
					return
				}
				if err != nil || got.Seq != uint64(len(id)) || got.requested.Before(begin) || time.Since(got.requested) != 100*time.Millisecond {
					t.Errorf("board %s: %+v, %v", id, got, err)
				}
			}()
		}
		synctest.Wait()
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(origin.asked) > 1+boards/askedAtOnce+1 {
			t.Errorf("%d requests for %d boards: %v", len(origin.asked), boards, origin.asked)
		}
		cancel()
		if _, err := a.read(ctx, "b", new(sources)); !errors.Is(err, context.Canceled) {
			t.Errorf("after the end: %v", err)
		}
	})
}
