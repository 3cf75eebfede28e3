package writer

import (
	"context"
	"errors"
	"slices"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"rankcache"
)

// maxPasses is how often a command is sent in one attempt: a board that is met for the
// first time may be of another era, have another number of buckets, hide members, and then need a preparation.
const maxPasses = 7

// applier applies commands in Redis, and prepares their boards. It is safe for concurrent use.
type applier struct {
	*caller
	posts gatherer
}

func newApplier(opts Options, m *metrics) *applier {
	a := &applier{caller: &caller{adopter: newAdopter(opts, m), sampling: logLimit(), logs: newRedisLog(&opts, m)}}
	a.posts = gatherer{send: a.pipeline, groups: make(map[rankcache.BoardID]*postGroup)}
	return a
}

// apply sends the jobs that are not done and sets their outcomes. After an error, which wraps
// [rankcache.ErrUnavailable], some may be done and others not. Calling it again is safe: an order id that was applied
// is answered from its record. Jobs of boards that wait for the ledger are left as they are.
//
// Commands of one board are applied in the sequence of jobs where it matters (see callsOf). Those
// outside of their period come last, as they may be repeats of others.
func (a *applier) apply(ctx context.Context, jobs []*job) error {
	a.lost.await(ctx, jobs)
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
	a.lost.await(ctx, jobs)
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
