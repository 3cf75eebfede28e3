// Package rebuild (no public API) writes boards in Redis again from the ledger, or from the topics of their updates.
//
// The path of a board: [Rebuilder.Rebuild] (rebuild.go) writes the order ids of the last order life under temporary
// names while writers go on (fill.go), then has the writers of this board wait (hold.go) until the ledger has all that
// Redis has applied, writes the members and the order ids that came meanwhile, and puts all of it in the board's place
// in one script. Until then the board is as it was. [Rebuilder.Compare] (compare.go) only looks. With [Options].Updates
// the topic of the board's updates (topic.go) takes the ledger's place: it is folded (history.go, logged.go), and
// proves itself by checksums.
//
// A [Mender] (mend.go) finds masters that may have lost boards (damaged.go), and makes each whole (mending.go): those
// of the ledger's boards that it lacks (known.go) are rebuilt, with pauses where nobody waits (pace.go).
package rebuild

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/ledger"
	"rankcache/wire"
)

const (
	attempts    = 3                     // how often a board is begun again because it was changed by something else
	pollEvery   = 50 * time.Millisecond // the time between two looks whether the ledger has all of a board
	DefaultWait = 30 * time.Second      // how long the ledger may take to write what Redis has applied
)

var (
	// ErrBehind reports a ledger that does not have all that Redis has of a board.
	ErrBehind = errors.New("the ledger does not have all changes of the board")
	// ErrIncomplete reports a ledger that can't have all members of a board.
	ErrIncomplete = errors.New("the ledger does not have all members of the board")
	ErrExpired    = errors.New("the board has expired") // reports a board whose keys have expired

	errMoved = errors.New("the board was changed by something else while it was rebuilt")
)

// Origin reads boards from Redis.
type Origin interface {
	Scan(ctx context.Context, b rankcache.BoardID, fn func([]rankcache.Entry) error) (before, after rankcache.Stamp, err error)
}

// Options configure a [Rebuilder]. All are required, except Wait and Log, and one of Store and Updates.
type Options struct {
	Redis       redis.UniversalClient // closed by the caller
	Names       wire.Names
	Origin      Origin
	Store       *ledger.Store // closed by the caller
	Updates     *Updates      // has boards rebuilt without a ledger; nil: from Store
	AddEarlier  bool          // adds to a board what its members had before it began again; with Updates
	AddBranches bool          // adds up the increments of all histories of a forked board; with Updates
	Rules       func(b rankcache.BoardID) Rules
	Wait        time.Duration // 0: DefaultWait
	Log         *slog.Logger
}

// Rebuilder rebuilds boards. Its methods may be called concurrently for different boards.
type Rebuilder struct{ opts Options }

