package writer

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
	"golang.org/x/time/rate"

	"rankcache"
	"rankcache/wire"
)

// caller calls apply.lua: the only code that changes a score. All keys of a script carry the board as hash tag, so that a
// cluster runs it in the board's slot. It is safe for concurrent use.
type caller struct {
	*adopter
	scripts  scripts
	hiding   remembered[bool] // boards that have, or had, hidden members
	logs     *redisLog
	sampling rate.Sometimes
}

// pipeline sends the jobs that are not done, in several pipelines if their sequence matters, until
// each is done or its board needs something. It returns the first error that is worth a retry.
func (a *caller) pipeline(ctx context.Context, jobs []*job) error {
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
func (a *caller) send(ctx context.Context, calls [][]*job, withSource bool) (first error) {
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
func (a *caller) script(jobs []*job) (script *redis.Script, keys []string, args []any) {
	board, r := jobs[0].Board, &jobs[0].rules
	f := r.features()
	f.Hidden = f.mayBeHidden() && (a.hiding.get(board) || slices.ContainsFunc(jobs, func(j *job) bool { return j.Op.Moves() }))
	f.Forget = slices.ContainsFunc(jobs, func(j *job) bool { return j.Op == wire.OpForget })
	f.Log = a.logs.has(jobs)
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
	if f.Log {
		args = append(args, string(board))
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
func (a *caller) erasOf(j *job) string {
	if j.round != nil {
		return j.round.list
	}
	return a.eras.list()
}

// finishCall sets the outcomes of the jobs of one call. It returns an error only if it is worth a retry.
func (a *caller) finishCall(jobs []*job, reply *redis.Cmd) (first error) {
	value, err := reply.Result()
	list, isList := value.([]any)
	if isList && len(list) == len(jobs)+1 {
		list = a.logs.failed(list)
	}
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
func (a *caller) finish(j *job, reply string, err error) error {
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
		if a.hiding.put(j.Board, true); !j.rules.features().mayBeHidden() {
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
