package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/wire"
)

// Endless is a board without a period.
type Endless struct {
	Board rankcache.BoardID
	Keep  time.Duration // that its class sets; 0: none does
}

// Expiry returns the check of when boards without a period expire, as Redis has it.
func (r Redis) Expiry(boards func() []Endless) Check {
	return Check{"expiry", []string{CheckBoards}, func(ctx context.Context) Verdict {
		all := boards()
		expires, err := r.expiries(ctx, all)
		if err != nil {
			return warnf("when boards expire is unknown: %s", explain(err))
		}
		return judgeExpiry(all, expires)
	}}
}

// expiries returns when the boards expire, by their metas; zero: never.
func (r Redis) expiries(ctx context.Context, boards []Endless) ([]time.Time, error) {
	expires, replies := make([]time.Time, len(boards)), make([]*redis.StringCmd, len(boards))
	_, err := r.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, b := range boards {
			replies[i] = p.Get(ctx, r.Names.MetaKey(b.Board))
		}
		return nil
	})
	if err != nil && err != redis.Nil {
		return nil, err
	}
	for i, reply := range replies { // one that can't be read is another check's
		if m, err := wire.ParseMeta(reply.Val()); err == nil && m.Expires > 0 {
			expires[i] = time.UnixMilli(int64(m.Expires)).UTC() // #nosec G115 -- milliseconds
		}
	}
	return expires, nil
}

// judgeExpiry judges boards that expire: of those for which the rooms file sets nothing,
// somebody may not know.
func judgeExpiry(boards []Endless, expires []time.Time) Verdict {
	first, unset, some := -1, 0, 0
	for i, at := range expires {
		if at.IsZero() {
			continue
		}
		if some++; boards[i].Keep == 0 {
			unset++
		}
		if first < 0 || at.Before(expires[first]) {
			first = i
		}
	}
	if some == 0 {
		return okf("%d super-hot boards without a period, none expires; rankcache big shows all boards", len(boards))
	}
	text := fmt.Sprintf("%d of %d super-hot boards without a period expire, the first %s at %s, unless they are changed", some, len(boards),
		boards[first].Board, expires[first].Format(time.RFC3339))
	if unset == 0 {
		return okf("%s: their classes have a keep", text)
	}
	return warnf("%s: for %d no class sets a keep: writers have --board-life, an earlier version gave them 72h, or the sorted set had an expiry of its own; PERSIST of the board and of its {…} keys keeps one",
		text, unset)
}