// New returns a Rebuilder. It connects to nothing.
func New(opts Options) *Rebuilder {
	if opts.Wait == 0 {
		opts.Wait = DefaultWait
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	return &Rebuilder{opts}
}

// Result tells what was written.
type Result struct {
	Before, After rankcache.State // Redis's; Before is zero if Redis did not have the board
	Members       int
	Orders        int             // order ids
	Earlier       int             // members of earlier lives, which are not on the board
	Life          *ledger.Earlier // the life before the board began again, nil if there is none
	Forked        string          // the board's other histories that its topic has, "" if there is none
	Partial       error           // of a lost board: why it may lack members or changes that it had; nil: it has all
	Held          time.Duration   // writers waited
	Took          time.Duration
}

// Rebuild writes a board anew, in a new run. After an error it is as it was before. The error wraps
// [ledger.ErrNoBoard], [ErrBehind], [ErrIncomplete] or [ErrExpired], or is one of Redis or the database.
func (r *Rebuilder) Rebuild(ctx context.Context, b rankcache.BoardID) (*Result, error) {
	return r.again(ctx, b, "")
}

// again makes some attempts.
func (r *Rebuilder) again(ctx context.Context, b rankcache.BoardID, era string) (*Result, error) {
	begun := time.Now()
	for n := 1; ; n++ {
		result, err := r.attempt(ctx, b, era)
		if err == nil {
			result.Took = time.Since(begun)
			return result, nil
		}
		if !errors.Is(err, errMoved) || n == attempts {
			return nil, fmt.Errorf("board %s: %w", b, err)
		}
		r.opts.Log.Warn("beginning again", "board", b, "err", err)
	}
}

// work is one attempt to rebuild a board.
type work struct {
	*Rebuilder
	board rankcache.BoardID
	era   string // of a board that Redis has lost: the present one of its server, whose first run begins with the rebuild; else ""
	rules Rules
	meta  wire.Meta // of Redis, or of a board that is not there: what the new one keeps of it
	redis rankcache.State
	log   *logged           // nil: of the ledger
	born  map[string]string // members that a board of its class is born with as hidden, to their serials
	keys  keys
	place rankcache.State // up to which order ids are written
	lost  int64           // the latest row of rank_lost then
	done  Result
	sum   uint64
}

func (r *Rebuilder) attempt(ctx context.Context, b rankcache.BoardID, era string) (*Result, error) {
	w, err := r.plan(ctx, b, era)
	if err != nil {
		return nil, err
	}
	defer w.end(ctx)
	if err := w.keys.begin(ctx, r.opts.Redis); err != nil {
		return nil, err
	}
	if err := w.ahead(ctx); err != nil {
		return nil, err
	}
	h, err := w.hold(ctx)
	if err != nil {
		return nil, err
	}
	defer h.release(ctx)
	begun := time.Now()
	if err := w.finish(ctx, h); err != nil {
		return nil, err
	}
	w.done.Held = time.Since(begun)
	return &w.done, nil
}

func (w *work) end(ctx context.Context) {
	w.keys.remove(ctx, w.opts.Redis)
	if w.log != nil {
		w.log.close()
	}
}

// plan reads what the new board keeps of the present one.
func (r *Rebuilder) plan(ctx context.Context, b rankcache.BoardID, era string) (*work, error) {
	now, err := r.opts.Redis.Time(ctx).Result()
	if err != nil {
		return nil, err
	}
	w := &work{Rebuilder: r, board: b, era: era, rules: r.opts.Rules(b)}
	value, err := r.opts.Redis.Get(ctx, r.opts.Names.MetaKey(b)).Result()
	switch {
	case errors.Is(err, redis.Nil):
		w.meta = wire.Meta{End: uint64(w.rules.End), Expires: uint64(w.rules.Expires), OrderLife: uint32(w.rules.OrderLife / time.Second), Buckets: uint16(w.rules.Buckets)} // #nosec G115 -- settings, checked by the caller
	case err != nil:
		return nil, err
	default:
		if w.meta, err = wire.ParseMeta(value); err != nil {
			return nil, err
		}
		w.redis = w.meta.State
	}
	ms := uint64(now.UnixMilli()) // #nosec G115 -- after 1970
	if w.meta.Expires != 0 && w.meta.Expires <= ms {
		return nil, fmt.Errorf("%w: %v ago", ErrExpired, time.Duration(ms-w.meta.Expires)*time.Millisecond) // #nosec G115 -- less than 292 years
	}
	if era != "" {
		w.meta.Era = era
	}
	w.meta.Now = max(w.meta.Now, ms)
	w.meta.Turn = max(w.meta.Turn, w.meta.Now/span(&w.meta))
	if err := w.findHidden(ctx); err != nil {
		return nil, err
	}
	w.keys = newKeys(r.opts.Names, b, int(w.meta.Buckets), rand.Text(), w.rules.companions())
	return w, nil
}

// span is how long a turn of order ids lasts, in milliseconds, as in apply.lua.
func span(m *wire.Meta) uint64 { return uint64(m.OrderLife)*1000 + 120_000 }

// since is from which time on order ids are kept, in Unix milliseconds.
func (w *work) since() int64 { return int64((max(w.meta.Turn, 1) - 1) * span(&w.meta)) } // #nosec G115 -- Unix milliseconds

// ahead writes most order ids, for which no writer waits. Where members may be trimmed, all is read later at once.
func (w *work) ahead(ctx context.Context) error {
	if w.opts.Updates != nil {
		return w.foldLog(ctx)
	}
	return w.read(ctx, w.meta.Seq, func(v *ledger.Snapshot) (err error) {
		w.done.Partial = w.lacks(v)
		w.lost, w.meta.Run, w.done.Life = v.Lost, max(w.meta.Run, v.State.Run), v.Before
		if w.done.Earlier, err = v.Earlier(); err != nil || w.rules.Trimmed || w.era != "" {
			return err
		}
		err = w.writeOrders(ctx, v)
		w.place = v.State
		return err
	})
}

// finish writes the rest and puts it in the board's place. The board's writers are held.
func (w *work) finish(ctx context.Context, h *hold) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go h.renew(ctx, cancel)
	var state rankcache.State
	var err error
	if w.log != nil {
		state, err = w.restOfLog(ctx, h.meta.Seq)
	} else if state, err = w.rest(ctx, h.meta.Seq); err == nil {
		err = w.unchanged(ctx, state)
	}
	if err == nil {
		err = w.swap(ctx, h, state)
	}
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return cause
	}
	return err
}

