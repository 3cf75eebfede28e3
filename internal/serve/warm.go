package serve

import (
	"cmp"
	"context"
	"time"

	"rankcache"
	"rankcache/internal/roomsync"
	"rankcache/internal/tick"
	"rankcache/localboard"
	"rankcache/origin"
	"rankcache/profile"
	"rankcache/replay"
	"rankcache/rooms"
)

const warmRows = 50 // how many rows of a board's head have their profiles loaded before the first page is requested

// warmNamed loads, once Redis answers, the profiles of the heads of the boards that the rooms file names.
func warmNamed(ctx context.Context, named *roomsync.Follower, origin *origin.Origin, profiles *profile.Cache) error {
	for range tick.NowAndEvery(ctx, time.Second) {
		tiers := named.Tiers()
		boards := append(tiers.Boards(rooms.ModeSuperHot), tiers.Boards(rooms.ModeHot)...)
		if warm(profiles, readHeads(ctx, origin, boards, warmRows)) == nil {
			break
		}
	}
	return nil
}

// warm has the profiles loaded of the boards that could be read, and returns the first error of the others.
func warm(profiles *profile.Cache, heads []rankcache.Answer) (err error) {
	for i := range heads {
		profiles.Warm(membersIn(heads[i].Entries[:min(warmRows, len(heads[i].Entries))]))
		err = cmp.Or(err, heads[i].Err)
	}
	return err
}

func headOf(ctx context.Context, board rankcache.Reader) []string {
	return membersIn(rankcache.One(ctx, board, rankcache.Query{Limit: warmRows}).Entries)
}

// expected returns the members that the class names for its head, or those of the period before in memory.
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
	return headOf(context.Background(), running)
}

// warmingOrigin reads pages of hot boards and loads their profiles before a page is handed out.
type warmingOrigin struct {
	rankcache.Reader
	profiles *profile.Cache // nil: none
}

func (o warmingOrigin) Read(ctx context.Context, qs []rankcache.Query, as []rankcache.Answer) {
	o.Reader.Read(ctx, qs, as)
	if o.profiles != nil {
		_ = warm(o.profiles, as)
	}
}

// Prepare implements [replay.Boards]: it publishes the board, which sorts it, and loads the profiles of its head, no
// longer than a page would wait for them. At the head of an empty board are the members expected there.
func (b FilledBoards) Prepare(ctx context.Context, board replay.Board) {
	board.Publish()
	if b.Profiles == nil {
		return
	}
	members := headOf(ctx, board)
	if local, ok := board.(*localboard.Board); ok && len(members) == 0 {
		members = b.expected(local.ID())
	}
	b.Profiles.Get(ctx, members, make([][]byte, len(members)))
}
