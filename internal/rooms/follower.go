// Package rooms follows what the operator says of rooms: it reads the rooms
// file, asks Redis which boards run in the rooms that name none, resolves both
// to a [rankcache.Tiers] and publishes it. Each step is repeated every
// [DefaultEvery], so that rooms and boards come and go without a restart.
package rooms

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"rankcache"
)

// DefaultEvery is how often the file and the rooms' boards are looked at. The
// file is read, not watched: a ConfigMap's symlink swap, an editor's rename and
// a copy all look the same to a reader.
const DefaultEvery = 2 * time.Second

// Origin says which boards run in rooms.
type Origin interface {
	// RoomBoards returns the boards of each uid, sorted. A room of which Redis
	// could not be asked is missing from the map and explained by the error.
	RoomBoards(ctx context.Context, uids []string) (map[string][]rankcache.BoardID, error)
}

// Follower publishes the tiers in force. Its methods may be called from any
// goroutine.
type Follower struct {
	path    string
	every   time.Duration
	origin  Origin
	changed func(*rankcache.Tiers)
	log     *slog.Logger
	metrics metrics

	tiers atomic.Pointer[rankcache.Tiers]

	// Only Load and Run touch these, one after the other.
	data    []byte
	file    *rankcache.Rooms
	running map[string][]rankcache.BoardID

	mu     sync.Mutex
	status Status
}

// Status is what operators see of the rooms file.
type Status struct {
	File     string    `json:"file"`
	LoadedAt time.Time `json:"loaded_at"`       // when the file in force was read
	Rooms    int       `json:"rooms"`           // rooms in force
	Error    string    `json:"error,omitempty"` // why the newest file is not in force
	Resolved bool      `json:"resolved"`        // Redis has said once which boards run in the rooms
}

// New returns a follower of the rooms file at path; "" stands for a file that
// names no room. changed is called from Run's goroutine with every new tiers; it
// may be nil. Call Load before Run.
func New(path string, every time.Duration, origin Origin, changed func(*rankcache.Tiers), log *slog.Logger, reg prometheus.Registerer) *Follower {
	if every <= 0 {
		every = DefaultEvery
	}
	if changed == nil {
		changed = func(*rankcache.Tiers) {}
	}
	f := &Follower{path: path, every: every, origin: origin, changed: changed, log: log,
		metrics: newMetrics(reg), file: &rankcache.Rooms{}, status: Status{File: path}}
	f.tiers.Store(f.file.Resolve(nil))
	return f
}

// Tiers returns the tiers in force, never nil.
func (f *Follower) Tiers() *rankcache.Tiers { return f.tiers.Load() }

// Mode returns what is in force for a board or its room.
func (f *Follower) Mode(board rankcache.BoardID, room string) rankcache.Mode {
	return f.tiers.Load().Mode(board, room)
}

// Status returns what is known of the file and its rooms.
func (f *Follower) Status() Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.status
}

// Load reads the file for the first time and publishes the tiers that need no
// Redis. A file that can't be read or parsed is an error here; later the last
// good one stays in force.
func (f *Follower) Load() error {
	if f.path == "" {
		f.note(func(s *Status) { s.Resolved = true })
		return nil
	}
	if _, err := f.reload(); err != nil {
		return err
	}
	named := len(f.unnamed()) == 0
	f.note(func(s *Status) { s.Resolved = named })
	f.resolve()
	return nil
}

// Run follows the file and the rooms' boards until ctx is done; it returns nil.
func (f *Follower) Run(ctx context.Context) error {
	tick := time.NewTicker(f.every)
	defer tick.Stop()
	for {
		f.step(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (f *Follower) step(ctx context.Context) {
	fileChanged := false
	if f.path != "" {
		var err error
		fileChanged, err = f.reload()
		f.noteFile(err)
	}
	if f.askRedis(ctx) || fileChanged {
		f.resolve()
	}
}

// reload reads the file and, if it differs from the one in force and is good,
// puts it in force.
func (f *Follower) reload() (changed bool, err error) {
	data, err := readLimited(f.path)
	if err != nil {
		return false, fmt.Errorf("read rooms file: %w", err)
	}
	if f.data != nil && bytes.Equal(data, f.data) {
		return false, nil
	}
	parsed, err := rankcache.ParseRooms(data)
	if err != nil {
		return false, fmt.Errorf("%s: %w", f.path, err)
	}
	f.data, f.file = data, parsed
	f.note(func(s *Status) { s.LoadedAt, s.Rooms = time.Now(), len(parsed.Rooms) })
	f.log.Info("rooms file in force", "file", f.path, "rooms", len(parsed.Rooms), "rules", len(parsed.Rules))
	return true, nil
}

// readLimited reads one byte more than a rooms file may have, so that ParseRooms
// can refuse a file of any size without it being held.
func readLimited(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, rankcache.MaxRoomsFile+1))
}

// askRedis looks up the boards of the rooms that name none.
func (f *Follower) askRedis(ctx context.Context) (changed bool) {
	running := map[string][]rankcache.BoardID{}
	if uids := f.unnamed(); len(uids) > 0 {
		running = f.runningIn(ctx, uids)
	} else {
		f.note(func(s *Status) { s.Resolved = true })
	}
	if maps.EqualFunc(running, f.running, slices.Equal) {
		return false
	}
	f.running = running
	return true
}

// unnamed returns the rooms whose boards the file does not name.
func (f *Follower) unnamed() (uids []string) {
	for _, room := range f.file.Rooms {
		if room.Boards == nil {
			uids = append(uids, room.UID)
		}
	}
	return uids
}

// runningIn returns what Redis says of the rooms, and its last answer for those
// of which it could not be asked.
func (f *Follower) runningIn(ctx context.Context, uids []string) map[string][]rankcache.BoardID {
	answered, err := f.origin.RoomBoards(ctx, uids)
	if err != nil {
		f.metrics.redisErrors.Inc()
	}
	f.note(func(s *Status) { s.Resolved = s.Resolved || err == nil })
	running := map[string][]rankcache.BoardID{}
	for _, uid := range uids {
		boards, ok := answered[uid]
		if !ok {
			boards = f.running[uid]
		}
		running[uid] = boards
	}
	return running
}

func (f *Follower) resolve() {
	t := f.file.Resolve(f.running)
	f.tiers.Store(t)
	f.metrics.superHot.Set(float64(len(t.Boards(rankcache.ModeSuperHot))))
	f.changed(t)
}

// noteFile keeps and logs a change of the file's error, not its repetition.
func (f *Follower) noteFile(err error) {
	text := ""
	f.metrics.fileBad.Set(0)
	if err != nil {
		text = err.Error()
		f.metrics.fileBad.Set(1)
	}
	if text != f.Status().Error && err != nil {
		f.log.Error("rooms file refused, the last good one stays in force", "err", err)
	}
	f.note(func(s *Status) { s.Error = text })
}

func (f *Follower) note(change func(*Status)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(&f.status)
}
