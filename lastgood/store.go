package lastgood

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"rankcache"
)

// Endings of the names in the folder. Nothing else in it is ours.
const (
	fileEnding = ".board"
	tempEnding = ".tmp" // being written, or left by a crash
	badEnding  = ".bad" // was damaged
)

// Store is a folder of boards' files. One process at a time should use it. All
// methods may be called by several goroutines.
type Store struct {
	dir     string
	metrics *metrics
}

// New returns the store in a folder, which the first Save makes if need be. It
// touches no disk. The error says that reg, which may be nil, has such metrics
// already.
func New(dir string, reg prometheus.Registerer) (*Store, error) {
	s := &Store{dir: dir, metrics: newMetrics()}
	if reg == nil {
		return s, nil
	}
	return s, s.metrics.register(reg)
}

// Save replaces the file of a board. When it returns nil, the file survives a
// crash of the machine; when it returns an error, the one before is as it was.
// Of pieces nothing is kept.
func (s *Store) Save(snap Snapshot, pieces iter.Seq[[]rankcache.Entry]) error {
	begin := time.Now()
	err := s.save(&snap, pieces)
	s.metrics.saves.WithLabelValues(kind(err)).Inc()
	if err != nil {
		return fmt.Errorf("save board %s: %w; check the disk of %s", snap.Board, err, s.dir)
	}
	s.metrics.seconds.Observe(time.Since(begin).Seconds())
	return nil
}

func (s *Store) save(snap *Snapshot, pieces iter.Seq[[]rankcache.Entry]) error {
	if err := snap.Board.Check(); err != nil {
		return err
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	temp, err := os.CreateTemp(s.dir, string(snap.Board)+".*"+tempEnding) // for its owner only
	if err != nil {
		return err
	}
	err = encode(temp, snap, pieces)
	if err == nil {
		err = temp.Sync() // else the rename may reach the disk before the bytes
	}
	if err = errors.Join(err, temp.Close()); err == nil {
		err = os.Rename(temp.Name(), s.path(snap.Board))
	}
	if err != nil {
		return errors.Join(err, os.Remove(temp.Name()))
	}
	return syncDir(s.dir)
}

// syncDir makes a rename in the folder survive a crash of the machine.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Load returns what was last saved of a board. The error wraps fs.ErrNotExist if
// there is nothing, or one of this package's if the file is not good; a damaged
// one is moved aside.
func (s *Store) Load(board rankcache.BoardID) (Snapshot, []rankcache.Entry, error) {
	snap, entries, err := s.load(board)
	s.metrics.loads.WithLabelValues(kind(err)).Inc()
	if err == nil {
		return snap, entries, nil
	}
	if err = fmt.Errorf("load board %s from %s: %w", board, s.dir, err); damaged(err) {
		err = errors.Join(err, os.Rename(s.path(board), s.path(board)+badEnding))
	}
	return Snapshot{}, nil, err
}

func (s *Store) load(board rankcache.BoardID) (Snapshot, []rankcache.Entry, error) {
	if err := board.Check(); err != nil {
		return Snapshot{}, nil, err
	}
	file, err := os.Open(s.path(board))
	if err != nil {
		return Snapshot{}, nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return Snapshot{}, nil, err
	}
	snap, entries, err := decode(file, info.Size())
	if err == nil && snap.Board != board {
		return Snapshot{}, nil, fmt.Errorf("%w: it is board %s's", ErrForeign, snap.Board)
	}
	return snap, entries, err
}

// Sweep removes the files of boards that are not kept and of crashes, unless they
// were written to within the last idle.
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
		return !slices.Contains(keep, rankcache.BoardID(board))
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

func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// path returns the file of a board. An id's characters are all fit for a name.
func (s *Store) path(board rankcache.BoardID) string {
	return filepath.Join(s.dir, string(board)+fileEnding)
}
