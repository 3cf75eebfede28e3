package writer

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/wire"
)

// applier applies commands in Redis. It is safe for concurrent use.
type applier struct {
	client redis.UniversalClient
	script applyScript
}

// job is a command and its outcome.
type job struct {
	*Command
	Outcome
	done bool // Redis replied with an update or a refusal
}

// apply sends the jobs that are not done in one pipeline and sets their outcomes.
// After an error, which wraps [rankcache.ErrUnavailable], some may be done and
// others not. Calling it again is safe: an order id that was applied is answered
// from its record.
//
// Commands of one board are applied in the sequence of jobs, unless Redis rejects
// one and accepts a later one of the same pipeline (out of memory, for example).
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

// pipeline returns the first error that is worth a retry.
func (a *applier) pipeline(ctx context.Context, jobs []*job) (first error) {
	pending := make([]*job, 0, len(jobs))
	replies := make([]*redis.Cmd, 0, len(jobs))
	_, _ = a.client.Pipelined(ctx, func(p redis.Pipeliner) error { // each reply has its own error
		for _, j := range jobs {
			if !j.done {
				pending = append(pending, j)
				replies = append(replies, a.script.EvalSha(ctx, p, a.script.keys(j.Command), a.script.args(j.Command)...))
			}
		}
		return nil
	})
	for i, j := range pending {
		if err := j.finish(replies[i]); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// finish sets the outcome from Redis's reply. It returns an error only if the job is
// worth a retry.
func (j *job) finish(reply *redis.Cmd) error {
	text, err := reply.Text()
	if err == nil {
		j.Outcome, err = outcome(j.Command, text)
	}
	if refusal := asRefusal(err); refusal != nil {
		j.Outcome, err = Outcome{Refusal: refusal}, nil
	}
	j.done = err == nil
	return err
}

// asRefusal returns the refusal in err, or one for errors that no retry can mend: a
// key of the board has another type.
func asRefusal(err error) *Refusal {
	if r, ok := errors.AsType[*Refusal](err); ok {
		return r
	}
	if isErrorReply(err) && (strings.Contains(err.Error(), "WRONGTYPE") || strings.Contains(err.Error(), "not an integer")) {
		return &Refusal{"type", fmt.Errorf("a key of the board holds something else: %w", err)}
	}
	return nil
}

// isErrorReply reports whether the error is a reply of Redis.
func isErrorReply(err error) bool {
	_, ok := errors.AsType[redis.Error](err)
	return ok
}

func isNoScript(err error) bool { return redis.HasErrorPrefix(err, "NOSCRIPT") }

//go:embed apply.lua
var applySource string

// applyScript is the only code that changes a score. All its keys carry the board as
// hash tag, so that a cluster runs it in the board's slot.
type applyScript struct {
	*redis.Script
	names wire.Names
	life  string // of a new board, milliseconds
}

func newApplyScript(names wire.Names, life time.Duration) applyScript {
	return applyScript{redis.NewScript(applySource), names, strconv.FormatInt(life.Milliseconds(), 10)}
}

func (s applyScript) keys(c *Command) []string {
	return []string{s.names.BoardKey(c.Board), s.names.SeqKey(c.Board), s.names.OrderKey(c.Board, c.OrderID)}
}

func (s applyScript) args(c *Command) []any {
	number := strconv.FormatFloat(c.Number, 'g', -1, 64) // parses to the same double
	return []any{c.Op.String(), c.Member, number, strconv.FormatInt(c.At, 10), s.life}
}

// Outcome is the result of one command: an update, which a repeat of the order id
// gets unchanged whatever the repeat's other fields are, or a refusal.
type Outcome struct {
	Update    wire.Update
	Duplicate bool // the order id was applied before
	Refusal   *Refusal
}

// outcome parses the script's reply to c.
func outcome(c *Command, reply string) (Outcome, error) {
	if reply == "!" {
		return Outcome{Refusal: &Refusal{"overflow", errors.New("the score would not be a finite number; nothing was changed")}}, nil
	}
	if reply == "" || reply[0] != '+' && reply[0] != '=' {
		return Outcome{}, badRecord(reply)
	}
	u, err := readRecord(reply[1:])
	u.Board, u.OrderID = c.Board, c.OrderID
	return Outcome{Update: u, Duplicate: reply[0] == '='}, err
}

// readRecord parses the record that the script keeps of an order id.
func readRecord(record string) (u wire.Update, err error) {
	f := strings.SplitN(record, " ", 6)
	if len(f) != 6 {
		return u, badRecord(record)
	}
	var errs [5]error
	u.Seq, errs[0] = strconv.ParseUint(f[0], 10, 64)
	u.Op, errs[1] = wire.ParseOp(f[1])
	u.Delta, errs[2] = strconv.ParseFloat(f[2], 64)
	u.Score, errs[3] = strconv.ParseFloat(f[3], 64)
	u.At, errs[4] = strconv.ParseInt(f[4], 10, 64)
	u.Member = f[5]
	u.Score += 0 // Redis keeps -0, updates do not
	if errors.Join(errs[:]...) != nil {
		return u, badRecord(record)
	}
	return u, nil
}

func badRecord(record string) error {
	return &Refusal{"type", fmt.Errorf("an order key holds %.80q, which is not a record: check that nothing else uses the key names", record)}
}
