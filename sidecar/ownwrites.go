package sidecar

import (
	"context"
	"strings"
	"sync"
	"time"

	"rankcache"
)

const (
	ownWait   = 50 * time.Millisecond // how long a read waits for what was written through this process
	ownTime   = 10 * time.Second      // how long a write counts: by then the copies have it, or are known to be old
	maxWrites = 50_000                // how many are known of the newer half, and of the older one: some 20 MB in all
)

// ownWrites has reads that name a member see what was last written to it through this process: they wait for the copy
// up to ownWait, and then ask Redis. Reads of rows alone never wait.
type ownWrites struct {
	next source
	last recent[ownWrite]
	mu   sync.Mutex // held while it is looked which of two is the last
}

// ownWrite is a member's last write: a state that the board had with it, and when it was told of.
type ownWrite struct {
	state rankcache.State
	at    time.Time
}

// unbound is what a query was before it was given the state of a write.
type unbound struct {
	i    int
	wait time.Duration
}

func (o *ownWrites) read(ctx context.Context, qs []rankcache.Query, as []rankcache.Answer, at []int) {
	var bound []unbound
	for _, i := range at {
		q := &qs[i]
		if s := o.wanted(q); s.Run != 0 {
			bound = append(bound, unbound{i, q.Wait})
			if q.MinState = s; !q.CopiesOnly { // who asks for these asks Redis himself
				q.Wait = max(q.Wait, ownWait)
			}
		}
	}
	o.next.read(ctx, qs, as, at)
	var failed []int
	for _, b := range bound {
		q := &qs[b.i]
		missed := q.MinState
		if q.MinState, q.Wait = (rankcache.State{}), b.wait; as[b.i].Err != nil && !q.CopiesOnly {
			o.forget(q, missed)
			failed = append(failed, b.i)
		}
	}
	if len(failed) > 0 { // Redis has lost the write, or is away: they are answered as others are
		o.next.read(ctx, qs, as, failed)
	}
}

// wanted returns the latest state with a write of a member of the query; none if the caller wants one himself. After
// ownTime a write is not wanted: of a history that Redis has lost since, it would be missed by each read.
func (o *ownWrites) wanted(q *rankcache.Query) (latest rankcache.State) {
	if q.MinState.Run != 0 {
		return latest
	}
	for _, m := range q.Members {
		if w, ok := o.last.get(q.Board, m); ok && latest.Before(w.state) && time.Since(w.at) < ownTime {
			latest = w.state
		}
	}
	return latest
}

func (o *ownWrites) note(board rankcache.BoardID, member string, s rankcache.State) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	if last, _ := o.last.get(board, member); last.state.Before(s) || now.Sub(last.at) >= ownTime {
		o.last.put(board, member, ownWrite{s, now})
	}
}

// forget forgets the writes of the query's members up to a state: later ones came since.
func (o *ownWrites) forget(q *rankcache.Query, upTo rankcache.State) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, m := range q.Members {
		if w, ok := o.last.get(q.Board, m); ok && !upTo.Before(w.state) {
			o.last.put(rankcache.BoardID(strings.Clone(string(q.Board))), strings.Clone(m), ownWrite{})
		}
	}
}

// Wrote tells that a member was written through this process, and a state that its board has been through with that.
// With [Config].OwnWrites reads that name the member have the write from now on, unless Redis loses it. It keeps the
// strings.
func (r *Reader) Wrote(board rankcache.BoardID, member string, s rankcache.State) {
	if r.own != nil {
		r.own.note(board, member, rankcache.State{Run: s.Run, Seq: s.Seq}) // copies know late sums alone
	}
	r.Written(board)
}
