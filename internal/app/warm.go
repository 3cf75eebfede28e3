package app

import (
	"context"
	"time"

	"rankcache"
	"rankcache/internal/roomsync"
	"rankcache/origin"
	"rankcache/profile"
	"rankcache/replay"
	"rankcache/rooms"
)

// warmRows is how many rows of a board's head have their profiles loaded before
// the first page is requested.
const warmRows = 50

// warmNamed loads, once Redis answers, the profiles of the heads of the boards
// that the rooms file names.
func warmNamed(ctx context.Context, named *roomsync.Follower, origin *origin.Origin, profiles *profile.Cache) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		tiers := named.Tiers()
		boards := append(tiers.Boards(rooms.ModeSuperHot), tiers.Boards(rooms.ModeHot)...)
		if tops, err := origin.Tops(ctx, boards, warmRows); err == nil {
			for _, top := range tops {
				profiles.Warm(heads(top))
			}
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// heads returns the members of a board's first rows.
func heads(top *rankcache.Top) []string {
	if top == nil {
		return nil
	}
	members := make([]string, min(warmRows, len(top.Entries)))
	for i := range members {
		members[i] = top.Entries[i].Member
	}
	return members
}

// warmingOrigin reads the pages of hot boards and has their profiles loaded, so
// that a board that is promoted has them before its page is handed out.
type warmingOrigin struct {
	*origin.Origin
	profiles *profile.Cache // nil: none
}

// Tops is [origin.Origin.Tops].
func (o warmingOrigin) Tops(ctx context.Context, boards []rankcache.BoardID, n int) ([]*rankcache.Top, error) {
	tops, err := o.Origin.Tops(ctx, boards, n)
	if o.profiles != nil {
		for _, top := range tops {
			o.profiles.Warm(heads(top))
		}
	}
	return tops, err
}

// Prepare implements [replay.Boards]: it publishes the board, which sorts it, and loads the
// profiles of its head, no longer than a page would wait for them.
func (b FilledBoards) Prepare(ctx context.Context, board replay.Board) {
	board.Publish()
	if b.Profiles == nil {
		return
	}
	head := board.Page(0, warmRows, rankcache.Descending)
	members := make([]string, len(head.Entries))
	for i := range head.Entries {
		members[i] = head.Entries[i].Member
	}
	b.Profiles.Get(ctx, members, make([][]byte, len(members)))
}
