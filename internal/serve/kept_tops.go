package serve

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"sync/atomic"
	"time"

	"rankcache"
	"rankcache/hotkey"
	"rankcache/internal/cli"
	"rankcache/internal/health"
	"rankcache/internal/tick"
	"rankcache/replay/files"
)

// keptTops keeps hot pages in a file over a restart, served until Redis answers, or maxAge. Concurrent use is safe.
type keptTops struct {
	*hotkey.Tracker
	store         *files.Store
	redis         *health.Need
	every, maxAge time.Duration
	log           *slog.Logger
	restored      atomic.Pointer[map[rankcache.BoardID]files.HotTop] // nil once Redis has answered
}

// newKeptTops reads the file of the process before.
func newKeptTops(s *Sidecar) *keptTops {
	o := s.options.snapshots
	k := &keptTops{Tracker: s.tracker, store: s.kept, redis: s.services[cli.ServiceRedis], every: o.every, maxAge: o.maxAge, log: s.log}
	tops, err := s.kept.LoadTops()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.log.Warn("the pages of hot boards that the process before has kept are not used", "err", err)
	}
	restored := make(map[rankcache.BoardID]files.HotTop, len(tops))
	for _, t := range tops {
		restored[t.Board] = t
	}
	k.restored.Store(&restored)
	return k
}

// Read answers from the tracker's pages, or while Redis has not answered yet from those of the file.
func (k *keptTops) Read(ctx context.Context, qs []rankcache.Query, as []rankcache.Answer) {
	k.Tracker.Read(ctx, qs, as)
	for i := range as {
		if as[i].Err == nil {
			continue
		}
		if kept, ok := k.waiting()[qs[i].Board]; ok && k.served(kept) {
			kept.Top.Answer(&qs[i], &as[i], kept.CurrentAt)
		}
	}
}

// served reports whether a page of the file is not too old.
func (k *keptTops) served(t files.HotTop) bool {
	age := time.Since(t.CurrentAt)
	return age >= 0 && age <= k.maxAge // below 0: a clock was set back
}

// answers reports whether a page of the file answers while Redis does not.
func (k *keptTops) answers() bool {
	for _, t := range k.waiting() {
		if k.served(t) {
			return true
		}
	}
	return false
}

// waiting returns the pages of the file, nil once Redis has answered.
func (k *keptTops) waiting() map[rankcache.BoardID]files.HotTop {
	restored := k.restored.Load()
	if restored == nil {
		return nil
	}
	if k.redis.Status().LastOK != nil {
		k.restored.Store(nil)
		return nil
	}
	return *restored
}

// Run saves the pages every now and then until ctx is done, and then once more.
func (k *keptTops) Run(ctx context.Context) error {
	saveEvery(ctx, k.every, func() {
		if err := k.save(); err != nil {
			k.log.Warn("the pages of hot boards are not kept over a restart", "err", err)
		}
	})
	return nil
}

// saveEvery calls save until ctx is done, and then once more: the call before may have missed what came meanwhile.
func saveEvery(ctx context.Context, every time.Duration, save func()) {
	for range tick.Every(ctx, every) {
		save()
	}
	save()
}

// save writes the tracker's pages. Those of the process before stay until Redis answers.
func (k *keptTops) save() error {
	if k.waiting() != nil {
		return nil
	}
	var tops []files.HotTop
	k.Kept(func(top *rankcache.Top, at time.Time) { tops = append(tops, files.HotTop{Top: top, CurrentAt: at}) })
	return k.store.SaveTops(tops)
}
