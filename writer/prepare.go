package writer

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/internal/redisclock"
	"rankcache/wire"
)

//go:embed prepare.lua
var prepareSource string

var prepareScript = redis.NewScript(wire.Script(prepareSource))

const maxAtOnce = 5000 // the most members that prepare.lua adds up itself, in some milliseconds

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
	eras, begins, judged := "", beginAny, a.present()
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
		if err = a.mayBegin(ctx, b, judged); err == nil {
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

// keepOf returns for how long a board is kept after its last change, as the scripts take it.
func (a *adopter) keepOf(r *rules) int64 { return cmp.Or(r.keep, a.birth.life).Milliseconds() }

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

func (a *adopter) adopted(b rankcache.BoardID, members int64, took time.Duration) {
	a.metrics.adoptions.Inc()
	a.log.Info("board adopted: another client has made or changed it", "board", b, "members", members, "took", took)
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

func (a *adopter) appendCompanions(keys []string, b rankcache.BoardID, f features) []string {
	for _, c := range wire.Companions() {
		if f.has(c.Section()) {
			keys = append(keys, a.names.CompanionKey(b, c))
		}
	}
	return keys
}

// newRun proposes a run: higher than earlier ones, unique, and below 2^53, which scripts hold, until 2248.
func newRun(now time.Time) uint64 { return uint64(now.UnixMilli())<<10 | rand.Uint64N(1<<10) }

const maxBucketCounts = 100_000 // limits the boards that are remembered; they are forgotten beyond that

// bucketCounts knows boards born with an unusual number of buckets. It is safe for concurrent use.
type bucketCounts struct {
	usual int
	mu    sync.Mutex // nothing is called under it
	other map[rankcache.BoardID]int
}

func (c *bucketCounts) of(b rankcache.BoardID) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n, ok := c.other[b]; ok {
		return n
	}
	return c.usual
}

// note remembers the number of a board, as a script tells it.
func (c *bucketCounts) note(b rankcache.BoardID, text string) error {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 || n > maxOrderBuckets {
		return &Refusal{"type", fmt.Errorf("the board has %.20q buckets of orders, want 1 to %d: check that all writers are of one version", text, maxOrderBuckets)}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.other == nil || len(c.other) >= maxBucketCounts {
		c.other = make(map[rankcache.BoardID]int)
	}
	c.other[b] = int(n)
	return nil
}
