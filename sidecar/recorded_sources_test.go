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

func (h recordedHot) Top(id rankcache.BoardID) (*rankcache.Top, time.Time, bool) {
	top := h[id]
	return top, time.Now().Add(24 * time.Hour), top != nil
}

func (h recordedHot) Count(rankcache.BoardID) {}

// recordedAway is a Redis that is away.
type recordedAway struct{}

var errRecordedAway = fmt.Errorf("%w: away", rankcache.ErrUnavailable)

func (recordedAway) Page(context.Context, rankcache.BoardID, int, int, rankcache.Direction) (p rankcache.Page, err error) {
	return p, errRecordedAway
}

func (recordedAway) Standings(context.Context, rankcache.BoardID, []string, rankcache.Direction) (rows []rankcache.Standing, s rankcache.Stamp, err error) {
	return rows, s, errRecordedAway
}

func (recordedAway) RankedStandings(context.Context, rankcache.PageQuery, []string) (rows []rankcache.Standing, ahead []rankcache.Ahead, s rankcache.Stamp, err error) {
	return rows, ahead, s, errRecordedAway
}

func (recordedAway) Around(context.Context, rankcache.BoardID, string, int, rankcache.Direction) (p rankcache.Page, rank int, err error) {
	return p, 0, errRecordedAway
}

func (recordedAway) WholePages(_ context.Context, qs []rankcache.PageQuery) []rankcache.WholePage {
	pages := make([]rankcache.WholePage, len(qs))
	for i := range pages {
		pages[i].Err = errRecordedAway
	}
	return pages
}

func (recordedAway) Scores(context.Context, rankcache.BoardID, []string) (rows []rankcache.Standing, s rankcache.Stamp, err error) {
	return rows, s, errRecordedAway
}
