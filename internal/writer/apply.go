package writer

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"rankcache"
)

// applier changes scores. It may be used concurrently.
type applier struct {
	client redis.UniversalClient
	script orderScript
}

// job is a command on its way through Redis.
type job struct {
	*Command
	Outcome
	done bool // Redis answered, with an update or a refusal
}

// apply sends the jobs that are not done in one pipeline and fills in their
// outcomes. After an error, which wraps [rankcache.ErrUnavailable], some may be
// done and others not; to call it again is always safe, because an order that
// did get through is answered from what it left behind.
//
// Orders of one board are applied in the order of jobs. Only a Redis that
// refuses one and takes the next in the same pipeline (out of memory, say)
// could turn two around.
func (a *applier) apply(ctx context.Context, jobs []*job) error {
	err := a.pipeline(ctx, jobs)
	if isNoScript(err) { // Redis was restarted, failed over, or its scripts were flushed
		if err = a.script.Load(ctx, a.client).Err(); err == nil {
			err = a.pipeline(ctx, jobs)
		}
	}
	if err != nil {
		return fmt.Errorf("%w: changing scores: %w: check that Redis is up, writable and not full", rankcache.ErrUnavailable, err)
	}
	return nil
}

// pipeline returns the first error that a later attempt may not meet.
func (a *applier) pipeline(ctx context.Context, jobs []*job) (first error) {
	pending := make([]*job, 0, len(jobs))
	answers := make([]*redis.Cmd, 0, len(jobs))
	_, _ = a.client.Pipelined(ctx, func(p redis.Pipeliner) error { // each answer has its own error
		for _, j := range jobs {
			if !j.done {
				pending = append(pending, j)
				answers = append(answers, a.script.EvalSha(ctx, p, a.script.keys(j.Command), a.script.args(j.Command)...))
			}
		}
		return nil
	})
	for i, j := range pending {
		if err := j.take(answers[i]); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// take notes Redis's answer; it returns the error of one that may be better
// another time.
func (j *job) take(answer *redis.Cmd) error {
	text, err := answer.Text()
	if err == nil {
		j.Outcome, err = outcome(j.Command, text)
	}
	if refusal := asRefusal(err); refusal != nil {
		j.Outcome, err = Outcome{Refusal: refusal}, nil
	}
	j.done = err == nil
	return err
}

// asRefusal returns a refusal when trying again can't help: a key of the board
// holds something else.
func asRefusal(err error) *Refusal {
	if r, ok := errors.AsType[*Refusal](err); ok {
		return r
	}
	if isAnswer(err) && (strings.Contains(err.Error(), "WRONGTYPE") || strings.Contains(err.Error(), "not an integer")) {
		return &Refusal{"type", fmt.Errorf("a key of the board holds something else: %w", err)}
	}
	return nil
}

// isAnswer reports whether Redis itself answered the error.
func isAnswer(err error) bool {
	_, ok := errors.AsType[redis.Error](err)
	return ok
}

func isNoScript(err error) bool { return redis.HasErrorPrefix(err, "NOSCRIPT") }
