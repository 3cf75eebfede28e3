package app

import (
	"context"
	"net/http"
	"time"

	"rankcache"
	"rankcache/localboard"
	"rankcache/origin"
	"rankcache/profile"
	"rankcache/rooms"
	"rankcache/sidecar/adminapi"
)

// warmRows is how many rows of a board's head have their profiles loaded before
// the first page is asked for.
const warmRows = 50

// buildProfiles builds the profile cache if a source is configured.
func (s *Sidecar) buildProfiles() error {
	o := s.options.profiles
	source, err := o.source(s.redis)
	if err != nil || source == nil {
		return err
	}
	o.cache.Budget = o.budgetMB << 20
	if s.profiles, err = profile.New(o.cache, s.watchProfiles(source), s.log, s.registry); err != nil {
		return Usagef("profiles: %w", err)
	}
	s.parts = append(s.parts, s.profiles, runFunc(s.warmNamed))
	return nil
}

// dropProfile answers DELETE /profiles/{member} on the admin port.
func (s *Sidecar) dropProfile(w http.ResponseWriter, r *http.Request) {
	if s.profiles == nil || !s.profiles.Drop(r.PathValue("member")) {
		writeProblem(w, adminapi.CodeUnknownProfile, "", "no profile of this member is cached here")
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// warmNamed loads, once Redis answers, the profiles of the heads of the boards
// that the rooms file names.
func (s *Sidecar) warmNamed(ctx context.Context) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		tiers := s.rooms.Tiers()
		boards := append(tiers.Boards(rooms.ModeSuperHot), tiers.Boards(rooms.ModeHot)...)
		if tops, err := s.origin.Tops(ctx, boards, warmRows); err == nil {
			for _, top := range tops {
				s.profiles.Warm(heads(top))
			}
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// heads returns the members of a board's first rows.
func heads(top *rankcache.Top) []string {
	if top == nil {
		return nil
	}
	members := make([]string, min(warmRows, len(top.Entries)))
	for i := range members {
		members[i] = top.Entries[i].Member
	}
	return members
}

// warmingOrigin reads the pages of hot boards and has their profiles loaded, so
// that a board that is promoted has them before its page is handed out.
type warmingOrigin struct {
	*origin.Origin
	profiles *profile.Cache // nil: none
}

// Tops is [origin.Origin.Tops].
func (o warmingOrigin) Tops(ctx context.Context, boards []rankcache.BoardID, n int) ([]*rankcache.Top, error) {
	tops, err := o.Origin.Tops(ctx, boards, n)
	if o.profiles != nil {
		for _, top := range tops {
			o.profiles.Warm(heads(top))
		}
	}
	return tops, err
}

// warmBoard loads the profiles of a board's head before the board is opened. It
// waits no longer than a page would.
func warmBoard(b *localboard.Board, profiles *profile.Cache) {
	if profiles == nil {
		return
	}
	b.Publish()
	members := heads(b.Top())
	profiles.Get(context.Background(), members, make([][]byte, len(members)))
}

// runFunc is a long-lived part that is one function.
type runFunc func(context.Context) error

// Run calls f.
func (f runFunc) Run(ctx context.Context) error { return f(ctx) }
