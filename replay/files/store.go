package files

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"rankcache"
	"rankcache/internal/metric"
	"rankcache/replay"
	"rankcache/wire"
)

// Endings of the store's file names. Other files in the folder are not touched.
const (
	fileEnding = ".board"
	tempEnding = ".tmp" // being written, or left by a killed process
	badEnding  = ".bad" // damaged
)

// Store is a folder with a file per board, of one process. Any goroutine may call its methods.
type Store struct {
	dir     string
	metrics *metrics
	temps   sync.Once // removes temporary files before the first load or save
}

// New returns the store in a folder, which Save makes. It accesses no disk; errors are those of reg.
func New(dir string, reg prometheus.Registerer) (*Store, error) {
	m, err := newMetrics(reg)
	return &Store{dir: dir, metrics: m}, err
}

// Save replaces the file of a board, durably once it returns nil; after an error the previous one is unchanged.
func (s *Store) Save(snap replay.Saved, pieces iter.Seq[[]rankcache.Entry]) error {
	begin := time.Now()
	err := s.save(&snap, pieces)
	s.metrics.saves.WithLabelValues(kind(err)).Inc()
	if err != nil {
		return fmt.Errorf("save board %s: %w: check the disk of %s", snap.Board, err, s.dir)
	}
	s.metrics.seconds.Observe(time.Since(begin).Seconds())
	return nil
}

func (s *Store) save(snap *replay.Saved, pieces iter.Seq[[]rankcache.Entry]) error {
	if err := snap.Board.Check(); err != nil {
		return err
	}
	return s.replace(wire.FileName(snap.Board)+fileEnding, func(w io.Writer) error { return encode(w, snap, pieces) })
}

// replace writes a file beside that of the name, and renames it.
func (s *Store) replace(name string, write func(io.Writer) error) error {
	s.temps.Do(s.removeTemps)
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	temp, err := os.CreateTemp(s.dir, name+".*"+tempEnding) // readable by its owner only
	if err != nil {
		return err
	}
	err = write(temp)
	if err == nil {
		err = temp.Sync() // otherwise the rename may reach the disk before the bytes
	}
	if err = errors.Join(err, temp.Close()); err == nil {
		err = os.Rename(temp.Name(), filepath.Join(s.dir, name))
	}
	if err != nil {
		return errors.Join(err, os.Remove(temp.Name()))
	}
	return syncDir(s.dir)
}

const roomsFile = "rooms.json" // what Redis has told of rooms. What it means is the caller's.

// SaveRooms replaces the file of rooms, as [Store.Save] does that of a board.
func (s *Store) SaveRooms(data []byte) error {
	if err := s.replace(roomsFile, func(w io.Writer) error { _, err := w.Write(data); return err }); err != nil {
		return fmt.Errorf("save rooms: %w: check the disk of %s", err, s.dir)
	}
	return nil
}

// LoadRooms returns the file of rooms. The error wraps [fs.ErrNotExist] if there is none.
func (s *Store) LoadRooms() ([]byte, error) { return os.ReadFile(filepath.Join(s.dir, roomsFile)) }

// syncDir makes a rename in the folder survive a crash of the machine.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Load returns a board's last saved state; an error wraps fs.ErrNotExist or this package's. Bad files end in .bad.
func (s *Store) Load(board rankcache.BoardID) (replay.Saved, []rankcache.Entry, error) {
	snap, entries, err := s.load(board)
	s.metrics.loads.WithLabelValues(kind(err)).Inc()
	if err == nil {
		return snap, entries, nil
	}
	if err = fmt.Errorf("load board %s from %s: %w", board, s.dir, err); damaged(err) {
		err = errors.Join(err, os.Rename(s.path(board), s.path(board)+badEnding))
	}
	return replay.Saved{}, nil, err
}

func (s *Store) load(board rankcache.BoardID) (replay.Saved, []rankcache.Entry, error) {
	if err := board.Check(); err != nil {
		return replay.Saved{}, nil, err
	}
	s.temps.Do(s.removeTemps)
	file, err := os.Open(s.path(board))
	if err != nil {
		return replay.Saved{}, nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return replay.Saved{}, nil, err
	}
	return decode(file, info.Size(), board, nil)
}

// Sweep removes the files of boards not in keep, temporary and bad ones, unless written within idle.
func (s *Store) Sweep(keep []rankcache.BoardID, idle time.Duration) error {
	list, err := os.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, file := range list {
		if removable(file.Name(), keep) {
			err = errors.Join(err, s.removeIdle(file, idle))
		}
	}
	return err
}

func removable(name string, keep []rankcache.BoardID) bool {
	board, ours := strings.CutSuffix(name, fileEnding)
	if ours {
		return !slices.ContainsFunc(keep, func(b rankcache.BoardID) bool { return wire.FileName(b) == board })
	}
	return strings.HasSuffix(name, tempEnding) || strings.HasSuffix(name, fileEnding+badEnding)
}

func (s *Store) removeIdle(file fs.DirEntry, idle time.Duration) error {
	info, err := file.Info()
	if err != nil || !info.Mode().IsRegular() || time.Since(info.ModTime()) < idle {
		return ignoreGone(err)
	}
	return ignoreGone(os.Remove(filepath.Join(s.dir, file.Name())))
}

// removeTemps removes the temporary files of a killed process. Errors are left to Sweep, which returns them.
func (s *Store) removeTemps() {
	list, _ := os.ReadDir(s.dir)
	for _, file := range list {
		if strings.HasSuffix(file.Name(), tempEnding) {
			_ = s.removeIdle(file, 0)
		}
	}
}

func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (s *Store) path(board rankcache.BoardID) string {
	return filepath.Join(s.dir, wire.FileName(board)+fileEnding)
}

// ReadHeader returns the header of a board's file, and the mean length of its members' ids in bytes, computed from the
// file's size. The rest of the file is not read, so Load may still refuse it. The errors are those of Load.
func (s *Store) ReadHeader(board rankcache.BoardID) (replay.Saved, int, error) {
	snap, idBytes, err := s.readHeader(board)
	if err != nil {
		return replay.Saved{}, 0, fmt.Errorf("size of board %s from %s: %w", board, s.dir, err)
	}
	return snap, idBytes, nil
}

func (s *Store) readHeader(board rankcache.BoardID) (replay.Saved, int, error) {
	if err := board.Check(); err != nil {
		return replay.Saved{}, 0, err
	}
	file, err := os.Open(s.path(board))
	if err != nil {
		return replay.Saved{}, 0, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return replay.Saved{}, 0, err
	}
	d := &decoder{in: bufio.NewReader(file)}
	snap, err := d.headerOf(board, info.Size())
	if err != nil {
		return replay.Saved{}, 0, err
	}
	return snap, idBytes(&snap, info.Size()), nil
}

type metrics struct {
	saves, loads *prometheus.CounterVec // by result, a fixed few
	seconds      prometheus.Histogram
}

func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	set := metric.New(reg, "lastgood_")
	return &metrics{
		saves:   set.Counters("saves_total", "Boards saved to files, by result: ok or failed.", "result"),
		loads:   set.Counters("loads_total", "Boards loaded from files, by result: ok, absent, cut, corrupt, foreign, version or failed.", "result"),
		seconds: set.Histogram("save_seconds", "How long it took to save a board.", saveBuckets),
	}, set.Err()
}

var saveBuckets = []float64{.005, .02, .1, .5, 2, 10}
