package writer

import (
	"context"
	"slices"
	"time"

	"rankcache/internal/tick"
	"rankcache/writer/internal/rewind"
)

// run looks for other histories of the masters until ctx ends, once there is a durable class.
func (r *rewinder) run(ctx context.Context) {
	for range tick.Every(ctx, lookEvery) {
		r.tick(ctx)
	}
}

func (r *rewinder) tick(ctx context.Context) {
	r.mu.Lock()
	assigned := r.assigned
	r.mu.Unlock()
	switch {
	case r.round.Load().number > 0:
		r.look(ctx)
	case r.needed(): // also of a writer without partitions, whose posts are judged by it
		r.tell(rewind.Assigned{Partitions: assigned})
	}
}

// look tells the machine what the masters have. Those that do not answer are not looked at.
func (r *rewinder) look(ctx context.Context) {
	now, e := r.round.Load(), rewind.Tick{Asked: time.Now(), Seen: make(map[rewind.Master]rewind.History)}
	ctx, cancel := context.WithTimeout(ctx, lookEvery)
	defer cancel()
	if now.reading {
		all, err := r.positions.masters(ctx)
		if err == nil && len(all) != len(now.eras) {
			r.fenced(now)
		}
		var damaged []string
		for _, m := range all {
			h, err := r.positions.hash(ctx, m.name)
			if err != nil {
				r.metrics.limit.Do(func() {
					r.log.Warn("what Redis has lost is not noticed: its positions are not read", "master", m.name, "err", err)
				})
			} else if m.era != "" {
				e.Seen[m.name] = rewind.History{Era: m.era, Life: h.Life}
				if h.Damaged {
					damaged = append(damaged, string(m.name))
				}
			}
		}
		if err == nil && now.confirmedBy(e.Seen) {
			r.seen.Store(&seenMasters{now, e.Asked})
		}
		r.damaged.Store(&damaged)
		r.metrics.damagedNow.Set(float64(len(damaged)))
	}
	r.metrics.waiting.Set(float64(r.positions.lost.count(now)))
	r.tell(e)
}

// rewindStatus is what GET /v1/status shows once a class is durable.
type rewindStatus struct {
	// State is whole, rewinding (Redis may lack changes), asking (how far Redis is) or denied (to ask).
	State     string  `json:"state"`
	Rewinding []int32 `json:"rewinding"` // partitions
	// ReadAgain counts the last rewind's commands, AppliedAgain those of them that Redis had lost.
	ReadAgain    int64 `json:"read_again"`
	AppliedAgain int64 `json:"applied_again"`
	// Damaged are the masters that may lack boards of the ledger, Waiting the boards whose commands wait for it.
	Damaged []string `json:"damaged,omitempty"`
	Waiting int      `json:"waiting_boards,omitempty"`
}

// status asks Redis and Kafka. Whole: all masters have, in their eras, all that was committed by now.
func (r *rewinder) status(ctx context.Context) *rewindStatus {
	if r.deniedBy() != nil {
		return &rewindStatus{State: "denied", Rewinding: []int32{}}
	}
	if r.round.Load().number == 0 {
		return nil
	}
	behind, err := r.behind(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	st := &rewindStatus{State: "whole", Rewinding: append(behind, r.rewinding()...), ReadAgain: r.metrics.again.Load(), AppliedAgain: r.metrics.lost.Load(),
		Damaged: *r.damaged.Load(), Waiting: r.positions.lost.count(r.round.Load())}
	slices.Sort(st.Rewinding)
	st.Rewinding = slices.Compact(st.Rewinding)
	switch {
	case err != nil || !r.machine.Reading():
		st.State = "asking"
	case len(st.Rewinding) > 0:
		st.State = "rewinding"
	}
	return st
}

const behindLooks = 15 // how often positions are looked at, as they are written once a second

// behind returns the partitions of which a master lacks, after a moment, what is committed now.
func (r *rewinder) behind(ctx context.Context) (parts []int32, err error) {
	r.mu.Lock()
	read := r.logs
	r.mu.Unlock()
	if read == nil {
		return nil, errStale
	}
	logs, err := read.committedLogs(ctx)
	for range behindLooks {
		if err == nil {
			parts, err = r.lacking(ctx, logs)
		}
		if err != nil || len(parts) == 0 || !tick.Sleep(ctx, lookEvery/10) {
			break
		}
	}
	return append([]int32{}, parts...), err
}

// lacking returns the partitions whose positions are before what was committed.
func (r *rewinder) lacking(ctx context.Context, logs map[int32]rewind.Log) (parts []int32, err error) {
	all, err := r.positions.masters(ctx)
	for _, m := range all {
		if err != nil {
			return nil, err
		}
		var h rewind.Hash
		h, err = r.positions.hash(ctx, m.name)
		for id, log := range logs {
			if !h.Of[id].Has(log.Topic, log.Committed, m.era) {
				parts = append(parts, id)
			}
		}
	}
	return parts, err
}
