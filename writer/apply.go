package writer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"rankcache"
	"rankcache/wire"
)

// maxPasses is how often a command is sent in one attempt: a board that is met for the
// first time may be of another era, have another number of buckets, hide members, and then need a preparation.
const maxPasses = 7

// applier applies commands in Redis: the only code that changes a score. All keys of a script carry the board as hash
// tag, so that a cluster runs it in the board's slot. It is safe for concurrent use.
type applier struct {
	*adopter
	posts    gatherer
	scripts  scripts
	hiding   hidingBoards
	sampling rate.Sometimes
}

func newApplier(opts Options, m *metrics) *applier {
	a := &applier{adopter: newAdopter(opts, m), sampling: logLimit()}
	a.posts = gatherer{send: a.pipeline, groups: make(map[rankcache.BoardID]*postGroup)}
	return a
}

// job is a command and its outcome.
type job struct {
	*Command
	Outcome
	rules   rules    // of the board's class
	outside *Refusal // if it is not a repeat, as it arrived outside of its period
	// clockLimit is how far the writer's clock and Redis's may differ for that to be so.
	clockLimit time.Duration
	round      *round // of its batch; nil: it was posted
	told       bool   // what came of it is published already
	era        string // of the one server that may have answered; "" if there are several
	past       bool   // a repeat of another run than the board has there
	origin     string // as its order's record has it; "" if its record is not known
	first      bool   // a repeat only of what came of its own record
	place      string // of its record, as apply.lua takes it; "" if it was posted, or the topic's id is not known
	done       bool   // Redis replied with an update or a refusal
	waits      bool   // in this attempt: for the ledger to rebuild its board
	need       need
	waited     bool // for an adoption
}

// apply sends the jobs that are not done and sets their outcomes. After an error, which wraps
// [rankcache.ErrUnavailable], some may be done and others not. Calling it again is safe: an order id that was applied
// is answered from its record. Jobs of boards that wait for the ledger are left as they are.
//
// Commands of one board are applied in the sequence of jobs where it matters (see callsOf). Those
// outside of their period come last, as they may be repeats of others.
func (a *applier) apply(ctx context.Context, jobs []*job) error {
	a.await(ctx, jobs)
	inside, outside := split(jobs)
	if err := a.passes(ctx, inside, func() error { return a.pipeline(ctx, inside) }); err != nil {
		return err
	}
	return a.answerOutside(ctx, outside)
}

// split returns the jobs that arrived in time, and the others.
func split(jobs []*job) (inside, outside []*job) {
	for _, j := range jobs {
		if j.outside == nil {
			inside = append(inside, j)
		} else {
			outside = append(outside, j)
		}
	}
	return inside, outside
}

// applyPosts is apply for the jobs of one request, which share pipelines with those of others.
func (a *applier) applyPosts(ctx context.Context, jobs []*job) error {
	a.await(ctx, jobs)
	inside, outside := split(jobs)
	if anyToSend(inside) {
		if err := a.passes(ctx, inside, func() error { return a.gather(ctx, inside) }); err != nil {
			return err
		}
	}
	err := a.answerOutside(ctx, outside)
	if err == nil && anyNeed(jobs) {
		err = unavailable(errLost)
	}
	return err
}

// gather sends jobs with those of other requests: in a cluster those of each board apart.
func (a *applier) gather(ctx context.Context, jobs []*job) error {
	if _, ok := a.client.(*redis.ClusterClient); !ok {
		return a.posts.do(ctx, "", jobs...)
	}
	boards := make(map[rankcache.BoardID][]*job)
	for _, j := range jobs {
		boards[j.Board] = append(boards[j.Board], j)
	}
	var g errgroup.Group
	for board, of := range boards {
		g.Go(func() error { return a.posts.do(ctx, board, of...) })
	}
	return g.Wait()
}

