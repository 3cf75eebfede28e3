package roomsync

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"time"

	"rankcache"
	"rankcache/rooms"
)

type refused struct{ error } // an error of what was to be set at run time

func (r refused) Unwrap() error { return r.error }

var (
	errFull         = refused{fmt.Errorf("limit of %d rooms and boards set at run time reached: delete some, or move them to the rooms file", MaxDynamic)}
	errManyBypasses = refused{fmt.Errorf("limit of %d bypassed boards reached: bypass all boards", MaxBypasses)}
)

const bypassKept = time.Minute // how long a bypass that has ended stays in the hash, at least

// readFile reads the rooms file and puts it in force if it has changed and is valid.
func (f *Follower) readFile() (changed bool, err error) {
	if f.cfg.File == "" {
		return false, nil
	}
	data, err := readLimited(f.cfg.File)
	if err != nil {
		return false, fmt.Errorf("read rooms file: %w: check --rooms, and that the file is mounted", err)
	}
	if f.data != nil && bytes.Equal(data, f.data) {
		return false, nil
	}
	parsed, err := f.cfg.Parse(data)
	if err != nil {
		return false, fmt.Errorf("%s: %w", f.cfg.File, err)
	}
	if err := f.putClasses(parsed, f.document); err != nil {
		return false, fmt.Errorf("%s: %w", f.cfg.File, err)
	}
	f.data = data
	f.updateStatus(func(s *Status) { s.File.LoadedAt, s.File.Rooms = time.Now(), len(parsed.Rooms) })
	f.cfg.Log.Info("rooms file in force", "file", f.cfg.File, "rooms", len(parsed.Rooms), "rules", len(parsed.Rules), "classes", len(parsed.Classes))
	return true, nil
}

// readLimited reads one byte more than a rooms file may have at most, so that rooms.Parse rejects a larger one.
func readLimited(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, rooms.MaxFile+1))
}

// recordFileError keeps the file's error for the status and logs it if it is new.
func (f *Follower) recordFileError(err error) {
	text := ""
	f.metrics.fileBad.Set(0)
	if err != nil {
		text = err.Error()
		f.metrics.fileBad.Set(1)
	}
	if text != f.Status().File.Error && err != nil {
		f.cfg.Log.Error("rooms file rejected, the last good one stays in force", "err", err)
	}
	f.updateStatus(func(s *Status) { s.File.Error = text })
}

// readShared updates the dynamic entries and classes. If the hash can't be read, the last ones stay in force.
func (f *Follower) readShared(ctx context.Context) (changed bool, err error) {
	if f.cfg.Shared == nil {
		return false, nil
	}
	fields, err := f.cfg.Shared.Entries(ctx)
	if err != nil {
		f.lost.unsure = f.lost.unsure || !errors.Is(err, ErrNoHash)
		if ctx.Err() == nil {
			f.recordSharedError(err)
		}
		f.sharedRead = f.sharedRead || errors.Is(err, ErrNoHash) // nothing is set, and waiting changes nothing
		return false, err
	}
	changed = f.putShared(f.fieldsWithLost(ctx, fields))
	f.recordSharedRead()
	f.sharedRead = true
	return changed, nil
}

// putShared puts in force what the hash has.
func (f *Follower) putShared(fields map[string]string) (changed bool) {
	f.fields = fields
	document := fields[rooms.ClassesField]
	entries := maps.Clone(fields)
	delete(entries, rooms.ClassesField)
	read, bad := f.parse(entries)
	if document != f.document {
		if err := f.putClasses(f.own, document); err != nil {
			bad = append(bad, BadEntry{rooms.ClassesField, err.Error()})
		} else {
			changed = true
		}
	}
	f.recordBad(bad)
	return f.setDynamic(read) || changed
}

func (f *Follower) recordSharedRead() {
	now := time.Now()
	f.metrics.sharedRead.Set(float64(now.UnixMilli()) / 1000)
	f.updateStatus(func(s *Status) { s.Dynamic.Error, s.Dynamic.ReadAt = "", now })
}

