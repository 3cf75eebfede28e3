package origin

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache"
)

const stampsAtOnce = 100 // the most boards in a pipeline: page reads wait for it, half a millisecond with 500

// Stamps returns the state and the members of each board, read in one pipeline for every 100 boards; each stamp is of
// one instant. A seq of 0 is unknown: its key is missing, or (with an error that joins the reasons) the board could not
// be read. After a pipeline that Redis leaves unanswered the rest is not asked for. The members are those of the sorted
// set; the sum is unknown while a writer adds the board up.
func (b bulkReader) Stamps(ctx context.Context, boards []rankcache.BoardID) ([]rankcache.Stamp, error) {
	stamps := make([]rankcache.Stamp, len(boards))
	var errs []error
	var torn []int
	for from := 0; from < len(boards); from += stampsAtOnce {
		reads := make([]stampRead, min(stampsAtOnce, len(boards)-from))
		err := b.call(ctx, "totals", func(ctx context.Context) error { return b.readStamps(ctx, boards[from:], reads) })
		for i, r := range reads {
			if stamps[from+i] = r.stamp; r.torn {
				torn = append(torn, from+i)
			}
			if err != nil {
				errs = append(errs, explain(ctx, "totals "+string(boards[from+i]), r.err))
			}
		}
		if !slices.ContainsFunc(reads, stampRead.answered) {
			break
		}
	}
	return stamps, joinFew(append(errs, b.readTorn(ctx, boards, torn, stamps)))
}

// readTorn reads the stamps of the boards at these places with a script each.
func (b bulkReader) readTorn(ctx context.Context, boards []rankcache.BoardID, places []int, stamps []rankcache.Stamp) error {
	qs, as := make([]rankcache.Query, len(places)), make([]rankcache.Answer, len(places))
	for i, place := range places {
		qs[i].Board = boards[place]
	}
	reader(b).readAll(ctx, "totals", qs, as)
	errs := make([]error, len(places))
	for i, place := range places {
		stamps[place], errs[i] = as[i].Stamp, as[i].Err
	}
	return joinFew(errs)
}

// stampRead is how one board's stamp is read: state, members and state again. If the
// state did not change, all are of the instant of the members. Redis needs 1.6 us for
// it and 4.3 us for a script; MULTI (0.9 us) can't span the slots of a cluster.
type stampRead struct {
	before, after *redis.StringCmd // nil if the state is kept nowhere
	members       *redis.IntCmd
	stamp         rankcache.Stamp
	torn          bool // the state changed
	err           error
}

// readStamps reads the stamps of the first boards in one pipeline and returns the first error.
func (b bulkReader) readStamps(ctx context.Context, boards []rankcache.BoardID, reads []stampRead) (first error) {
	at := time.Now()                                               // the replies can't be older
	_, _ = b.client.Pipelined(ctx, func(p redis.Pipeliner) error { // each command has its error
		for i := range reads {
			reads[i].queue(ctx, p, b.keys(boards[i]))
		}
		return nil
	})
	for i := range reads {
		r := &reads[i]
		if r.err = r.finish(b.keys(boards[i]), b.total, at); first == nil {
			first = r.err
		}
	}
	return first
}

func (r *stampRead) queue(ctx context.Context, p redis.Pipeliner, keys []string) {
	if len(keys) == 1 {
		r.members = p.ZCard(ctx, keys[0])
		return
	}
	r.before, r.members, r.after = p.Get(ctx, keys[1]), p.ZCard(ctx, keys[0]), p.Get(ctx, keys[1])
}

// finish makes the stamp, unless the state changed between the replies.
func (r *stampRead) finish(keys []string, total TotalSource, at time.Time) error {
	if err := r.members.Err(); err != nil {
		return err
	}
	var state any
	if r.before != nil {
		text, missing := r.before.Result()
		if err := cmp.Or(notNil(missing), notNil(r.after.Err())); err != nil {
			return err
		}
		if r.torn = text != r.after.Val(); r.torn {
			return nil
		}
		if missing == nil {
			state = text
		}
	}
	stamp, err := total.stampOf(keys[len(keys)-1], state, int(r.members.Val()), at)
	if err == nil {
		r.stamp = stamp
	}
	return err
}

// answered reports whether Redis has answered, if only with an error.
func (r stampRead) answered() bool {
	var reply redis.Error
	return r.err == nil || errors.As(r.err, &reply)
}

// notNil returns err unless it only reports a missing key.
func notNil(err error) error {
	if errors.Is(err, redis.Nil) {
		return nil
	}
	return err
}
