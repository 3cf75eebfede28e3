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

const lostKept = 10 * time.Minute // how long is kept what Redis has lost

// losses keeps what Redis told before it lost it: without their rooms, its lost boards would be let go. What is deleted
// within 10 s after a failover counts as lost. It belongs to the goroutine that polls.
type losses struct {
	history string              // in which all that is in force was there; "": not known
	of      []rankcache.BoardID // of whose servers it is: of others it would be another one without any loss
	silent  time.Time           // since when Redis has not told it; zero: it does
	asking  []rankcache.BoardID // for first
	first   string              // before this poll has read anything, if it was asked
	now     string              // at this poll, once it was asked after
	again   bool                // it was asked after
	unsure  bool                // something is gone at this poll, or was not read
	until   time.Time
	fields  map[string]string
	running map[string][]rankcache.BoardID
}

// lookAtHistory asks for Redis's history before anything else is read: what is there then was not lost before.
func (f *Follower) lookAtHistory(ctx context.Context) {
	l := &f.lost
	l.first, l.now, l.again, l.unsure = "", "", false, false
	if f.cfg.Histories == nil || len(f.fields)+len(f.running) == 0 {
		return
	}
	l.asking = f.Tiers().Boards(rooms.ModeSuperHot)
	if f.cfg.Shared != nil {
		l.asking = append(l.asking[:len(l.asking):len(l.asking)], rankcache.BoardID(f.cfg.Shared.Key())) // there may be no board
	}
	l.first = f.historyOf(ctx, l.asking, false)
}

// noteHistory notes the history in which all was there.
func (f *Follower) noteHistory() {
	if l := &f.lost; l.first != "" && !l.unsure {
		l.history, l.of, l.silent = l.first, l.asking, time.Time{}
	}
}

// historyOf returns the histories of the servers of boards, "" if one does not tell.
func (f *Follower) historyOf(ctx context.Context, of []rankcache.BoardID, now bool) string {
	names, err := f.cfg.Histories(ctx, of, now)
	if err != nil || slices.Contains(names, "") {
		return ""
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), "\n")
}

// hasLost reports whether Redis's history is another than that of what is missing; until it tells, it is.
func (f *Follower) hasLost(ctx context.Context) (lost, known bool) {
	l := &f.lost
	if f.cfg.Histories == nil || l.history == "" {
		return false, true
	}
	if !l.again {
		l.now, l.again = f.historyOf(ctx, l.of, true), true
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

// withLost returns what Redis tells now, with what it has lost of before; lost is what that is so far.
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

func (f *Follower) fieldsWithLost(ctx context.Context, now map[string]string) map[string]string {
	if now == nil {
		now = map[string]string{}
	}
	return withLost(ctx, f, f.fields, now, f.lost.fields, func(text string) bool { return text == "" })
}

func (f *Follower) runningWithLost(ctx context.Context, now map[string][]rankcache.BoardID) map[string][]rankcache.BoardID {
	before := maps.Clone(f.running)
	maps.DeleteFunc(before, func(uid string, _ []rankcache.BoardID) bool { _, named := now[uid]; return !named })
	maps.DeleteFunc(f.lost.running, func(uid string, _ []rankcache.BoardID) bool { _, named := now[uid]; return !named })
	return withLost(ctx, f, before, now, f.lost.running, func(boards []rankcache.BoardID) bool { return len(boards) == 0 })
}
