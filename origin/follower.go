package origin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"rankcache"
)

// follower reads what one primary has from a replica of it. read may be called concurrently.
type follower struct {
	written string // key of the keeper's time
	clock   *keeperClock
	like    *link // the primary's
	scripts bool  // of a cluster, where a transaction has keys of one slot, which is not that of the time
	state   atomic.Pointer[followerState]
	answers *prometheus.CounterVec
	log     *slog.Logger

	// What follows belongs to look, and to who sets the clients before.
	primary, replica redis.UniversalClient // nil: unknown
	master           string                // that the replica followed when it was read
	history          string                // of the primary
	historyAt        time.Time             // when the primary told it
	logged           reason                // the latest one
}

// followerState is what a look has found. It is never changed.
type followerState struct {
	ReplicaState
	from   reader    // of the replica; none unless that is used
	oldest time.Time // of which an answer may be while the primary does not answer; zero: it does
}

type reason string // why the primary is read; "": it is not

const (
	reasonAsked       reason = "asked"        // the query is for the primary alone
	reasonBounds      reason = "bounds"       // what the query asks for is beyond the replica's answer
	reasonMissing     reason = "missing"      // the replica has no member of the board
	reasonMoved       reason = "moved"        // the board, or the keeper's time, is of another master
	reasonAway        reason = "away"         // no replica answers, or it is loading
	reasonRefused     reason = "refused"      // this user may not do what it needs
	reasonNoReplica   reason = "no_replica"   // it is a master
	reasonOtherMaster reason = "other_master" // it follows another one
	reasonPrimary     reason = "primary"      // the primary does not tell its history
	reasonLink        reason = "link"         // its link to the master is down
	reasonNoKeeper    reason = "no_keeper"    // nothing tells its age
	reasonBehind      reason = "behind"       // it is too old
	reasonStart       reason = "start"        // nothing is known yet
	reasonAlone       reason = "alone"        // the replica is read, because the primary does not answer
)

// advice tells operators what a reason means and what to check.
var advice = map[reason]string{
	reasonMoved:       "the slot of the keeper's time is moving to another master",
	reasonAway:        "no replica answers: check that the address of --redis-read is right and that the replica is up and has loaded its data",
	reasonRefused:     "this user may not use INFO, ROLE or GETRANGE of the keeper's time on the replica, or INFO on the primary: give it +info +role",
	reasonNoReplica:   "--redis-read leads to a master: give the address of a replica of --redis, or leave it out; in a cluster the master has no replica that is up",
	reasonOtherMaster: "--redis-read leads to a replica of another master than --redis",
	reasonPrimary:     "the primary does not answer which history it has, by which a replica is known to be one of it",
	reasonLink:        "the replica's link to its master is down",
	reasonNoKeeper:    "no keeper has written a time that tells the replica's age: run rankcache keep, with the same --hot-instance",
	reasonBehind:      "the replica, or the time that the keeper writes, is too far behind: check the replica's lag, that rankcache keep runs, and this machine's clock",
	reasonStart:       "the replica has not been looked at yet",
	reasonAlone:       "the primary does not answer: what its replica has is answered, with its age",
}

func stateOf(why reason, err error, master string) ReplicaState {
	s := ReplicaState{Used: why == "" || why == reasonAlone, Reason: string(why), Detail: advice[why], Master: master, Since: time.Now()}
	if err != nil {
		s.Detail += fmt.Sprintf(" (%v)", err)
	}
	return s
}

func (f *follower) now() ReplicaState {
	s := f.state.Load().ReplicaState
	s.AgeMs = -1
	if at := f.clock.latest(); !at.IsZero() {
		s.AgeMs = time.Since(at).Milliseconds()
	}
	return s
}

// read answers what the replica may, and returns the places of the other queries.
func (f *follower) read(ctx context.Context, qs []rankcache.Query, as []rankcache.Answer) (rest []int) {
	state := f.state.Load()
	p := &proof{written: f.written, clock: f.clock, master: state.Master, oldest: state.oldest}
	whys := make([]reason, len(qs))
	if state.Used {
		f.ask(context.WithValue(ctx, proofKey{}, p), state.from, qs, as, whys)
	}
	for i := range qs {
		switch {
		case !state.Used:
			whys[i] = reason(state.Reason)
		case whys[i] == "":
			whys[i] = p.judge(&qs[i], &as[i], f.scripts)
		}
		if whys[i] != "" {
			f.answers.WithLabelValues("primary", string(whys[i])).Inc()
			rest = append(rest, i)
			continue
		}
		as[i].CurrentAt, as[i].Lags = p.at, true
		f.answers.WithLabelValues("replica", state.Reason).Inc()
	}
	if p.reason == reasonAway && ctx.Err() == nil { // not asked again until the next look
		f.state.CompareAndSwap(state, &followerState{ReplicaState: stateOf(p.reason, p.err, "")})
	}
	return rest
}