// rest writes the members and the order ids that came meanwhile, and returns the ledger's state.
func (w *work) rest(ctx context.Context, seq uint64) (state rankcache.State, err error) {
	err = w.read(ctx, seq, func(v *ledger.Snapshot) error {
		if v.Lost != w.lost || v.State.Seq < w.place.Seq || v.State.Run < w.place.Run {
			return errMoved
		}
		state = v.State
		if err := w.writeMembers(ctx, v); err != nil {
			return err
		}
		return w.writeOrders(ctx, v)
	})
	return state, err
}

// unchanged makes sure that the ledger has moved nothing to rank_lost since it was read.
func (w *work) unchanged(ctx context.Context, state rankcache.State) error {
	return w.snapshot(ctx, func(v *ledger.Snapshot) error {
		if v.Lost != w.lost || v.State != state {
			return errMoved
		}
		return nil
	})
}

// snapshot calls fn with what the ledger has of the board, of a lost one up to what nobody has published.
func (w *work) snapshot(ctx context.Context, fn func(*ledger.Snapshot) error) error {
	return w.opts.Store.Snapshot(ctx, w.board, func(v *ledger.Snapshot) error {
		if w.era != "" {
			if err := v.EndAtGap(int64(w.meta.Now) - int64(w.meta.OrderLife)*500); err != nil { // #nosec G115 -- Unix milliseconds
				return err
			}
		}
		return fn(v)
	})
}

// read calls fn with what the ledger has of the board, as soon as it has all changes up to seq.
func (w *work) read(ctx context.Context, seq uint64, fn func(*ledger.Snapshot) error) error {
	for end := time.Now().Add(w.opts.Wait); ; {
		err := w.snapshot(ctx, func(v *ledger.Snapshot) error {
			if err := w.check(v, seq); err != nil {
				return err
			}
			return fn(v)
		})
		if !errors.Is(err, ErrBehind) || time.Now().After(end) {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pollEvery):
		}
	}
}

// check returns why the board can't be rebuilt from a snapshot, or nil.
func (w *work) check(v *ledger.Snapshot, seq uint64) error {
	switch {
	case v.State.Run == 0:
		return ledger.ErrNoBoard
	case w.era != "": // what Redis lacks of it comes from the command topic
		return nil
	case v.State.Seq < seq:
		return fmt.Errorf("%w: Redis has applied %d, the ledger has %d: check that rankcache ledger runs and that the board's class has ledger: true", ErrBehind, seq, v.State.Seq)
	case v.Pending > 0:
		return fmt.Errorf("%w: %d that Redis has lost may be applied again", ErrBehind, v.Pending)
	}
	return w.lacks(v)
}

// lacks returns what a snapshot lacks of the board, or nil.
func (w *work) lacks(v *ledger.Snapshot) error {
	switch {
	case v.Begin > 1:
		return fmt.Errorf("%w: it began at change %d", ErrIncomplete, v.Begin)
	case v.Incomplete:
		return fmt.Errorf("%w: what members had before a loss in Redis was removed as too old", ErrIncomplete)
	}
	missing, err := v.Missing(w.place)
	if err == nil && missing > 0 {
		err = fmt.Errorf("%w: %d of those up to %d are missing: see rankcache ledger check", ErrBehind, missing, v.State.Seq)
	}
	return err
}

// newRun proposes a run, as writers do.
func newRun(ms uint64) uint64 { return ms<<10 | mathrand.Uint64N(1<<10) }
