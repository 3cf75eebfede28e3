package serve

import (
	"context"
	"fmt"
	"time"

	"rankcache"
	"rankcache/localboard"
	"rankcache/origin"
	"rankcache/sidecar"
)

// A sidecar in another region than the writers': its Redis is a replica, and nothing is written to it.

// isReplica reports whether Redis is a replica in a region that only reads.
func (o *Options) isReplica() bool { return o.RedisRole == origin.RoleReplica }

// boardOrigin returns Redis as readers of boards see it.
func (s *Sidecar) boardOrigin() rankcache.Reader {
	switch {
	case s.replicas != nil:
		return s.replicas
	case s.reached == nil:
		return s.origin
	}
	return replicaOrigin{s.origin, s.reached.At, s.options.snapshots.maxAge}
}

// replicaOrigin is a replica of Redis: its answers are as old as it is, and none once that is more than oldest.
type replicaOrigin struct {
	rankcache.Reader
	reached func() time.Time // zero: unknown
	oldest  time.Duration
}

// Read implements [rankcache.Reader].
func (o replicaOrigin) Read(ctx context.Context, qs []rankcache.Query, as []rankcache.Answer) {
	current := o.reached() // before the answer, which is no older
	o.Reader.Read(ctx, qs, as)
	age := time.Since(current)
	for i := range as {
		switch a := &as[i]; {
		case a.Err != nil:
		case !current.IsZero() && age > o.oldest:
			a.Fail(fmt.Errorf("%w: it has given nothing for %v, which is more than --snapshot-max-age %v", rankcache.ErrRegion, age.Round(time.Second), o.oldest))
		default:
			a.CurrentAt = current
		}
	}
}

// youngBoards are the open boards that are not known to be older than oldest.
type youngBoards struct {
	boards *localboard.Boards
	oldest time.Duration
}

// Get implements [sidecar.Boards].
func (b youngBoards) Get(id rankcache.BoardID) (sidecar.Board, bool) {
	board, ok := b.boards.Get(id)
	if !ok {
		return nil, false
	}
	if at := board.CurrentAt(); !at.IsZero() && time.Since(at) > b.oldest {
		return nil, false
	}
	return board, true
}