// ask asks the replica the queries that are not for the primary anyway; whys are why others are.
func (f *follower) ask(ctx context.Context, from reader, qs []rankcache.Query, as []rankcache.Answer, whys []reason) {
	age, places := time.Since(f.clock.latest()), make([]int, 0, len(qs))
	for i := range qs {
		switch q := &qs[i]; {
		case q.Primary || f.scripts && (q.Trimmed || q.Ladder != nil || f.like.dataKey(q.Board) != ""):
			whys[i] = reasonAsked
		case q.MaxAge != 0 && (q.MaxAge < youngestReplica || age-replicaLookEvery > q.MaxAge): // the latest time is of the last look at least
			whys[i] = reasonBounds
		default:
			places = append(places, i)
		}
	}
	read := from.Read
	if f.scripts {
		read = func(ctx context.Context, qs []rankcache.Query, as []rankcache.Answer) {
			from.readAll(ctx, "batch", qs, as)
		}
	}
	readSome(ctx, read, qs, as, places)
}

// look sets the state, and logs that another reason holds than at the last look.
func (f *follower) look(ctx context.Context) {
	if f.primary == nil || f.replica == nil {
		return
	}
	bounded, cancel := context.WithTimeout(ctx, f.like.timeout)
	defer cancel()
	p, why, err := f.prove(bounded)
	if ctx.Err() != nil {
		return
	}
	next, last := &followerState{ReplicaState: stateOf(why, err, p.master)}, f.state.Load()
	if next.Reason == last.Reason && next.Master == last.Master {
		next.Since = last.Since
	}
	if next.Used {
		next.from = f.reader()
	}
	switch why {
	case "":
		f.master = p.master
	case reasonAlone:
		next.oldest = f.oldest()
	}
	f.state.Store(next)
	f.note(why, next)
}

func (f *follower) reader() reader {
	if last := f.state.Load().from; last.link != nil && last.client == f.replica {
		return last
	}
	of := f.like
	from := reader{&link{client: f.replica, names: of.names, total: of.total, timeout: of.timeout, hasData: of.hasData, metrics: of.metrics}}
	from.mscore.Store(true)
	return from
}

// note logs another reason than the last one.
func (f *follower) note(why reason, state *followerState) {
	logged := f.logged
	switch f.logged = why; {
	case why == logged:
	case why == "":
		f.log.Info("boards are read from replicas", "master", state.Master)
	case why == reasonAlone:
		f.log.Warn("boards are read from a replica alone: "+state.Detail, "reason", state.Reason, "master", state.Master)
	default:
		f.log.Warn("boards are read from the primary alone: "+state.Detail, "reason", state.Reason)
	}
}

// prove returns which master the replica follows, or why it must not be read.
func (f *follower) prove(ctx context.Context) (*proof, reason, error) {
	p := &proof{written: f.written, clock: f.clock, oldest: f.oldest()}
	var info *redis.StringCmd
	_, _ = f.replica.Pipelined(context.WithValue(ctx, proofKey{}, p), func(pipe redis.Pipeliner) error {
		info = pipe.Info(ctx, "replication")
		return nil
	})
	switch err := info.Err(); {
	case p.trips == 0 || err != nil && !refused(err):
		return p, reasonAway, err
	case p.reason != "":
		return p, p.reason, p.err
	case err != nil:
		return p, reasonRefused, err
	}
	history := historyIn(info.Val())
	why, err := f.compare(ctx, history, p.cut != nil)
	switch {
	case why == reasonPrimary && f.master == p.master && f.history == history && !p.at.Before(p.oldest):
		return p, reasonAlone, err
	case why != "":
		return p, why, err
	case p.cut != nil:
		return p, reasonLink, p.cut
	case time.Since(p.at) > OldestReplica:
		return p, reasonBehind, fmt.Errorf("%v old", time.Since(p.at).Round(time.Millisecond))
	}
	return p, "", nil
}

// oldest returns of which time an answer may be while the primary is away: as if it had gone when it last answered.
func (f *follower) oldest() time.Time { return f.historyAt.Add(-OldestReplica) }

// compare returns why a replica with a history is none of the primary, which is asked if it must be or was long ago.
func (f *follower) compare(ctx context.Context, history string, must bool) (reason, error) {
	if must || history != f.history || time.Since(f.historyAt) >= primaryLookEvery {
		info, err := f.primary.Info(ctx, "replication").Result()
		switch reply := redis.Error(nil); {
		case errors.As(err, &reply) && refused(err):
			return reasonRefused, err
		case err != nil:
			return reasonPrimary, err
		}
		f.history, f.historyAt = historyIn(info), time.Now()
	}
	if history == "" || history != f.history {
		return reasonOtherMaster, fmt.Errorf("its master_replid is %s, the primary's %s", history, f.history)
	}
	return "", nil
}

// historyIn returns the master_replid in INFO replication: the same on all replicas, another after a failover.
func historyIn(info string) string {
	for line := range strings.Lines(info) {
		if id, ok := strings.CutPrefix(line, "master_replid:"); ok {
			return strings.TrimSpace(id)
		}
	}
	return ""
}
