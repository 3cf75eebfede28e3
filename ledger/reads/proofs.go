package reads

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"rankcache"
	"rankcache/ledger"
)

const (
	maxProofs   = 10_000          // how many boards are remembered
	proofTime   = time.Minute     // bounds a proof, which reads all members
	refusedTime = 5 * time.Second // how long a board that is not proved is not looked at again
)

// proof is what was found about a board. From a proved state on it is enough that no change is missing.
type proof struct {
	state rankcache.State
	lost  int64 // the latest row of rank_lost then
	why   string
	until time.Time // of why
}

// proofs remembers which boards the ledger has whole. It may be used concurrently.
type proofs struct {
	store *ledger.Store
	group singleflight.Group

	mu     sync.Mutex // nothing is called with it held
	boards map[rankcache.BoardID]proof
}

// holds reports whether the board of a snapshot is known to be whole.
func (p *proofs) holds(v *ledger.Snapshot) (bool, error) {
	known := p.get(v.Board)
	if known.state.Run == 0 || known.state.Run != v.State.Run || known.state.Seq > v.State.Seq || known.lost != v.Lost {
		return false, nil
	}
	switch {
	case known.state.Seq == v.State.Seq:
		return known.state.Sum == v.State.Sum, nil
	case v.First > known.state.Seq+1: // retention has removed rows that nobody has looked at
		return false, nil
	}
	missing, err := v.Missing(known.state)
	if err != nil || missing > 0 || !v.State.HasSum {
		return false, err
	}
	p.put(v.Board, proof{state: v.State, lost: v.Lost})
	return true, nil
}

// refused returns why the board was not proved a moment ago, "" if it is not known.
func (p *proofs) refused(board rankcache.BoardID) string {
	if known := p.get(board); time.Now().Before(known.until) {
		return known.why
	}
	return ""
}

// prove proves a board in a snapshot, once for all that want it; it goes on when ctx ends, for the next read.
func (p *proofs) prove(ctx context.Context, board rankcache.BoardID) error {
	done := p.group.DoChan(string(board), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), proofTime)
		defer cancel()
		return nil, p.store.Snapshot(ctx, board, func(v *ledger.Snapshot) error {
			found, err := v.Prove()
			if err != nil {
				return err
			}
			known := proof{state: found.State, lost: v.Lost}
			if !found.Proved {
				known = proof{why: found.Why(), until: time.Now().Add(refusedTime)}
			}
			p.put(board, known)
			return nil
		})
	})
	select {
	case <-ctx.Done():
		return fmt.Errorf("the board is still being proved: %w", ctx.Err())
	case res := <-done:
		return res.Err
	}
}

func (p *proofs) get(board rankcache.BoardID) proof {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.boards[board]
}

func (p *proofs) put(board rankcache.BoardID, found proof) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for other := range p.boards {
		if len(p.boards) < maxProofs {
			break
		}
		delete(p.boards, other)
	}
	p.boards[board] = found
}
