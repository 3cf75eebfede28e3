// Package roomsync follows what operators say of rooms and publishes it as a
// [rooms.Tiers].
//
// One look, in order: the rooms file is read again (file.go); the hash that all
// sidecars share is read, in which operators set rooms at run time (shared.go,
// dynamic.go); both become one list in which the file wins (merge.go); Redis is
// asked which boards run in the rooms that name none (running.go); and if
// anything differs, all of it is resolved and published (follower.go). A look is
// taken about every [DefaultEvery], and at once by the process on which a room is
// set (http.go).
//
// # Locks
//
// Follower.turn is held for a whole look, answers of Redis included, so that one
// look never undoes a newer one. Follower.mu guards the status and is taken with
// turn held; nothing is called with it held.
package roomsync

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"rankcache"
	"rankcache/rooms"
)

// DefaultEvery is how often file, hash and rooms' boards are looked at, give or
// take a tenth: what is said on one sidecar has then reached all within 2 s. The
// file is read, not watched: a ConfigMap's symlink swap, an editor's rename and
// a copy all look the same to a reader.
const DefaultEvery = time.Second

// patience is for how many looks a Redis that does not answer is waited for
// before what is known is published without it.
const patience = 3

// Origin says which boards run in rooms.
type Origin interface {
	// RoomBoards returns the boards of each uid, sorted. A room of which Redis
	// could not be asked is missing from the map and explained by the error.
	RoomBoards(ctx context.Context, uids []string) (map[string][]rankcache.BoardID, error)
}

// Config is what a [Follower] follows.
type Config struct {
	File   string        // rooms file; "" stands for one that names no room
	Every  time.Duration // 0: DefaultEvery
	Origin Origin
	Shared Shared // rooms set at run time; nil: none
	// Changed is called with every new tiers, one call at a time, by whoever
	// took the look; the first call waits until all is known or Redis has failed
	// to answer a few times. nil: nobody is told.
	Changed func(*rooms.Tiers)
	Log     *slog.Logger
}

// Follower publishes the tiers in force. Its methods may be called from any
// goroutine.
type Follower struct {
	cfg     Config
	metrics metrics

	tiers atomic.Pointer[rooms.Tiers]
	list  atomic.Pointer[list] // what the tiers were made of

	turn    sync.Mutex // before mu; held for a look, guards what follows
	data    []byte     // of the file in force
	file    *rooms.File
	dynamic map[string]rooms.Entry // by field; replaced, never changed
	running map[string][]rankcache.BoardID
	// answered says that Redis has told once which boards run in all rooms, and
	// heard that it has told once which rooms are set at run time.
	answered, heard bool
	looks           int
	told            bool // Changed is called from now on

	mu     sync.Mutex
	status Status
}

// New returns a follower that starts nothing. Call Load before Run.
func New(cfg Config, reg prometheus.Registerer) *Follower {
	if cfg.Every <= 0 {
		cfg.Every = DefaultEvery
	}
	if cfg.Changed == nil {
		cfg.Changed = func(*rooms.Tiers) {}
	}
	f := &Follower{cfg: cfg, metrics: newMetrics(reg), file: &rooms.File{}}
	f.status.File.File = cfg.File
	if cfg.Shared != nil {
		f.status.Dynamic.Key = cfg.Shared.Key()
	}
	f.resolve()
	return f
}

// Tiers returns the tiers in force, never nil.
func (f *Follower) Tiers() *rooms.Tiers { return f.tiers.Load() }

// Mode returns what is in force for a board or its room.
func (f *Follower) Mode(board rankcache.BoardID, room string) rooms.Mode {
	return f.tiers.Load().Mode(board, room)
}

// Load reads the file for the first time and publishes the tiers that need no
// Redis. A file that can't be read or parsed is an error here; later the last
// good one stays in force.
func (f *Follower) Load() error {
	f.turn.Lock()
	defer f.turn.Unlock()
	if _, err := f.reload(); err != nil {
		return err
	}
	f.resolve()
	f.tell()
	return nil
}

// Run follows file, hash and the rooms' boards until ctx is done; it returns nil.
func (f *Follower) Run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		f.look(ctx)
		timer.Reset(f.cfg.Every*9/10 + rand.N(f.cfg.Every/5)) // a fleet that was started together asks apart
	}
}

// look brings everything up to date.
func (f *Follower) look(ctx context.Context) {
	f.turn.Lock()
	defer f.turn.Unlock()
	fileChanged, err := f.reload()
	f.noteFile(err)
	sharedChanged := f.readShared(ctx)
	if f.askRunning(ctx) || fileChanged || sharedChanged {
		f.resolve()
		f.changed()
	}
	f.looks++
	f.tell()
}

// resolve publishes what is known.
func (f *Follower) resolve() {
	l := merge(f.file, f.dynamic, f.running)
	t := l.inForce.Resolve(f.running)
	f.list.Store(l)
	f.tiers.Store(t)
	f.metrics.superHot.Set(float64(len(t.Boards(rooms.ModeSuperHot))))
}

// changed tells of new tiers whoever has been told of others before.
func (f *Follower) changed() {
	if f.told {
		f.cfg.Changed(f.Tiers())
	}
}

// tell begins to tell of tiers: not before they are complete, because readiness
// waits for the boards of the first ones, but not never because Redis is away.
func (f *Follower) tell() {
	heard := f.heard || f.cfg.Shared == nil || f.looks >= patience
	f.answered = f.answered || len(f.list.Load().unnamed()) == 0
	if complete := heard && f.answered; complete {
		f.note(func(s *Status) { s.File.Resolved = true })
	} else if f.looks < patience {
		return
	}
	if !f.told {
		f.told = true
		f.changed()
	}
}
