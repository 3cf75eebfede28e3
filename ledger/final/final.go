package final

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"rankcache"
	"rankcache/class"
	"rankcache/internal/metric"
	"rankcache/ledger"
	"rankcache/rooms"
	"rankcache/wire"
)

const DefaultTop = 1000 // how many places of a final are kept in SQL, unless its class keeps all, and published

// ErrBehind reports a ledger that does not have what Redis has of a board yet.
var ErrBehind = errors.New("the ledger is not level with Redis")

// Origin reads boards from Redis.
type Origin interface {
	Scan(ctx context.Context, b rankcache.BoardID, fn func([]rankcache.Entry) error) (before, after rankcache.Stamp, err error)
	// Meta returns the board's meta, and whether it has one.
	Meta(ctx context.Context, b rankcache.BoardID) (meta wire.Meta, found bool, err error)
}

// Files keeps files for good.
type Files interface {
	// Put writes a whole file, or nothing, and returns its URL. A file of that name is replaced.
	Put(ctx context.Context, name string, data []byte) (fileURL string, err error)
}

// Options configure a [Finalizer]. All are required, except Log and Registerer.
type Options struct {
	Origin Origin
	Store  *ledger.Store
	Files  Files
	Rooms  func() *rooms.File // in force; never nil
	// Published returns once the database has all published finals: one from an older dump lacks some. nil: not asked.
	Published  func(context.Context) error
	Top        int // 0: DefaultTop
	Log        *slog.Logger
	Registerer prometheus.Registerer
}

// Finalizer makes finals. Its methods may be called concurrently.
type Finalizer struct {
	opts     Options
	attempts *prometheus.CounterVec
	asked    atomic.Int64 // when all finals were there, Unix milliseconds
}

// askEvery is how often it is asked whether all finals are there. No database is restored within that time.
const askEvery = 10 * time.Second

// published returns nil if the database has all finals that were published.
func (f *Finalizer) published(ctx context.Context) error {
	now := time.Now()
	if f.opts.Published == nil || now.Sub(time.UnixMilli(f.asked.Load())) < askEvery {
		return nil
	}
	err := f.opts.Published(ctx)
	if err == nil {
		f.asked.Store(now.UnixMilli())
	} else if errors.Is(err, ledger.ErrBehind) {
		err = fmt.Errorf("%w: %w", ErrBehind, err)
	}
	return err
}

// New returns a Finalizer. It starts nothing and connects to nothing.
func New(opts Options) *Finalizer {
	if opts.Top == 0 {
		opts.Top = DefaultTop
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	set := metric.New(opts.Registerer, "finals_")
	defer set.Must()
	f := &Finalizer{opts: opts, attempts: set.Counters("total", "Attempts to make the final of a closed board: made, behind (the ledger lags), differs (Redis and ledger disagree), failed.", "result")}
	for _, result := range []string{"made", "behind", "differs", "failed"} {
		f.attempts.WithLabelValues(result)
	}
	return f
}

// level compares how far the ledger is with a state of Redis.
func (f *Finalizer) level(ctx context.Context, b rankcache.BoardID, want rankcache.State) error {
	have, err := f.opts.Store.Latest(ctx, b)
	if err != nil && !errors.Is(err, ledger.ErrNoBoard) {
		return err
	}
	if !ledger.Level(have, want) {
		return fmt.Errorf("%w: Redis has state %v, the ledger %v", ErrBehind, want, have)
	}
	return nil
}

// Final makes a closed board's final, or finds it, and returns its record. Shards have one final together, made for the
// first that there is once all are closed: the record is returned for that one, nil for others. The error wraps
// [ErrBehind], or is a [*Differs] if Redis and the ledger disagree.
func (f *Finalizer) Final(ctx context.Context, b rankcache.BoardID) (record []byte, err error) {
	board, kind, ok := f.opts.Rooms().Board(b)
	whole := b
	if ok {
		whole = board.Whole()
	}
	first := true
	if whole != b {
		if first, err = f.isFirst(ctx, whole, b); err != nil {
			return nil, err
		}
	}
	err = f.published(ctx)
	var made *ledger.Final
	if err == nil {
		made, err = f.opts.Store.FinalOf(ctx, whole, 0, f.opts.Top)
	}
	switch {
	case err != nil:
		return nil, err
	case made == nil && !first: // each attempt reads all shards
		return nil, fmt.Errorf("%w: the final of %s is made for its first shard", ErrBehind, whole)
	case made == nil:
		if ok {
			made, err = f.make(ctx, whole, board, kind)
		} else {
			err = fmt.Errorf("board %s is of no class of the rooms file", b)
		}
		f.attempts.WithLabelValues(result(err)).Inc()
	}
	if err != nil || !first {
		return nil, err
	}
	return wire.EncodeFinal(&made.Final)
}

func result(err error) string {
	_, differs := errors.AsType[*Differs](err)
	switch {
	case err == nil:
		return "made"
	case differs:
		return "differs"
	case errors.Is(err, ErrBehind):
		return "behind"
	}
	return "failed"
}

func (f *Finalizer) make(ctx context.Context, b rankcache.BoardID, board class.Board, kind *rooms.Class) (*ledger.Final, error) {
	made := &ledger.Final{MadeAt: time.Now().UnixMilli()}
	made.Final = wire.Final{Board: b, Class: kind.Name(), Dims: board.Dims, Tag: board.Period.Tag, Start: board.Period.Start.UnixMilli(), End: board.Period.End.UnixMilli(), Form: kind.Form}
	rows, err := f.proved(ctx, made, kind.Shards())
	if err != nil {
		return nil, err
	}
	ledger.ByRank(rows)
	if made.Top = rows[:min(len(rows), f.opts.Top)]; kind.FinalAll {
		made.Rows = rows
	}
	data, err := encode(&made.Final, kind.Data, rows)
	if err != nil {
		return nil, err
	}
	if made.File, err = f.opts.Files.Put(ctx, fileName(&made.Final, "-"+made.State.String()+".parquet"), data); err != nil {
		return nil, err
	}
	if err := f.opts.Store.SaveFinal(ctx, made); err != nil {
		return nil, err
	}
	f.opts.Log.Info("final made", "board", b, "members", made.Members, "state", made.State, "file", made.File)
	return made, nil
}

// fileName returns the name of a final's file. Files with ":" in their name can't be read everywhere.
func fileName(f *wire.Final, suffix string) string {
	return f.Class + "/" + f.Tag + "/" + strings.ReplaceAll(string(f.Board), ":", ".") + suffix
}