// passes sends the jobs, and prepares their boards, until all are done.
func (a *applier) passes(ctx context.Context, jobs []*job, send func() error) error {
	for range maxPasses {
		err := send()
		if err == nil {
			if !anyToSend(jobs) {
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

var errUnprepared = errors.New("a board had to be prepared several times in a row: check that no other program changes its keys, that the address of Redis is that of one master, and that all writers are of one version")

func unavailable(err error) error {
	return fmt.Errorf("%w: changing scores: %w: check that Redis is up, writable and not full", rankcache.ErrUnavailable, err)
}

// pipeline sends the jobs that are not done, in several pipelines if their sequence matters, until
// each is done or its board needs something. It returns the first error that is worth a retry.
func (a *applier) pipeline(ctx context.Context, jobs []*job) error {
	for _, j := range jobs {
		j.need = needNothing
	}
	for calls := callsOf(jobs); len(calls) > 0; calls = callsOf(jobs) {
		err := a.send(ctx, calls, false)
		if redis.HasErrorPrefix(err, "NOSCRIPT") { // a restart, a new master, or SCRIPT FLUSH
			err = a.send(ctx, callsOf(jobs), true)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// send sends calls in one pipeline, withSource the first ones of
// each board with the script's source, which makes it known to the board's server.
func (a *applier) send(ctx context.Context, calls [][]*job, withSource bool) (first error) {
	type use struct {
		board  rankcache.BoardID
		script *redis.Script
	}
	known := make(map[use]bool)
	replies := make([]*redis.Cmd, len(calls))
	var fields []*redis.IntCmd
	_, _ = a.client.Pipelined(ctx, func(p redis.Pipeliner) error { // each reply has its own error
		for i, c := range calls {
			script, keys, args := a.script(c)
			run, one := script.EvalSha, use{c[0].Board, script}
			if withSource && !known[one] {
				run, known[one] = script.Eval, true
			}
			replies[i] = run(ctx, p, keys, args...)
			a.sampling.Do(func() { fields = append(fields, p.HLen(ctx, keys[len(keys)-2]), p.HLen(ctx, keys[len(keys)-1])) })
		}
		return nil
	})
	for i, c := range calls {
		if err := a.finishCall(c, replies[i]); err != nil && first == nil {
			first = err
		}
	}
	for _, n := range fields {
		a.metrics.fullest.note(n.Val(), a.now())
	}
	return first
}

// maxPerCall is the most commands of one call, which stops Redis for half a millisecond.
const maxPerCall = 64

// callsOf groups the jobs that are not done into calls of a script for one pipeline: those of one
// board, in their sequence, and of one class's rules, which may be set anew meanwhile. A board that needs
// something has none, and one whose commands don't commute a single one: Redis may reject a call (NOSCRIPT,
// out of memory) and accept a later one of the same pipeline.
func callsOf(jobs []*job) (calls [][]*job) {
	const waits = -1                        // in open: the board's other jobs are not sent
	open := make(map[rankcache.BoardID]int) // index of the board's last call
	ordered := orderedBoards(jobs)
	for _, j := range jobs {
		i, ok := open[j.Board]
		switch {
		case j.done || j.waits || ok && i == waits:
			continue
		case j.need != needNothing:
			open[j.Board] = waits
			continue
		case !ok || len(calls[i]) == maxPerCall || calls[i][0].rules != j.rules:
			if ok && ordered[j.Board] {
				open[j.Board] = waits
				continue
			}
			i = len(calls)
			open[j.Board], calls = i, append(calls, nil)
		}
		calls[i] = append(calls[i], j)
	}
	return calls
}

// orderedBoards returns the boards with jobs whose sequence matters.
func orderedBoards(jobs []*job) map[rankcache.BoardID]bool {
	ordered := make(map[rankcache.BoardID]bool)
	for _, j := range jobs {
		if j.done {
			continue
		}
		if f := j.rules.features(); !j.rules.commutes(j.Op) || f.Ties || f.Guard {
			ordered[j.Board] = true
		}
	}
	return ordered
}

// script returns the variant of apply.lua for jobs of one board, its keys and arguments.
func (a *applier) script(jobs []*job) (script *redis.Script, keys []string, args []any) {
	board, r := jobs[0].Board, &jobs[0].rules
	f := r.features()
	f.Hidden = f.mayBeHidden() && (a.hiding.has(board) || slices.ContainsFunc(jobs, func(j *job) bool { return j.Op.Moves() }))
	f.Forget = slices.ContainsFunc(jobs, func(j *job) bool { return j.Op == wire.OpForget })
	n := a.buckets.of(board)
	keys = a.appendCompanions([]string{a.names.BoardKey(board), a.names.MetaKey(board)}, board, f)
	if f.Forget {
		for _, c := range wire.Companions() {
			keys = append(keys, a.names.CompanionKey(board, c))
		}
		keys = append(keys, a.names.LadderKey(board))
	}
	now := a.now().UnixMilli()
	args = []any{now, n, a.keepOf(r)}
	if f.Durable {
		list := a.erasOf(jobs[0])
		args = append(args, list)
		for _, j := range jobs {
			if j.era = ""; len(list) == wire.EraLen {
				j.era = list
			}
		}
	}
	if f.Guard {
		args = append(args, guardArgs(r.guard)...)
		if f.Durable {
			args = append(args, placesOf(jobs))
		}
	}
	if f.Trim {
		args = append(args, r.trim)
	}
	hashes := make(map[int]int) // bucket to the index of its first key, from 1
	for _, j := range jobs {
		bucket := wire.OrderBucket(j.OrderID, uint16(n))
		if hashes[bucket] == 0 {
			hashes[bucket] = len(keys) + 1
			sets := [2]int{0, 1}
			if f.Prime {
				sets = [2]int{wire.PrimeSet, wire.PrimeSet}
			}
			keys = append(keys, a.names.OrdersKey(board, sets[0], bucket), a.names.OrdersKey(board, sets[1], bucket))
		}
		at := j.At
		if f.Prime { // which is known until all are applied, however old it is
			at = now
		}
		origin := ""
		if f.Durable {
			origin = cmp.Or(j.origin, noOrigin)
		}
		args = append(args, j.text(), packed(j.Command, at, hashes[bucket], origin))
	}
	return a.scripts.of(f), keys, args
}

// placesOf returns the places of jobs as apply.lua takes them: of all, or of none.
func placesOf(jobs []*job) string {
	var places strings.Builder
	for _, j := range jobs {
		if j.place == "" {
			return ""
		}
		places.WriteString(j.place)
	}
	return places.String()
}

// erasOf returns the eras for which a durable board is changed: those of the batch's round, or the present
// ones for a post.
func (a *applier) erasOf(j *job) string {
	if j.round != nil {
		return j.round.list
	}
	return a.eras.list()
}

// finishCall sets the outcomes of the jobs of one call. It returns an error only if it is worth a retry.
func (a *applier) finishCall(jobs []*job, reply *redis.Cmd) (first error) {
	value, err := reply.Result()
	list, isList := value.([]any)
	if err == nil && isList && len(list) != len(jobs) {
		err = badReply(fmt.Sprint(len(list), " replies"))
	}
	for i, j := range jobs {
		text, _ := value.(string) // for all
		if isList && err == nil {
			text, _ = list[i].(string)
		}
		if err := a.finish(j, text, err); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// finish sets the job's outcome from Redis's reply or error.
func (a *applier) finish(j *job, reply string, err error) error {
	j.need = needNothing
	if err == nil {
		j.Outcome, j.need, err = outcome(j.Command, reply)
		j.first = j.Duplicate && j.origin != "" && strings.HasSuffix(reply, j.origin)
		j.past = strings.HasPrefix(reply, "<")
	}
	if err == nil && j.need == needBuckets {
		err = a.buckets.note(j.Board, reply[1:])
	}
	if err == nil && j.need == needHidden {
		if a.hiding.note(j.Board); !j.rules.features().mayBeHidden() {
			j.need, err = needNothing, errHides
		}
	}
	if refusal := asRefusal(err); refusal != nil {
		j.Outcome, err = Outcome{Refusal: refusal}, nil
	}
	if j.done = err == nil && j.need == needNothing; j.done {
		a.metrics.note(j, a.now())
	}
	if j.need == needAdoption && !j.waited {
		j.waited = true
		a.metrics.waits.Inc()
	}
	return err
}

// toPost returns the outcome as a post is told it: a repeat of what came of its own record is none.
func (j *job) toPost() Outcome {
	o := j.Outcome
	o.Duplicate = o.Duplicate && !j.first
	return o
}

func anyNeed(jobs []*job) bool {
	return slices.ContainsFunc(jobs, func(j *job) bool { return !j.done })
}

// anyToSend leaves out those whose boards wait for the ledger.
func anyToSend(jobs []*job) bool {
	return slices.ContainsFunc(jobs, func(j *job) bool { return !j.done && !j.waits })
}

// prepareBoards gives each board what one of its jobs needs. A refusal is the outcome
// of all jobs of the board that are not done.
func (a *applier) prepareBoards(ctx context.Context, jobs []*job) (first error) {
	if i := slices.IndexFunc(jobs, func(j *job) bool { return !j.done && j.need == needEras }); i >= 0 {
		if jobs[i].round != nil {
			return errOtherEra
		}
		first = a.fenced(ctx)
	}
	results := make(map[rankcache.BoardID]error)
	for _, j := range jobs {
		if j.done || j.waits {
			continue
		}
		err, tried := results[j.Board]
		if !tried {
			err = a.prepareFor(ctx, j)
			results[j.Board] = err
		}
		if refusal := asRefusal(err); refusal != nil {
			j.Outcome, j.done = Outcome{Refusal: refusal}, true
		} else if j.waits = errors.Is(err, errLost); j.waits {
			continue
		} else if err != nil && first == nil {
			first = err
		}
	}
	return first
}

func (a *applier) prepareFor(ctx context.Context, j *job) error {
	switch j.need {
	case needPrepare:
		return a.prepare(ctx, j.Board, j.rules, "")
	case needAdoption:
		return a.adopt(ctx, j.Board)
	}
	return nil
}

// asRefusal returns the refusal in err, or one for errors that no retry can mend: a
// key of the board has another type. So one board is refused, and others are not held up.
func asRefusal(err error) *Refusal {
	if r, ok := errors.AsType[*Refusal](err); ok {
		return r
	}
	if isErrorReply(err) && strings.Contains(err.Error(), "WRONGTYPE") {
		return &Refusal{"type", fmt.Errorf("a key of another type is where one of the board is expected: %w", err)}
	}
	return nil
}

// refusesWrites returns the reply by which Redis tells that it takes no writes now: it can't save, has too few
// replicas, or is full.
func refusesWrites(err error) error {
	reply, _ := errors.AsType[redis.Error](err)
	for _, prefix := range []string{"MISCONF", "NOREPLICAS", "OOM"} {
		if reply != nil && strings.HasPrefix(reply.Error(), prefix) {
			return reply
		}
	}
	return nil
}

// isErrorReply reports whether the error is a reply of Redis.
func isErrorReply(err error) bool {
	_, ok := errors.AsType[redis.Error](err)
	return ok
}
