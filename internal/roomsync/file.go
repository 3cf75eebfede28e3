package roomsync

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"time"

	"rankcache/rooms"
)

// reload reads the file and, if it differs from the one in force and is good,
// puts it in force.
func (f *Follower) reload() (changed bool, err error) {
	if f.cfg.File == "" {
		return false, nil
	}
	data, err := readLimited(f.cfg.File)
	if err != nil {
		return false, fmt.Errorf("read rooms file: %w", err)
	}
	if f.data != nil && bytes.Equal(data, f.data) {
		return false, nil
	}
	parsed, err := rooms.Parse(data)
	if err != nil {
		return false, fmt.Errorf("%s: %w", f.cfg.File, err)
	}
	f.data, f.file = data, parsed
	f.note(func(s *Status) { s.File.LoadedAt, s.File.Rooms = time.Now(), len(parsed.Rooms) })
	f.cfg.Log.Info("rooms file in force", "file", f.cfg.File, "rooms", len(parsed.Rooms), "rules", len(parsed.Rules))
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
	return io.ReadAll(io.LimitReader(file, rooms.MaxFile+1))
}

// noteFile keeps and logs a change of the file's error, not its repetition.
func (f *Follower) noteFile(err error) {
	text := ""
	f.metrics.fileBad.Set(0)
	if err != nil {
		text = err.Error()
		f.metrics.fileBad.Set(1)
	}
	if text != f.Status().File.Error && err != nil {
		f.cfg.Log.Error("rooms file refused, the last good one stays in force", "err", err)
	}
	f.note(func(s *Status) { s.File.Error = text })
}
