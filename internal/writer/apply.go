package writer

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/singleflight"
	"golang.org/x/time/rate"

	"rankcache"
	"rankcache/wire"
)

//go:embed apply.lua
var applySource string

var applyScript = redis.NewScript(applySource)

// maxPasses is how often a command is sent in one attempt: a board that is met for the
// first time may have another number of buckets, and then need a preparation.
const maxPasses = 5

// applier applies commands in Redis: the only code that changes a score. All keys of a
// script carry the board as hash tag, so that a cluster runs it in the board's slot. It
// is safe for concurrent use.
type applier struct {
	client  redis.UniversalClient
	names   wire.Names
	birth   birth
	metrics *metrics
	log     *slog.Logger

	now        func() time.Time
	serverTime func(ctx context.Context, b rankcache.BoardID) (time.Time, error)
	clock      clock
	buckets    bucketCounts
	adoptions  singleflight.Group // by board
	sampling   rate.Sometimes
}

// birth has the settings that a board gets when it is born.
type birth struct {
	life, orderLife time.Duration
	buckets         int
	addAtOnce       int // members that prepare.lua adds up itself
}

func newApplier(opts Options, m *metrics) *applier {
	a := &applier{client: opts.Redis, names: opts.Names, metrics: m, log: opts.Log, now: time.Now, sampling: logLimit(),
		birth:   birth{opts.BoardLife, opts.OrderLife, opts.OrderBuckets, maxAtOnce},
		buckets: bucketCounts{usual: opts.OrderBuckets}}
	a.serverTime = a.timeOfServer
	return a
}

// job is a command and its outcome.
type job struct {
	*Command
	Outcome
	done   bool // Redis replied with an update or a refusal
	need   need
	waited bool // for an adoption
}

// apply sends the jobs that are not done and sets their outcomes. After an error, which
// wraps [rankcache.ErrUnavailable], some may be done and others not. Calling it again
// is safe: an order id that was applied is answered from its record.
//
// Commands of one board are applied in the sequence of jobs, unless Redis rejects
// one and accepts a later one of the same pipeline (out of memory, for example).
func (a *applier) apply(ctx context.Context, jobs []*job) error {
	for range maxPasses {
		err := a.pipeline(ctx, jobs)
		if err == nil {
			if !anyNeed(jobs) {
				return nil
			}
			err = a.prepareBoards(ctx, jobs)
		}
		if err != nil {
			return unavailable(err)
		}
	}
	return unavailable(errUnprepared)
}

var errUnprepared = errors.New("a board is prepared again and again: check that no other program changes its keys, and that all writers are of one version")

func unavailable(err error) error {
	return fmt.Errorf("%w: changing scores: %w: check that Redis is up, writable and not full", rankcache.ErrUnavailable, err)
}

// pipeline sends the jobs that are not done. It returns the first error that is worth a
// retry.
func (a *applier) pipeline(ctx context.Context, jobs []*job) error {
	err := a.send(ctx, jobs, false)
	if redis.HasErrorPrefix(err, "NOSCRIPT") { // a restart, a new master, or SCRIPT FLUSH
		err = a.send(ctx, jobs, true)
	}
	return err
}

// send sends the jobs that are not done in one pipeline, withSource the first one of
// each board with the script's source, which makes it known to the board's server.
func (a *applier) send(ctx context.Context, jobs []*job, withSource bool) (first error) {
	pending := make([]*job, 0, len(jobs))
	replies := make([]*redis.Cmd, 0, len(jobs))
	known := make(map[rankcache.BoardID]bool)
	var fields []*redis.IntCmd
	_, _ = a.client.Pipelined(ctx, func(p redis.Pipeliner) error { // each reply has its own error
		for _, j := range jobs {
			if j.done {
				continue
			}
			run := applyScript.EvalSha
			if withSource && !known[j.Board] {
				run, known[j.Board] = applyScript.Eval, true
			}
			keys, args := a.script(j.Command)
			pending, replies = append(pending, j), append(replies, run(ctx, p, keys, args...))
			a.sampling.Do(func() { fields = append(fields, p.HLen(ctx, keys[2]), p.HLen(ctx, keys[3])) })
		}
		return nil
	})
	for i, j := range pending {
		if err := a.finish(j, replies[i]); err != nil && first == nil {
			first = err
		}
	}
	for _, n := range fields {
		a.metrics.fullest.note(n.Val(), a.now())
	}
	return first
}

// script returns the keys and arguments of apply.lua.
func (a *applier) script(c *Command) (keys []string, args []any) {
	n := a.buckets.of(c.Board)
	bucket := wire.OrderBucket(c.OrderID, uint16(n))
	keys = []string{a.names.BoardKey(c.Board), a.names.MetaKey(c.Board), a.names.OrdersKey(c.Board, 0, bucket), a.names.OrdersKey(c.Board, 1, bucket)}
	number := strconv.FormatFloat(c.Number, 'g', -1, 64) // parses to the same double
	return keys, []any{a.now().UnixMilli(), orderField(c.OrderID), mark(c), c.Member, number, c.At, n}
}

// finish sets the job's outcome from Redis's reply. It returns an error only if the job
// is worth a retry.
func (a *applier) finish(j *job, reply *redis.Cmd) error {
	j.need = needNothing
	text, err := reply.Text()
	if err == nil {
		var n int
		if j.Outcome, j.need, n, err = outcome(j.Command, text); j.need == needBuckets {
			a.buckets.set(j.Board, n)
		}
	}
	if refusal := asRefusal(err); refusal != nil {
		j.Outcome, err = Outcome{Refusal: refusal}, nil
	}
	j.done = err == nil && j.need == needNothing
	if j.need == needAdoption && !j.waited {
		j.waited = true
		a.metrics.waits.Inc()
	}
	return err
}

func anyNeed(jobs []*job) bool {
	for _, j := range jobs {
		if !j.done {
			return true
		}
	}
	return false
}

// prepareBoards gives each board what one of its jobs needs. A refusal is the outcome
// of all jobs of the board that are not done.
func (a *applier) prepareBoards(ctx context.Context, jobs []*job) (first error) {
	results := make(map[rankcache.BoardID]error)
	for _, j := range jobs {
		if j.done {
			continue
		}
		err, tried := results[j.Board]
		if !tried {
			err = a.prepareFor(ctx, j)
			results[j.Board] = err
		}
		if refusal := asRefusal(err); refusal != nil {
			j.Outcome, j.done = Outcome{Refusal: refusal}, true
		} else if err != nil && first == nil {
			first = err
		}
	}
	return first
}

func (a *applier) prepareFor(ctx context.Context, j *job) error {
	switch j.need {
	case needPrepare:
		return a.prepare(ctx, j.Board, "")
	case needAdoption:
		return a.adopt(ctx, j.Board)
	}
	return nil
}

// asRefusal returns the refusal in err, or one for errors that no retry can mend: a
// key of the board has another type.
func asRefusal(err error) *Refusal {
	if r, ok := errors.AsType[*Refusal](err); ok {
		return r
	}
	if isErrorReply(err) && strings.Contains(err.Error(), "WRONGTYPE") {
		return &Refusal{"type", fmt.Errorf("a key of the board holds something else: %w", err)}
	}
	return nil
}

// isErrorReply reports whether the error is a reply of Redis.
func isErrorReply(err error) bool {
	_, ok := errors.AsType[redis.Error](err)
	return ok
}