// recordSharedError logs the first error of an outage and keeps the latest for the status.
func (f *Follower) recordSharedError(err error) {
	f.metrics.redisErrors.Inc()
	if f.Status().Dynamic.Error == "" {
		f.cfg.Log.Warn("rooms set at run time can't be read, the last ones stay in force", "err", err)
	}
	f.updateStatus(func(s *Status) { s.Dynamic.Error = err.Error() })
}

// recordBad keeps the first invalid fields for the status and logs new ones.
func (f *Follower) recordBad(bad []BadEntry) {
	f.metrics.dynamicBad.Set(float64(len(bad)))
	shown := bad[:min(len(bad), maxBadShown)]
	if len(bad) > 0 && !slices.Equal(shown, f.Status().Dynamic.Bad) {
		f.cfg.Log.Error("invalid entries of rooms set at run time are ignored", "entries", len(bad), "first", bad[0].Field, "reason", bad[0].Reason)
	}
	f.updateStatus(func(s *Status) { s.Dynamic.BadEntries, s.Dynamic.Bad = len(bad), shown })
}

// setDynamic replaces what is set at run time. changed is whether entries differ; of bypasses putBypasses tells.
func (f *Follower) setDynamic(d dynamic) (changed bool) {
	changed = !maps.EqualFunc(d.entries, f.dynamic.entries, sameEntry)
	f.dynamic = d
	if changed {
		f.metrics.dynamic.Set(float64(len(d.entries)))
		f.updateStatus(func(s *Status) { s.Dynamic.Entries = len(d.entries) })
		f.cfg.Log.Info("rooms set at run time have changed", "entries", len(d.entries))
	}
	return changed
}

// readRunning reads the boards of the rooms that name none.
func (f *Follower) readRunning(ctx context.Context) (changed bool) {
	running := map[string][]rankcache.BoardID{}
	if uids := merge(f.file, nil, f.dynamic.entries, nil).roomsWithoutBoards(); len(uids) > 0 {
		running = f.runningWithLost(ctx, f.fetchRunning(ctx, uids))
	}
	if maps.EqualFunc(running, f.running, slices.Equal) {
		return false
	}
	f.running = running
	return true
}

// fetchRunning returns the boards in the rooms' Redis sets; for a room that can't be read, those of the last read.
func (f *Follower) fetchRunning(ctx context.Context, uids []string) map[string][]rankcache.BoardID {
	fetched, err := f.cfg.Origin.RoomBoards(ctx, uids)
	if err != nil {
		f.lost.unsure = true
		f.metrics.redisErrors.Inc()
	}
	f.runningRead = f.runningRead || err == nil
	running := map[string][]rankcache.BoardID{}
	for _, uid := range uids {
		boards, ok := fetched[uid]
		if !ok {
			boards = f.running[uid]
		}
		running[uid] = boards
	}
	return running
}

// Set sets entry on all sidecars, here before it returns. An error of Redis leaves unknown whether others get it.
func (f *Follower) Set(ctx context.Context, entry rooms.Entry) error {
	value, err := json.Marshal(entry)
	if err == nil {
		err = f.checkEntry(entry)
	}
	if err != nil {
		return refused{err}
	}
	f.pollMu.Lock()
	defer f.pollMu.Unlock()
	field := entry.Field()
	if _, known := f.dynamic.entries[field]; !known && len(f.dynamic.entries) >= MaxDynamic {
		return errFull
	}
	if err := f.cfg.Shared.Put(ctx, field, string(value)); err != nil {
		return err
	}
	f.cfg.Log.Info("set at run time", "entry", string(value))
	next := f.dynamic.clone()
	next.entries[field] = entry
	f.putInForce(ctx, f.setDynamic(next))
	return nil
}

