package roomsync

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"rankcache"
	"rankcache/rooms"
)

const (
	// historyEvery is how often it is asked for the history of Redis. What is deleted within that time after a failover
	// counts as lost.
	historyEvery = 10 * time.Second
	// lostKept is how long is kept what Redis has lost.
	lostKept = 10 * time.Minute
)

// losses keeps what Redis told before it lost it: without their rooms, its lost boards would be let go. It belongs to the
// goroutine that polls.
type losses struct {
	history string              // in which all that is in force was there; "": not known
	of      []rankcache.BoardID // of whose servers it is: of others it would be another one without any loss
	asked   time.Time
	silent  time.Time           // since when Redis has not told it; zero: it does
	asking  []rankcache.BoardID // for first
	first   string              // before this poll has read anything, if it was asked
	now     string              // at this poll, once it was asked after
	unsure  bool                // something is gone at this poll, or was not read
	until   time.Time
	fields  map[string]string
	running map[string][]rankcache.BoardID
}

// lookAtHistory asks for the history of Redis, if that is due, before anything else is read: what is there then was not lost
// before.
func (f *Follower) lookAtHistory(ctx context.Context) {
	l := &f.lost
	l.first, l.now, l.unsure = "", "", false
	if f.cfg.Histories == nil || len(f.fields)+len(f.running) == 0 || time.Since(l.asked) < historyEvery {
		return
	}
	l.asking = f.Tiers().Boards(rooms.ModeSuperHot)
	if f.cfg.Shared != nil {
		l.asking = append(l.asking[:len(l.asking):len(l.asking)], rankcache.BoardID(f.cfg.Shared.Key())) // there may be no board
	}
	l.first = f.historyNow(ctx, l.asking)
}

// noteHistory notes the history in which all was there.
func (f *Follower) noteHistory() {
	if l := &f.lost; l.first != "" && !l.unsure {
		l.history, l.of, l.asked, l.silent = l.first, l.asking, time.Now(), time.Time{}
	}
}

// historyNow returns the histories of the servers of boards, "" if one does not tell.
func (f *Follower) historyNow(ctx context.Context, of []rankcache.BoardID) string {
	names, err := f.cfg.Histories(ctx, of)
	if err != nil || slices.Contains(names, "") {
		return ""
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), "\n")
}

// hasLost reports whether Redis has another history than the one in which was there what it does not have now. It is asked once
// a poll; until Redis tells, it counts as lost, as long as what is lost is kept.
func (f *Follower) hasLost(ctx context.Context) (lost, known bool) {
	l := &f.lost
	if f.cfg.Histories == nil || l.history == "" {
		return false, true
	}
	if l.now == "" {
		l.now = f.historyNow(ctx, l.of)
	}
	switch {
	case l.now != "":
		l.silent = time.Time{}
		return l.now != l.history, true
	case l.silent.IsZero():
		l.silent = time.Now()
	}
	return time.Since(l.silent) < lostKept, false
}

// withLost returns what Redis tells now, with what it has lost of what it told before; lost is what that is so far. What it
// tells again is not lost any more.
func withLost[V any](ctx context.Context, f *Follower, before, now, lost map[string]V, empty func(V) bool) map[string]V {
	maps.DeleteFunc(lost, func(key string, _ V) bool { return !empty(now[key]) || time.Now().After(f.lost.until) })
	next := maps.Clone(now)
	for key, was := range before {
		_, already := lost[key]
		if already || empty(was) || !empty(now[key]) {
			continue
		}
		f.lost.unsure = true
		isLost, known := f.hasLost(ctx)
		if isLost {
			next[key] = was
		}
		if isLost && known {
			f.noteLost(key)
			lost[key] = was
		}
	}
	maps.Copy(next, lost)
	return next
}

func (f *Follower) noteLost(key string) {
	if l := &f.lost; len(l.fields)+len(l.running) == 0 {
		l.until = time.Now().Add(lostKept)
	}
	f.cfg.Log.Error("redis has lost what was set at run time, or the boards of a room: they stay in force for a time; set them again", "room", key, "until", f.lost.until)
}

// fieldsWithLost is withLost for the hash of rooms.
func (f *Follower) fieldsWithLost(ctx context.Context, now map[string]string) map[string]string {
	if now == nil {
		now = map[string]string{}
	}
	return withLost(ctx, f, f.fields, now, f.lost.fields, func(text string) bool { return text == "" })
}

// runningWithLost is withLost for the boards of rooms.
func (f *Follower) runningWithLost(ctx context.Context, now map[string][]rankcache.BoardID) map[string][]rankcache.BoardID {
	before := maps.Clone(f.running)
	maps.DeleteFunc(before, func(uid string, _ []rankcache.BoardID) bool { _, named := now[uid]; return !named })
	maps.DeleteFunc(f.lost.running, func(uid string, _ []rankcache.BoardID) bool { _, named := now[uid]; return !named })
	return withLost(ctx, f, before, now, f.lost.running, func(boards []rankcache.BoardID) bool { return len(boards) == 0 })
}
