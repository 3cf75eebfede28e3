package writer

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/internal/redisclock"
	"rankcache/internal/tick"
	"rankcache/wire"
)

//go:embed prepare.lua
var prepareSource string

var prepareScript = redis.NewScript(wire.Script(prepareSource))

// prepare makes the board ready: its birth, the turn of its orders, a longer life, its adoption; given the run that it
// still has, a new run and adoption. The error is a [*Refusal] if no retry can help.
func (a *adopter) prepare(ctx context.Context, b rankcache.BoardID, r rules, run string) error {
	if err := a.clock.Agrees(ctx, redisclock.Good, maxClockDifference); err != nil {
		return err
	}
	if err := a.index(ctx, a.ending(nil, b, &r)); err != nil {
		return err
	}
	if err := a.prepareRolling(ctx, b, &r); err != nil {
		return err
	}
	hidden, err := a.hiddenOf(ctx, b, &r) // after the index: see hideAll
	if err != nil {
		return err
	}
	first := ""
	if r.rolls() {
		if first, err = a.wholeness(ctx, b, r.kind); err != nil {
			return err
		}
	}
	begin := time.Now()
	eras, begins, judged := "", beginAny, a.lost.present()
	if r.durable() {
		eras = a.eras.list()
	}
	if r.asksLedger() {
		if !judged.reading || judged.number == 0 {
			return errNotJudged
		}
		eras, begins = judged.list, judged.begins()
	}
	reply, err := a.runPrepare(ctx, b, &r, run, eras, first, begins, hidden)
	if err == nil && reply == "b" {
		if err = a.lost.mayBegin(ctx, b, judged); err == nil {
			reply, err = a.runPrepare(ctx, b, &r, run, eras, first, beginAny, hidden)
		}
	}
	if err != nil {
		return err
	}
	switch rest := reply[1:]; reply[0] {
	case 'n':
		return a.buckets.note(b, rest)
	case 's':
		return a.fenced(ctx)
	case 'w':
		return a.adopt(ctx, b)
	case '+':
		return a.prepared(b, rest, time.Since(begin))
	case 'h':
		a.metrics.hiddenLost.Inc()
		a.log.Error("hidden members were deleted: those that a command names are on the board again; hide anew whom the log names as hidden there (member hidden)",
			"board", b, "key", a.names.CompanionKey(b, wire.Hidden), "hidden_again", len(hidden)/2)
		return a.prepare(ctx, b, r, run)
	case 'i':
		return &Refusal{"unreadable", fmt.Errorf("board %s: member %q has an infinite score, which no reader can be given: give it another (ZADD); nothing was changed", b, rest)}
	case '!':
		if refusals[rest] == nil {
			return badReply(reply)
		}
		return refusals[rest]
	}
	return nil // "m": apply.lua returns it too
}

// prepareRolling makes the rolling boards that a board changes before itself, so that each of them has all of its
// changes.
func (a *adopter) prepareRolling(ctx context.Context, b rankcache.BoardID, r *rules) error {
	for _, to := range rollingBoards(a.tiers.File(), b, r.kind) {
		for range 2 { // the first may learn the number of buckets
			if err := a.prepare(ctx, to.ID, rulesOf(to.Board, to.kind), ""); err != nil && asRefusal(err) == nil {
				return err
			}
		}
	}
	return nil
}

// ending appends the index's entry of a board with a period. None is born after its expiry.
func (a *adopter) ending(dst []redis.Z, b rankcache.BoardID, r *rules) []redis.Z {
	if r.end == 0 || a.now().UnixMilli() >= r.expires {
		return dst
	}
	return append(dst, redis.Z{Score: float64(r.end), Member: string(b)})
}

// index has boards closed after their end. The controller finds boards in the index, so it must have them
// before they are born.
func (a *adopter) index(ctx context.Context, boards []redis.Z) error {
	if len(boards) == 0 {
		return nil
	}
	if err := a.client.ZAddNX(ctx, a.names.Ends, boards...).Err(); err != nil {
		return fmt.Errorf("index of ends %s: %w", a.names.Ends, err)
	}
	return nil
}

