package roomsync

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"rankcache"
	"rankcache/internal/tick"
	"rankcache/rooms"
)

// DefaultEvery is the interval between polls, give or take a tenth: a room set on
// one sidecar reaches all within 2 s. The file is read, not watched: a ConfigMap's
// symlink swap, an editor's rename and a copy all look the same to a reader.
const DefaultEvery = time.Second

// maxFirstPolls is after how many polls the first tiers are published even if Redis has not answered.
const maxFirstPolls = 3

// Origin reads which boards run in rooms.
type Origin interface {
	// RoomBoards returns the boards of each uid, sorted. The error explains rooms that could not be read.
	RoomBoards(ctx context.Context, uids []string) (map[string][]rankcache.BoardID, error)
}

// Config holds the sources of a [Follower].
type Config struct {
	File  string                            // rooms file; "": none
	Parse func([]byte) (*rooms.File, error) // of its content; nil: [rooms.Parse]
	// CheckBoard returns why no board has an id, such as [wire.Names.CheckBoard]; nil: [rankcache.BoardID.Check].
	CheckBoard func(rankcache.BoardID) error
	// NoLog refuses what can't be without a log of changes ([rooms.File.CheckWithoutLog]).
	NoLog bool
	// NoKafka refuses what can't be without Kafka where Redis has the log ([rooms.File.CheckWithoutKafka]).
	NoKafka bool

	Every  time.Duration // 0: DefaultEvery
	Origin Origin
	Shared Shared // rooms set at run time; nil: none
	// Histories returns for each board a name of what its server has been through, as that of [rankcache/origin] does:
	// with another one, what is gone from Redis is lost, and stays in force for a time; nil: it is deleted.
	Histories func(ctx context.Context, boards []rankcache.BoardID, now bool) ([]string, error)
	Kept      Kept // nil: what Redis tells is not kept over a restart
	// Changed is called with every new tiers, one call at a time, on the goroutine that polled. The first call waits
	// until all sources were read, or Redis has failed for a few polls. nil: not called.
	Changed func(*rooms.Tiers)
	Log     *slog.Logger
}

func (cfg Config) checkFile(f *rooms.File) error {
	if cfg.NoLog {
		if err := f.CheckWithoutLog(); err != nil {
			return err
		}
	}
	if cfg.NoKafka {
		if err := f.CheckWithoutKafka(); err != nil {
			return err
		}
	}
	return f.CheckBoards(cfg.CheckBoard)
}

// Follower publishes the tiers in force. Its methods may be called concurrently.
type Follower struct {
	cfg     Config
	metrics metrics

	tiers  atomic.Pointer[rooms.Tiers]
	merged atomic.Pointer[merged] // the entries that the tiers were resolved from

	pollMu sync.Mutex // before mu; held for a poll; guards the next fields
	data   []byte     // of the file in force
	files
	classBoards []rooms.Rule      // what the modes of classes name now
	fields      map[string]string // of the hash
	dynamic     dynamic
	bypasses    []rooms.Bypass // in force; replaced, never changed
	running     map[string][]rankcache.BoardID
	kept        told
	lost        losses
	found
	keepFailed  bool // the last time
	sharedRead  bool // the hash was read once
	runningRead bool // the boards of all rooms were read once
	polls       int
	notifying   bool // Changed is called from now on

	sharedGate

	mu     sync.Mutex
	status Status
}

// New returns a follower that starts nothing. Call Load before Run.
func New(cfg Config, reg prometheus.Registerer) *Follower {
	if cfg.Every <= 0 {
		cfg.Every = DefaultEvery
	}
	if cfg.Parse == nil {
		cfg.Parse = rooms.Parse
	}
	if cfg.CheckBoard == nil {
		cfg.CheckBoard = rankcache.BoardID.Check
	}
	if cfg.Changed == nil {
		cfg.Changed = func(*rooms.Tiers) {}
	}
	f := &Follower{cfg: cfg, metrics: newMetrics(reg), files: files{check: cfg.checkFile, own: &rooms.File{}, file: &rooms.File{}}, sharedGate: sharedGate{done: make(chan struct{})},
		lost: losses{fields: make(map[string]string), running: make(map[string][]rankcache.BoardID)}}
	f.found.used.Store(&map[rankcache.BoardID]*atomic.Int64{})
	f.found.more = make(map[rankcache.BoardID]bool)
	f.status.File.File = cfg.File
	if cfg.Shared != nil {
		f.status.Dynamic.Key = cfg.Shared.Key()
	}
	f.publish()
	return f
}

// Tiers returns the tiers in force, never nil.
func (f *Follower) Tiers() *rooms.Tiers { return f.tiers.Load() }

// File returns the rooms file in force with the classes set at run time, never nil: an empty one without either.
func (f *Follower) File() *rooms.File { return f.merged.Load().file }

// Bypasses returns the bypasses in force, that of all boards first. They must not be changed.
func (f *Follower) Bypasses() []rooms.Bypass { return f.merged.Load().bypasses }

// Mode returns the mode in force for a board or its room.
func (f *Follower) Mode(board rankcache.BoardID, room string) rooms.Mode {
	return f.tiers.Load().Mode(board, room)
}

// Boards returns the boards of one mode in force, sorted. The slice is the caller's.
func (f *Follower) Boards(mode rooms.Mode) []rankcache.BoardID { return f.tiers.Load().Boards(mode) }

