package app

import (
	"context"
	"time"

	"rankcache"
	"rankcache/internal/roomsync"
	"rankcache/localboard"
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

// headOf returns the members of a local board's first rows.
func headOf(board replay.Board) []string {
	head := board.Page(0, warmRows, rankcache.Descending)
	members := make([]string, len(head.Entries))
	for i := range head.Entries {
		members[i] = head.Entries[i].Member
	}
	return members
}

// expected returns the members that the class of a board names for its head, or else those
// at the head of the period before, if that is in memory.
func (b FilledBoards) expected(id rankcache.BoardID) []string {
	board, kind, ok := b.Classes().Board(id)
	if !ok {
		return nil
	}
	before, err := board.Previous()
	running, open := b.Boards.Get(before.ID)
	if kind.WarmMembers != nil || err != nil || !open {
		return kind.WarmMembers
	}
	return headOf(running)
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
// profiles of its head, no longer than a page would wait for them. At the head of an empty
// board are the members expected there.
func (b FilledBoards) Prepare(ctx context.Context, board replay.Board) {
	board.Publish()
	if b.Profiles == nil {
		return
	}
	members := headOf(board)
	if local, ok := board.(*localboard.Board); ok && len(members) == 0 {
		members = b.expected(local.ID())
	}
	b.Profiles.Get(ctx, members, make([][]byte, len(members)))
}
