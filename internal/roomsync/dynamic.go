package roomsync

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"rankcache/rooms"
)

// ErrFull says that no more entries can be set at run time.
var ErrFull = fmt.Errorf("%d rooms and boards are set at run time, the most that can be: delete some, or name them in the rooms file", MaxDynamic)

// maxBadShown is how many bad entries the status explains.
const maxBadShown = 10

// BadEntry is a field of the hash that is ignored.
type BadEntry struct {
	Field  string `json:"field"`
	Reason string `json:"reason"`
}

// readShared brings the dynamic entries up to date. While the hash can't be
// read, what was last read stays in force.
func (f *Follower) readShared(ctx context.Context) (changed bool) {
	if f.cfg.Shared == nil {
		return false
	}
	fields, err := f.cfg.Shared.Entries(ctx)
	if err != nil {
		if ctx.Err() == nil {
			f.noteShared(err)
		}
		return false
	}
	entries, bad := parseEntries(fields)
	f.noteBad(bad)
	f.noteShared(nil)
	f.heard = true
	return f.putInForce(entries)
}

// parseEntries returns the good entries by field, and why others are not.
func parseEntries(fields map[string]string) (entries map[string]rooms.Entry, bad []BadEntry) {
	entries = make(map[string]rooms.Entry, len(fields))
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		entry, err := parseEntry(field, fields[field])
		if err != nil {
			bad = append(bad, BadEntry{fmt.Sprintf("%.80s", field), err.Error()})
			continue
		}
		entries[field] = entry
	}
	return entries, bad
}

func parseEntry(field, value string) (rooms.Entry, error) {
	entry, err := rooms.ParseEntry([]byte(value))
	if err == nil && entry.Field() != field {
		err = fmt.Errorf("the value is of %.80q", entry.Field())
	}
	return entry, err
}

// putInForce replaces the dynamic entries.
func (f *Follower) putInForce(entries map[string]rooms.Entry) (changed bool) {
	if maps.EqualFunc(entries, f.dynamic, sameEntry) {
		return false
	}
	f.dynamic = entries
	f.metrics.dynamic.Set(float64(len(entries)))
	f.note(func(s *Status) { s.Dynamic.Entries = len(entries) })
	f.cfg.Log.Info("rooms set at run time have changed", "entries", len(entries))
	return true
}

func sameEntry(a, b rooms.Entry) bool {
	if a.Rule != nil || b.Rule != nil {
		return a.Rule != nil && b.Rule != nil && *a.Rule == *b.Rule
	}
	return a.Room.UID == b.Room.UID && a.Room.Mode == b.Room.Mode &&
		(a.Room.Boards == nil) == (b.Room.Boards == nil) && slices.Equal(a.Room.Boards, b.Room.Boards)
}

// Set says entry to all sidecars, and to this one before it returns. An error
// wraps [ErrFull], or is of Redis and leaves unknown whether the others hear it.
func (f *Follower) Set(ctx context.Context, entry rooms.Entry) error {
	value, err := json.Marshal(entry)
	if err != nil {
		return err
	}
	f.turn.Lock()
	defer f.turn.Unlock()
	field := entry.Field()
	if _, known := f.dynamic[field]; !known && len(f.dynamic) >= MaxDynamic {
		return ErrFull
	}
	if err := f.cfg.Shared.Put(ctx, field, string(value)); err != nil {
		return err
	}
	f.cfg.Log.Info("set at run time", "entry", string(value))
	entries := maps.Clone(f.dynamic)
	if entries == nil { // the hash could not be read before
		entries = map[string]rooms.Entry{}
	}
	entries[field] = entry
	f.act(ctx, entries)
	return nil
}

// Unset takes back what was said under a field of the hash, and reports whether
// there was anything.
func (f *Follower) Unset(ctx context.Context, field string) (bool, error) {
	f.turn.Lock()
	defer f.turn.Unlock()
	there, err := f.cfg.Shared.Remove(ctx, field)
	if err != nil {
		return false, err
	}
	if there {
		f.cfg.Log.Info("no longer set at run time", "field", field)
	}
	entries := maps.Clone(f.dynamic)
	delete(entries, field)
	f.act(ctx, entries)
	return there, nil
}

// act publishes entries that this process has just written.
func (f *Follower) act(ctx context.Context, entries map[string]rooms.Entry) {
	if f.putInForce(entries) {
		f.askRunning(ctx)
		f.resolve()
		f.changed()
	}
}

// noteShared keeps and logs a change of the hash's error, not its repetition.
func (f *Follower) noteShared(err error) {
	if err == nil {
		now := time.Now()
		f.metrics.sharedRead.Set(float64(now.UnixMilli()) / 1000)
		f.note(func(s *Status) { s.Dynamic.Error, s.Dynamic.ReadAt = "", now })
		return
	}
	f.metrics.redisErrors.Inc()
	if f.Status().Dynamic.Error == "" {
		f.cfg.Log.Warn("rooms set at run time can't be read, what was last read stays in force", "err", err)
	}
	f.note(func(s *Status) { s.Dynamic.Error = err.Error() })
}

func (f *Follower) noteBad(bad []BadEntry) {
	f.metrics.dynamicBad.Set(float64(len(bad)))
	shown := bad[:min(len(bad), maxBadShown)]
	if len(bad) > 0 && !slices.Equal(shown, f.Status().Dynamic.Bad) {
		f.cfg.Log.Error("bad entries among the rooms set at run time are ignored", "entries", len(bad), "first", bad[0].Field, "reason", bad[0].Reason)
	}
	f.note(func(s *Status) { s.Dynamic.BadEntries, s.Dynamic.Bad = len(bad), shown })
}

// errField reports a name that no entry can have.
var errField = errors.New("want one of uid and match")

// fieldOf returns the field of a room or a board pattern; one of both is empty.
func fieldOf(uid, match string) (string, error) {
	switch {
	case (uid == "") == (match == ""):
		return "", errField
	case uid != "":
		return rooms.RoomField(uid), rooms.CheckUID(uid)
	}
	return rooms.BoardField(match), nil
}
