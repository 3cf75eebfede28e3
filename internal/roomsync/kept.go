package roomsync

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"slices"

	"rankcache"
)

// Kept has what Redis told before, in a file. LoadRooms returns an error that wraps [fs.ErrNotExist] without one.
type Kept interface {
	LoadRooms() ([]byte, error)
	SaveRooms(data []byte) error
}

// told is what Redis has told: the fields of the hash of rooms, and the boards of the rooms that name none.
type told struct {
	Fields  map[string]string              `json:"fields"`
	Running map[string][]rankcache.BoardID `json:"running"`
}

// restore puts in force what Redis told the process before, until it tells something else.
func (f *Follower) restore() {
	if f.cfg.Kept == nil {
		return
	}
	var before told
	data, err := f.cfg.Kept.LoadRooms()
	if err == nil {
		err = json.Unmarshal(data, &before)
	}
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			f.cfg.Log.Warn("what Redis told of rooms before this start is not used", "err", err)
		}
		return
	}
	f.putShared(before.Fields)
	for uid, boards := range before.Running {
		before.Running[uid] = slices.DeleteFunc(boards, func(b rankcache.BoardID) bool { return f.cfg.CheckBoard(b) != nil })
	}
	f.running = before.Running
}

// keep saves what Redis has told, once it has told all, if that has changed.
func (f *Follower) keep() {
	now := told{f.fields, f.running}
	if f.cfg.Kept == nil || !f.Resolved() || maps.Equal(now.Fields, f.kept.Fields) && maps.EqualFunc(now.Running, f.kept.Running, slices.Equal) {
		return
	}
	data, _ := json.Marshal(now) // maps of strings
	err := f.cfg.Kept.SaveRooms(data)
	if err == nil {
		f.kept = now
	} else if !f.keepFailed { // it is tried again at each poll
		f.cfg.Log.Warn("what Redis tells of rooms is not kept over a restart, trying again", "err", err)
	}
	f.keepFailed = err != nil
}
