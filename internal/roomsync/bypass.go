package roomsync

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"time"

	"rankcache"
	"rankcache/rooms"
)

// bypassKept is how long a bypass that has ended stays in the hash, at least.
const bypassKept = time.Minute

var errManyBypasses = fmt.Errorf("limit of %d bypassed boards reached: bypass all boards", MaxBypasses)

// Bypasses returns the bypasses in force, that of all boards first. They must not be
// changed.
func (f *Follower) Bypasses() []rooms.Bypass { return f.merged.Load().bypasses }

// putBypasses puts into force what the hash has for this time, and logs what begins and
// what ends. The calls of Changed are for modes, which it doesn't change.
func (f *Follower) putBypasses(now time.Time) {
	var next []rooms.Bypass
	for _, b := range f.dynamic.bypasses {
		if now.Before(b.Until) {
			next = append(next, b)
		}
	}
	slices.SortFunc(next, func(a, b rooms.Bypass) int { return cmp.Compare(a.Field(), b.Field()) }) // '*' is before all ids
	if slices.Equal(next, f.bypasses) {
		return
	}
	f.logBypasses(next)
	f.bypasses = next
	all, named := 0, len(next)
	if named > 0 && next[0].All {
		all, named = 1, named-1
	}
	f.metrics.bypassed.Set(float64(named))
	f.metrics.bypassedAll.Set(float64(all))
	m := *f.merged.Load()
	m.bypasses = next
	f.merged.Store(&m)
	f.tiers.Store(f.tiers.Load().Bypassing(next))
}

func (f *Follower) logBypasses(next []rooms.Bypass) {
	for _, b := range f.bypasses {
		if !slices.ContainsFunc(next, func(n rooms.Bypass) bool { return n.Field() == b.Field() }) {
			f.cfg.Log.Warn("bypass has ended, local copies answer again", "board", b.String(), "by", b.By)
		}
	}
	for _, b := range next {
		if !slices.Contains(f.bypasses, b) {
			f.cfg.Log.Warn("bypass is in force, Redis answers", "board", b.String(), "by", b.By, "until", b.Until)
		}
	}
}

// SetBypass puts b into force on all sidecars, on this one before it returns, in place of
// the board's last one. An error of Redis leaves unknown whether the others get it.
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
	f.dynamic = next
	f.putBypasses(time.Now())
	return nil
}

// EndBypass ends the bypass of a board, or with all every bypass, on all sidecars, on this
// one before it returns. It reports whether there was one.
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
	f.dynamic = next
	f.putBypasses(time.Now())
	return found, nil
}

// PostBypass bypasses a board, or all, and responds with the bypass in force.
func (h *Handler) PostBypass(w http.ResponseWriter, r *http.Request) {
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, rooms.MaxBypassJSON))
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		h.problem(w, CodeTooLarge, "", "want at most 4 KiB")
		return
	}
	b, err := rooms.ParseBypassRequest(data, time.Now().UTC().Truncate(time.Millisecond))
	if err != nil {
		h.problem(w, CodeBadArgument, "body", err.Error())
		return
	}
	switch err := h.follower.SetBypass(context.WithoutCancel(r.Context()), b); {
	case errors.Is(err, errManyBypasses):
		h.problem(w, CodeBadArgument, "body", err.Error())
	case err != nil:
		h.unavailable(w, err)
	default:
		writeJSON(w, b)
	}
}

// DeleteBypass ends the bypass of ?board=, or with ?all=true every bypass.
func (h *Handler) DeleteBypass(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	board, all := rankcache.BoardID(q.Get("board")), q.Get("all") == "true"
	if err := board.Check(); all == (board != "") || !all && err != nil {
		h.problem(w, CodeBadArgument, "board", "want either a board's id or all=true")
		return
	}
	switch found, err := h.follower.EndBypass(context.WithoutCancel(r.Context()), board, all); {
	case err != nil:
		h.unavailable(w, err)
	case !found:
		h.problem(w, CodeUnknownRoom, "", "nothing of that name is bypassed; GET /rooms lists what is")
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}
