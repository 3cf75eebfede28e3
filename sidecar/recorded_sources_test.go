package sidecar_test

import (
	"context"
	"fmt"
	"time"

	"rankcache"
	"rankcache/localboard"
	"rankcache/sidecar"
)

type recordedBoardsOpen struct{ *localboard.Boards }

func (b recordedBoardsOpen) Get(id rankcache.BoardID) (sidecar.Board, bool) {
	board, ok := b.Boards.Get(id)
	return board, ok
}

// recordedHot are the pages of hot boards, which never change.
type recordedHot map[rankcache.BoardID]*rankcache.Top

func (h recordedHot) Read(_ context.Context, qs []rankcache.Query, as []rankcache.Answer) {
	for i := range qs {
		if top := h[qs[i].Board]; top != nil {
			top.Answer(&qs[i], &as[i], time.Now().Add(24*time.Hour))
		} else {
			as[i].Fail(rankcache.ErrNotKept)
		}
	}
}

func (h recordedHot) Count(rankcache.BoardID) {}

func (h recordedHot) Take(*rankcache.Query, *rankcache.Answer) {}

// recordedAway is a Redis that is away.
type recordedAway struct{}

func (recordedAway) Read(_ context.Context, qs []rankcache.Query, as []rankcache.Answer) {
	for i := range as {
		as[i].Fail(fmt.Errorf("%w: away", rankcache.ErrUnavailable))
	}
}
