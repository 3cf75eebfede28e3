package roomsync

import (
	"context"
	"maps"
	"slices"

	"rankcache"
)

// askRunning looks up the boards of the rooms that name none.
func (f *Follower) askRunning(ctx context.Context) (changed bool) {
	running := map[string][]rankcache.BoardID{}
	if uids := merge(f.file, f.dynamic, nil).unnamed(); len(uids) > 0 {
		running = f.runningIn(ctx, uids)
	}
	if maps.EqualFunc(running, f.running, slices.Equal) {
		return false
	}
	f.running = running
	return true
}

// runningIn returns what Redis says of the rooms, and its last answer for those
// of which it could not be asked.
func (f *Follower) runningIn(ctx context.Context, uids []string) map[string][]rankcache.BoardID {
	answered, err := f.cfg.Origin.RoomBoards(ctx, uids)
	if err != nil {
		f.metrics.redisErrors.Inc()
	}
	f.answered = f.answered || err == nil
	running := map[string][]rankcache.BoardID{}
	for _, uid := range uids {
		boards, ok := answered[uid]
		if !ok {
			boards = f.running[uid]
		}
		running[uid] = boards
	}
	return running
}