// Unset removes a field's entry from all sidecars, here before it returns, and reports whether there was one.
func (f *Follower) Unset(ctx context.Context, field string) (bool, error) {
	f.pollMu.Lock()
	defer f.pollMu.Unlock()
	found, err := f.cfg.Shared.Remove(ctx, field)
	if err != nil {
		return false, err
	}
	if found {
		f.cfg.Log.Info("no longer set at run time", "field", field)
	}
	next := f.dynamic.clone()
	delete(next.entries, field)
	f.putInForce(ctx, f.setDynamic(next))
	return found, nil
}

// putClasses puts a file and a document's classes into force together, or returns why they don't go.
func (f *Follower) putClasses(own *rooms.File, document string) error {
	next, err := f.next(own, document)
	if err != nil {
		return err
	}
	atRunTime := len(next.file.Classes) - len(own.Classes)
	if document != f.document {
		f.cfg.Log.Info("classes set at run time have changed", "classes", atRunTime)
	}
	f.files = next
	f.updateStatus(func(s *Status) { s.File.Classes, s.Dynamic.Classes = len(next.file.Classes), atRunTime })
	return nil
}

// SetClasses sets a document's classes in place of those set at run time, in all processes, here before it returns,
// unless they don't go with those in force. An error of Redis leaves unknown whether others get it.
func (f *Follower) SetClasses(ctx context.Context, document []byte) error {
	f.pollMu.Lock()
	defer f.pollMu.Unlock()
	defer f.putInForce(ctx, true)
	if _, err := f.readShared(ctx); err != nil { // what another sidecar has set counts
		return err
	}
	_, err := f.own.WithClasses(document, time.Now()) // an empty one is an error here
	if err == nil {
		_, err = f.next(f.own, string(document))
	}
	if err != nil {
		return refused{err}
	}
	if err := f.cfg.Shared.Put(ctx, rooms.ClassesField, string(document)); err != nil {
		return err
	}
	return f.putClasses(f.own, string(document))
}

// UnsetClasses takes away the classes set at run time, whose boards end, and reports whether there were any.
func (f *Follower) UnsetClasses(ctx context.Context) (bool, error) {
	f.pollMu.Lock()
	defer f.pollMu.Unlock()
	defer f.putInForce(ctx, true)
	found, err := f.cfg.Shared.Remove(ctx, rooms.ClassesField)
	if err != nil {
		return false, err
	}
	return found, f.putClasses(f.own, "")
}

// SetBypass puts b into force as Set does an entry, in place of the board's last one.
func (f *Follower) SetBypass(ctx context.Context, b rooms.Bypass) error {
	value, err := json.Marshal(b)
	if err != nil {
		return err
	}
	f.pollMu.Lock()
	defer f.pollMu.Unlock()
	next := f.dynamic.clone()
	for field, old := range next.bypasses {
		if b.From.Sub(old.Until) > bypassKept && field != b.Field() {
			if _, err := f.cfg.Shared.Remove(ctx, field); err != nil {
				return err
			}
			delete(next.bypasses, field)
		}
	}
	if next.bypasses[b.Field()] = b; !b.All && len(next.bypasses) > MaxBypasses {
		return errManyBypasses
	}
	if err := f.cfg.Shared.Put(ctx, b.Field(), string(value)); err != nil {
		return err
	}
	f.putInForce(ctx, f.setDynamic(next))
	return nil
}

// EndBypass ends a board's bypass, or with all every one, as Unset does. It reports whether there was one.
func (f *Follower) EndBypass(ctx context.Context, board rankcache.BoardID, all bool) (found bool, err error) {
	f.pollMu.Lock()
	defer f.pollMu.Unlock()
	end := rooms.Bypass{Board: board, All: all}
	fields := []string{end.Field()} // which other sidecars may have set since the last poll
	if all {
		fields = slices.AppendSeq(fields, maps.Keys(f.dynamic.bypasses))
	}
	next := f.dynamic.clone()
	for _, field := range fields {
		removed, err := f.cfg.Shared.Remove(ctx, field)
		if err != nil {
			return found, err
		}
		found = found || removed
		delete(next.bypasses, field)
	}
	f.putInForce(ctx, f.setDynamic(next))
	return found, nil
}