// Load reads the file for the first time and publishes the tiers that need no Redis. A bad file is an error only here.
func (f *Follower) Load() error {
	f.pollMu.Lock()
	defer f.pollMu.Unlock()
	if _, err := f.readFile(); err != nil {
		return err
	}
	f.restore()
	f.nameClassBoards()
	f.publish()
	f.checkResolved()
	return nil
}

// Run polls all sources until ctx is done and returns nil.
func (f *Follower) Run(ctx context.Context) error {
	for ; ctx.Err() == nil; tick.Sleep(ctx, tick.Jitter(f.cfg.Every)) {
		f.poll(ctx)
	}
	return nil
}

// poll reads all sources and publishes changes.
func (f *Follower) poll(ctx context.Context) {
	f.pollMu.Lock()
	defer f.pollMu.Unlock()
	fileChanged, err := f.readFile()
	f.recordFileError(err)
	f.lookAtHistory(ctx)
	sharedChanged, _ := f.readShared(ctx) // its error is in the status
	f.putInForce(ctx, f.lookAtFound() || fileChanged || sharedChanged)
	f.noteHistory()
	f.polls++
	f.checkResolved()
	f.keep()
}

// putInForce publishes what was read or written here, if that, a period or a room's boards have changed.
func (f *Follower) putInForce(ctx context.Context, changed bool) {
	changed = f.nameClassBoards() || changed
	f.putBypasses(time.Now()) // before the rooms' boards are read: it has to act in any case
	if f.readRunning(ctx) || changed {
		f.publish()
		f.notify()
	}
}

// publish merges the sources, resolves them and makes the tiers visible.
func (f *Follower) publish() {
	m := merge(f.file, f.classBoards, f.dynamic.entries, f.running)
	t := m.inForce.Resolve(f.running, slices.Sorted(maps.Keys(*f.found.used.Load()))...).Bypassing(f.bypasses)
	m.bypasses, m.document = f.bypasses, f.document
	f.merged.Store(m)
	f.tiers.Store(t)
	f.metrics.superHot.Set(float64(len(t.Boards(rooms.ModeSuperHot))))
}

// putBypasses puts into force what the hash has for this time, and logs it. Changed is called for modes only.
func (f *Follower) putBypasses(now time.Time) {
	var next []rooms.Bypass
	for _, b := range f.dynamic.bypasses {
		if now.Before(b.Until) {
			next = append(next, b)
		}
	}
	slices.SortFunc(next, func(a, b rooms.Bypass) int { return cmp.Compare(a.Field(), b.Field()) }) // '*' is before all ids
	if slices.Equal(next, f.bypasses) {
		return
	}
	f.logBypasses(next)
	f.bypasses = next
	all, named := 0, len(next)
	if named > 0 && next[0].All {
		all, named = 1, named-1
	}
	f.metrics.bypassed.Set(float64(named))
	f.metrics.bypassedAll.Set(float64(all))
	m := *f.merged.Load()
	m.bypasses = next
	f.merged.Store(&m)
	f.tiers.Store(f.tiers.Load().Bypassing(next))
}

func (f *Follower) logBypasses(next []rooms.Bypass) {
	before := make(map[string]rooms.Bypass, len(f.bypasses))
	for _, b := range f.bypasses {
		before[b.Field()] = b
	}
	for _, b := range next {
		was := before[b.Field()]
		if delete(before, b.Field()); was != b {
			f.cfg.Log.Warn("bypass is in force, Redis answers", "board", b.String(), "by", b.By, "until", b.Until)
		}
	}
	for _, b := range before {
		f.cfg.Log.Warn("bypass has ended, local copies answer again", "board", b.String(), "by", b.By)
	}
}

// nameClassBoards finds which boards the modes of classes are for now, as periods end and begin.
func (f *Follower) nameClassBoards() (changed bool) {
	named := f.file.ClassBoards(time.Now())
	changed = !slices.Equal(named, f.classBoards)
	f.classBoards = named
	return changed
}

// notify calls Changed, unless the first tiers are not complete yet.
func (f *Follower) notify() {
	if f.notifying {
		f.cfg.Changed(f.Tiers())
	}
}

// checkResolved starts the calls of Changed once the tiers are complete, because readiness waits for the boards of the
// first call, or after maxFirstPolls, so that an outage of Redis does not block it.
func (f *Follower) checkResolved() {
	sharedRead := f.sharedRead || f.cfg.Shared == nil
	if sharedRead {
		f.sharedGate.open()
	}
	sharedRead = sharedRead || f.polls >= maxFirstPolls
	f.runningRead = f.runningRead || len(f.merged.Load().roomsWithoutBoards()) == 0
	if complete := sharedRead && f.runningRead; complete {
		f.updateStatus(func(s *Status) { s.File.Resolved = true })
	} else if f.polls < maxFirstPolls {
		return
	}
	if !f.notifying {
		f.notifying = true
		f.notify()
	}
}

// Status returns the state of the sources.
func (f *Follower) Status() Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.status
}

// Resolved reports whether the boards of all rooms are known.
func (f *Follower) Resolved() bool { return f.Status().File.Resolved }

func (f *Follower) updateStatus(change func(*Status)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(&f.status)
}
