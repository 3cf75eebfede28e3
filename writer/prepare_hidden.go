package writer

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/rooms"
	"rankcache/wire"
)

// A hidden member is out of the sorted set; its score is in the hash of hidden members, where it goes on counting. Of
// the commands that hide and restore a member the one with the highest serial stands, in whatever sequence they come.

// Members hidden on all boards of a class are in its list, with which each of its boards is born; boards that are there
// get a command each. A writer that makes a board indexes it and then reads the list, a hide changes the list and then
// reads the index: one of them sees it.

// serialOf returns the serial of the command that stands for a member; 0: it was never hidden there.
func (a *adopter) serialOf(ctx context.Context, b rankcache.BoardID, member string) (uint64, error) {
	value, err := a.client.HGet(ctx, a.names.CompanionKey(b, wire.Hidden), member).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return 0, unavailable(err)
	}
	v, _, _ := wire.ParseHidden(value)
	return v.Serial, nil
}

// list notes in a class's list that a member is hidden, or restored, unless a later command did. Full: a refusal.
func (a *adopter) list(ctx context.Context, op wire.Op, class, member string, serial uint64) (*Refusal, error) {
	key := a.names.HiddenListKey(class)
	have, err := a.client.HGetAll(ctx, key).Result()
	if err != nil {
		return nil, err
	}
	there, hidden := have[member], 0
	for _, value := range have {
		if !restored(value) {
			hidden++
		}
	}
	switch v, _, _ := wire.ParseHidden(there); {
	case v.Serial > serial:
		return nil, nil
	case op == wire.OpRestore:
		return nil, a.client.HSet(ctx, key, member, fmt.Sprintf("%d -", serial)).Err()
	case there == "" && len(have) >= wire.MaxHidings, (there == "" || restored(there)) && hidden >= wire.MaxHidden:
		return refusals["hidden_full"], nil
	}
	return nil, a.client.HSet(ctx, key, member, serial).Err()
}

// restored reports whether a value of the list is that of a member that was restored, "<serial> -".
func restored(value string) bool { return strings.HasSuffix(value, " -") }

// hiddenOf returns the list of a board's class as prepare.lua takes it, of a shard that of its own members.
func (a *adopter) hiddenOf(ctx context.Context, id rankcache.BoardID, r *rules) (pairs []any, err error) {
	if r.kind == nil || r.end == 0 {
		return nil, nil
	}
	board, _ := r.kind.Parse(id)
	if err := mayHide(r.kind); err != nil {
		return nil, nil
	}
	list, err := a.client.HGetAll(ctx, a.names.HiddenListKey(r.kind.Name())).Result()
	for member, serial := range list {
		_, its := board.For(member)
		if _, _, ok := wire.ParseHidden(serial); ok && its && !restored(serial) && rankcache.CheckMember(member) == nil {
			pairs = append(pairs, member, serial)
		}
	}
	return pairs, err
}

// boardsOf returns the boards of a class that are not closed, of split ones the member's shards.
func (a *adopter) boardsOf(ctx context.Context, kind *rooms.Class, member string) (boards []rankcache.BoardID, err error) {
	all, err := a.client.ZRange(ctx, a.names.Ends, 0, -1).Result()
	for _, id := range all {
		b, ok := kind.Parse(rankcache.BoardID(id))
		if _, its := b.For(member); ok && its {
			boards = append(boards, rankcache.BoardID(id))
		}
	}
	return boards, err
}

// unlist takes a member out of the lists of whom classes hide.
func (a *adopter) unlist(ctx context.Context, member string, tiers Tiers) error {
	for _, kind := range tiers.File().Classes {
		if err := a.client.HDel(ctx, a.names.HiddenListKey(kind.Name()), member).Err(); err != nil {
			return unavailable(err)
		}
	}
	return nil
}
