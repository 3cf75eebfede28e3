package lastgood

import (
	"bufio"
	"fmt"
	"os"

	"rankcache"
)

// Head returns what the file of a board begins with, and the mean length of its
// members' ids in bytes, as the size of the file tells it. The rest of the file is
// not looked at, so it may still be refused when it is loaded. The errors are
// those of Load.
func (s *Store) Head(board rankcache.BoardID) (Snapshot, int, error) {
	snap, idBytes, err := s.head(board)
	if err != nil {
		return Snapshot{}, 0, fmt.Errorf("size of board %s from %s: %w", board, s.dir, err)
	}
	return snap, idBytes, nil
}

func (s *Store) head(board rankcache.BoardID) (Snapshot, int, error) {
	if err := board.Check(); err != nil {
		return Snapshot{}, 0, err
	}
	file, err := os.Open(s.path(board))
	if err != nil {
		return Snapshot{}, 0, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return Snapshot{}, 0, err
	}
	d := &decoder{in: bufio.NewReader(file)}
	snap, err := d.header()
	switch {
	case err != nil:
		return Snapshot{}, 0, err
	case snap.Board != board:
		return Snapshot{}, 0, fmt.Errorf("%w: it is board %s's", ErrForeign, snap.Board)
	case int64(snap.Members) > info.Size()/leastMember:
		return Snapshot{}, 0, fmt.Errorf("%w: %d bytes, too few for its %d members", ErrCut, info.Size(), snap.Members)
	case snap.Members == 0:
		return snap, 0, nil
	}
	return snap, int(info.Size()/int64(snap.Members)) - leastMember + 1, nil
}