func (a *adopter) runPrepare(ctx context.Context, b rankcache.BoardID, r *rules, run, eras, first, begins string, hidden []any) (string, error) {
	now, orderLife := a.now(), cmp.Or(r.orderLife, a.birth.orderLife)
	keys, data := a.allKeys(b, r), 0
	if r.data() {
		data = slices.Index(keys, a.names.CompanionKey(b, wire.Data)) + 1
	}
	keys = append(keys, a.names.CompanionKey(b, wire.Hidden))
	args := []any{now.UnixMilli(), newRun(now), a.keepOf(r), int64(orderLife / time.Second), a.birth.addAtOnce, run, a.buckets.of(b), r.end, r.expires, eras, first, begins, data}
	reply, err := prepareScript.Run(ctx, a.client, keys, append(args, hidden...)...).Text()
	if err == nil && reply == "" {
		err = badReply(reply)
	}
	return reply, err
}

// prepared records and logs the result of prepare.lua.
func (a *adopter) prepared(b rankcache.BoardID, reply string, took time.Duration) error {
	var adopted, members, fullest int64
	if _, err := fmt.Sscan(reply, &adopted, &members, &fullest); err != nil {
		return badReply(reply)
	}
	a.metrics.fullest.note(fullest, a.now())
	if adopted == 1 {
		a.adopted(b, members, took)
	}
	return nil
}

// allKeys returns the keys that a board has from its birth.
func (a *adopter) allKeys(b rankcache.BoardID, r *rules) []string {
	keys := []string{a.names.BoardKey(b), a.names.MetaKey(b)}
	for set := range 2 {
		for bucket := range a.buckets.of(b) {
			keys = append(keys, a.names.OrdersKey(b, set, bucket))
		}
	}
	keys = a.appendCompanions(keys, b, r.features())
	if r.rolls() {
		keys = append(keys, a.primeKeys(b)...)
	}
	return keys
}

// newRun proposes a run: higher than earlier ones, unique, and below 2^53, which scripts hold, until 2248.
func newRun(now time.Time) uint64 { return uint64(now.UnixMilli())<<10 | rand.Uint64N(1<<10) }

const (
	readoptEvery = time.Second // how often boards are looked for whose sum is wrong
	readoptPage  = 100         // about how many are adopted each time
)

// forgetScript removes a field of a hash if its value is unchanged.
var forgetScript = redis.NewScript(`if redis.call('HGET', KEYS[1], ARGV[1]) == ARGV[2] then redis.call('HDEL', KEYS[1], ARGV[1]) end return 0`)

type readopter struct{ *adopter } // adopts boards whose sum in Redis is wrong. It is safe for concurrent use.

// readopt adopts the boards of which a sidecar has found that their sum in Redis is wrong, until ctx ends.
func (a readopter) readopt(ctx context.Context) {
	limit := logLimit()
	for range tick.Every(ctx, readoptEvery) {
		if err := a.readoptOnce(ctx); err != nil && ctx.Err() == nil {
			limit.Do(func() { a.log.Warn("boards with a wrong sum not adopted, retrying", "err", err) })
		}
	}
}

func (a readopter) readoptOnce(ctx context.Context) error {
	fields, _, err := a.client.HScan(ctx, a.names.Readopt, 0, "", readoptPage).Result()
	if err != nil {
		return err
	}
	for i := 0; i+1 < len(fields); i += 2 {
		board, run := rankcache.BoardID(fields[i]), fields[i+1]
		if err := a.readoptBoard(ctx, board, run); err != nil && asRefusal(err) == nil {
			return err
		}
		if err := forgetScript.Run(ctx, a.client, []string{a.names.Readopt}, fields[i], run).Err(); err != nil {
			return err
		}
	}
	return nil
}

// readoptBoard adopts the board if run is still its run.
func (a readopter) readoptBoard(ctx context.Context, b rankcache.BoardID, run string) error {
	if n, err := strconv.ParseUint(run, 10, 53); b.Check() != nil || err != nil || n == 0 {
		return nil // not of a sidecar
	}
	_, kind, _ := a.tiers.File().Board(b)
	for range 3 { // the first may learn the number of buckets, and the eras
		if err := a.prepare(ctx, b, rules{kind: kind, keep: keepAsItIs}, run); err != nil {
			return err
		}
	}
	return nil
}
