package replay

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"time"

	"rankcache"
	"rankcache/wire"
)

// Board is one board in local memory. Its methods may be called by several goroutines. The strings of updates and
// entries are valid only during the call. Members with data are joined with it in whole boards ([rankcache.JoinData]):
// in what is loaded, in snapshots, in scans of Redis and in files.
type Board interface {
	Apply([]wire.Update) rankcache.ApplyResult
	// StartLoad returns a function that replaces the board by entries that were read from Redis after seq, while
	// updates are applied; it fails if the board was reset since.
	StartLoad(seq uint64, pieces ...[]rankcache.Entry) (load func() error)
	// Sum returns the checksum over all members. The first call adds them up.
	Sum() uint64
	// SetRun records of which run the updates are.
	SetRun(run uint64)
	// SetLife records how far the board's life has come, until Reset. The next Publish shows it.
	SetLife(rankcache.Life)
	Life() rankcache.Life
	// Prove returns whether the board has the run and the sum of the state, and no update beyond its seq. If so, Apply
	// takes from then on the next update only, and only if it gives the sum that it carries.
	Prove(rankcache.State) bool
	// Relax ends the strict mode that Prove began.
	Relax()
	// State returns run and seq, and the sum while the board is proved.
	State() rankcache.State
	// SumAt returns the sum after one of the latest updates.
	SumAt(run, seq uint64) (sum uint64, known bool)
	Reset()
	Progress() rankcache.Progress
	// Score includes updates that are not published yet. memberSeq is the highest seq applied to the member; if it is
	// not ok its removal's, or the seq up to which it may have been removed.
	Score(member string) (score float64, memberSeq uint64, ok bool)
	// Data is what the member has beside its score, "" if nothing; memberSeq is as that of Score.
	Data(member string) (data string, memberSeq uint64)
	Publish()
	rankcache.Reader // of the published view
	// MarkCurrent records that the board equalled Redis at t.
	MarkCurrent(t time.Time)
	CurrentAt() time.Time
	// SetPrimed records whether Redis has the board marked as primed, at a state.
	SetPrimed(primed bool, at rankcache.State)
	// Snapshot returns the last published view, in pieces.
	Snapshot() (rankcache.Stamp, iter.Seq[[]rankcache.Entry])
}

// Boards is the set of local boards. Readers do not find a created board before
// Open. Its methods may be called by several goroutines.
type Boards interface {
	Create(rankcache.BoardID) Board
	// Prepare gets a board that has every update ready for its first reader, before Open.
	// It may wait, until ctx is done: no lock is held.
	Prepare(context.Context, Board)
	Open(rankcache.BoardID)
	Close(rankcache.BoardID)
	Drop(rankcache.BoardID)
}

// Origin is Redis. A total of 0 is an unknown one.
type Origin interface {
	// Totals returns the total and the size of each board. A stamp without a
	// time was not read, and the error has the reason.
	Stamps(context.Context, []rankcache.BoardID) ([]rankcache.Stamp, error)
	// Sample returns the scores of the members and of random others, the total and the size, all of one instant.
	Sample(ctx context.Context, board rankcache.BoardID, members []string, random int) (Sample, error)
	rankcache.Reader
	// Scan gives the whole board to fn in pieces, which fn may keep, and returns the
	// stamps read before the first and after the last.
	Scan(ctx context.Context, board rankcache.BoardID, fn func([]rankcache.Entry) error) (before, after rankcache.Stamp, err error)
	// ServerID returns the run_id of the Redis that has the board.
	ServerID(context.Context, rankcache.BoardID) (string, error)
	// Histories returns for each board a name of what the server that has it has been through, another one after a
	// restart, a failover and FLUSHALL; "" if it does not tell. Without now they may be up to 10 s old.
	Histories(ctx context.Context, boards []rankcache.BoardID, now bool) ([]string, error)
	// Readopt asks a writer to begin a new run of the board and to add it up again, if its run is that one; if it is
	// being added up in another, to end that.
	Readopt(ctx context.Context, board rankcache.BoardID, run uint64) error
}

// Sample has the members that a board is compared with.
type Sample struct {
	rankcache.Stamp
	// Given has the score of each requested member that is on the board.
	Given map[string]float64
	// Random are other members; one may come twice.
	Random []rankcache.Entry
	// Data is what all these have beside their scores.
	Data *rankcache.Data
}

// Files keeps boards over a restart. Its methods may be called by several goroutines.
type Files interface {
	// Save replaces the board's file. Entries are valid only until the next piece.
	Save(Saved, iter.Seq[[]rankcache.Entry]) error
	// Load returns the board's file. The error wraps fs.ErrNotExist if there is none.
	Load(rankcache.BoardID) (Saved, []rankcache.Entry, error)
	// ReadHeader returns what Load would, without the entries, and the mean length of a member
	// in bytes. Load may still refuse the rest.
	ReadHeader(rankcache.BoardID) (Saved, int, error)
	// Sweep removes the files of other boards, unless they are younger than idle.
	Sweep(keep []rankcache.BoardID, idle time.Duration) error
}

// Snapshots are boards that a keeper saves for the whole fleet. Its methods may be called by several goroutines.
type Snapshots interface {
	// LoadNewer returns the board's snapshot, and ends with ctx. The error wraps [ErrOlder] if it
	// is not newer than a file, which may be nil, and fs.ErrNotExist if there is none.
	LoadNewer(ctx context.Context, board rankcache.BoardID, than *Saved) (Saved, []rankcache.Entry, error)
}

// RedisLog is the log of changes in Redis. Its methods may be called by several goroutines, Read by one at a time.
type RedisLog interface {
	// Read returns up to so many entries behind a place, at least one if one comes within wait. After an error the
	// next call may read another log.
	Read(ctx context.Context, after int64, most int, wait time.Duration) ([]wire.LogEntry, error)
	// Ends returns the place of the first entry, and one behind that of the last that there ever was. They are the same
	// if there is none.
	Ends(context.Context) (first, end int64, err error)
}

// States is where a keeper publishes what it has read of all boards.
type States interface {
	// States returns the newest value. The error is why there is none that can be read.
	States(context.Context) (wire.States, error)
}

// ErrOlder reports a snapshot that is not newer than the sidecar's own file.
var ErrOlder = errors.New("the sidecar's own file is as new")

// Saved describes the entries of a board's file.
type Saved struct {
	Board rankcache.BoardID
	Total string
	// State is that of the entries. Without a sum every update up to its seq is in them, and later ones may be, too.
	rankcache.State
	Members int
	// HasData tells that some entries are joined with data.
	HasData bool
	// TakenAt is when the entries were published.
	TakenAt time.Time
	// CurrentAt is when the board was last known to equal Redis.
	CurrentAt time.Time
	// Topic and TopicID name the board's log. Reading resumes at Offsets, one per
	// partition: before them is no update later than Seq.
	Topic, TopicID string
	Offsets        []int64
}

// NewerThan returns whether s is of a later state than o, or of the same one and was known to equal
// Redis later. All are newer than nil.
func (s *Saved) NewerThan(o *Saved) bool {
	return o == nil || cmp.Or(cmp.Compare(s.Run, o.Run), cmp.Compare(s.Seq, o.Seq), s.CurrentAt.Compare(o.CurrentAt)) > 0
}

// age returns how old the copy is by the clock of now. It is unknown (false) if
// the clock was set back, or the board was never known to equal Redis.
func (s *Saved) age(now time.Time) (time.Duration, bool) {
	if s.CurrentAt.IsZero() || s.CurrentAt.After(now) {
		return 0, false
	}
	return now.Sub(s.CurrentAt), true
}
