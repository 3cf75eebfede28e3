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
	"rankcache/internal/metric"
	"rankcache/internal/tick"
)

const (
	// OldestReplica is how old an answer of a replica may be that no query asks to be younger: beyond it the primary answers.
	OldestReplica = 5 * time.Second
	// youngestReplica is the age below which replicas are not asked: keepers write the time three times a second.
	youngestReplica = 100 * time.Millisecond
	// replicaLookEvery is how often it is looked whether replicas may be read, primaryLookEvery how often the primary is asked for its history.
	replicaLookEvery, primaryLookEvery = time.Second, 5 * time.Second
)

// Replicas reads boards from replicas of a primary, and from the primary what these must not answer. An answer of a replica is one that
// the primary gave at [rankcache.Answer].CurrentAt or later, and within the bounds of its query. The primary answers where
// a query is for it alone, where the bounds ask for more, where the replica has no member of the board, and while no replica follows the primary:
// one of it has the same history (master_replid), and each answer has with it which master was followed, with the link up.
//
// Read may be called concurrently.
type Replicas struct {
	primary, replica reader
	clock            *keeperClock
	log              *slog.Logger
	state            atomic.Pointer[ReplicaState]
	answers          *prometheus.CounterVec

	history   string // of the primary; it belongs to Run
	historyAt time.Time
	logged    reason // the latest one; it belongs to Run, too
}

// reason is why the primary is read; "": it is not.
type reason string

const (
	reasonAsked       reason = "asked"        // the query is for the primary alone
	reasonBounds      reason = "bounds"       // what the query asks for is beyond the replica's answer
	reasonMissing     reason = "missing"      // the replica has no member of the board
	reasonAway        reason = "away"         // no replica answers, or it is loading
	reasonRefused     reason = "refused"      // this user may not do what it needs
	reasonNoReplica   reason = "no_replica"   // it is a master
	reasonOtherMaster reason = "other_master" // it follows another one
	reasonPrimary     reason = "primary"      // the primary does not tell its history
	reasonLink        reason = "link"         // its link to the master is down
	reasonNoKeeper    reason = "no_keeper"    // nothing tells its age
	reasonBehind      reason = "behind"       // it is too old
	reasonStart       reason = "start"        // nothing is known yet
)

// advice tells operators what a reason means and what to check.
var advice = map[reason]string{
	reasonAway:        "no replica answers: check that the address of --redis-read is right and that the replica is up and has loaded its data",
	reasonRefused:     "this user may not use INFO, ROLE or GETRANGE of the keeper's time on the replica, or INFO on the primary: give it +info +role",
	reasonNoReplica:   "--redis-read leads to a master: give the address of a replica of --redis, or leave it out",
	reasonOtherMaster: "--redis-read leads to a replica of another master than --redis",
	reasonPrimary:     "the primary does not answer which history it has, by which a replica is known to be one of it",
	reasonLink:        "the replica's link to its master is down",
	reasonNoKeeper:    "no keeper has written a time that tells the replica's age: run rankcache keep, with the same --hot-instance",
	reasonBehind:      "the replica, or the time that the keeper writes, is too far behind: check the replica's lag, that rankcache keep runs, and this machine's clock",
	reasonStart:       "the replica has not been looked at yet",
}

// ReplicaState is whether boards are read from replicas, and why not.
type ReplicaState struct {
	Used   bool      `json:"used"`
	Reason string    `json:"reason,omitempty"` // a value of the metric's label
	Detail string    `json:"detail,omitempty"`
	Master string    `json:"master,omitempty"` // that the replicas follow, as they name it
	Since  time.Time `json:"since"`
	AgeMs  int64     `json:"age_ms"` // of the latest answer of a replica; -1: unknown
}

// NewReplicas returns what reads from the replicas that client leads to, as primary does from its own. written is the key of the time that
// the keeper of the primary writes. It sends nothing yet.
func NewReplicas(primary *Origin, client redis.UniversalClient, written string, log *slog.Logger, reg prometheus.Registerer) *Replicas {
	of := primary.reader.link
	r := &Replicas{primary: primary.reader, clock: new(keeperClock), log: log, logged: reasonStart,
		replica: reader{&link{client: client, names: of.names, total: of.total, timeout: of.timeout, hasData: of.hasData, metrics: of.metrics}}}
	r.replica.mscore.Store(true)
	client.AddHook(&fence{written: written, clock: r.clock})
	r.state.Store(stateOf(reasonStart, nil, ""))
	set := metric.New(reg, "redis_read_")
	defer set.Must()
	r.answers = set.Counters("answers_total", "Answers about boards where --redis-read is set, by who gave them (replica or primary), and why the primary did: the query asked for it (asked) or for more than the replica has (bounds), the replica has no such board (missing), or none may be read (away, refused, no_replica, other_master, primary, link, no_keeper, behind, start).", "by", "reason")
	set.GaugeFunc("used", "1 while boards are read from replicas (--redis-read).", func() float64 {
		if r.state.Load().Used {
			return 1
		}
		return 0
	})
	set.GaugeFunc("age_seconds", "How old a replica's answer would be, by the latest time of the keeper that one has shown; -1: unknown.", func() float64 { return float64(r.age()) / 1000 })
	return r
}

func stateOf(why reason, err error, master string) *ReplicaState {
	s := &ReplicaState{Used: why == "", Reason: string(why), Detail: advice[why], Master: master, Since: time.Now()}
	if err != nil {
		s.Detail += fmt.Sprintf(" (%v)", err)
	}
	return s
}

// State returns whether boards are read from replicas.
func (r *Replicas) State() ReplicaState {
	s := *r.state.Load()
	s.AgeMs = r.age()
	return s
}

// age returns the age in milliseconds of what a replica has, -1 if it is unknown.
func (r *Replicas) age() int64 {
	at := r.clock.latest()
	if at.IsZero() {
		return -1
	}
	return time.Since(at).Milliseconds()
}

// Read implements [rankcache.Reader].
func (r *Replicas) Read(ctx context.Context, qs []rankcache.Query, as []rankcache.Answer) {
	rest := r.readReplica(ctx, qs, as)
	switch len(rest) {
	case 0:
	case len(qs):
		r.primary.Read(ctx, qs, as)
	default:
		asks, answers := make([]rankcache.Query, len(rest)), make([]rankcache.Answer, len(rest))
		for n, i := range rest {
			asks[n] = qs[i]
		}
		r.primary.Read(ctx, asks, answers)
		for n, i := range rest {
			as[i] = answers[n]
		}
	}
}

// readReplica answers what a replica may, and returns the places of the other queries.
func (r *Replicas) readReplica(ctx context.Context, qs []rankcache.Query, as []rankcache.Answer) (rest []int) {
	state, p := r.state.Load(), new(proof)
	whys := make([]reason, len(qs))
	if p.master = state.Master; state.Used {
		r.ask(context.WithValue(ctx, proofKey{}, p), qs, as, whys)
	}
	for i := range qs {
		switch {
		case !state.Used:
			whys[i] = reason(state.Reason)
		case whys[i] == "":
			whys[i] = p.judge(&qs[i], &as[i])
		}
		if whys[i] != "" {
			r.answers.WithLabelValues("primary", string(whys[i])).Inc()
			rest = append(rest, i)
			continue
		}
		as[i].CurrentAt, as[i].Lags = p.at, true
		r.answers.WithLabelValues("replica", "").Inc()
	}
	if p.reason == reasonAway && ctx.Err() == nil { // not asked again until the next look
		r.state.CompareAndSwap(state, stateOf(p.reason, p.err, ""))
	}
	return rest
}

// ask asks the replica the queries that are not for the primary anyway; whys are why others are.
func (r *Replicas) ask(ctx context.Context, qs []rankcache.Query, as []rankcache.Answer, whys []reason) {
	age, places := time.Since(r.clock.latest()), make([]int, 0, len(qs))
	for i := range qs {
		switch q := &qs[i]; {
		case q.Primary:
			whys[i] = reasonAsked
		case q.MaxAge != 0 && (q.MaxAge < youngestReplica || age-replicaLookEvery > q.MaxAge): // the latest time is of the last look at least
			whys[i] = reasonBounds
		default:
			places = append(places, i)
		}
	}
	if len(places) == len(qs) {
		r.replica.Read(ctx, qs, as)
		return
	}
	asks, answers := make([]rankcache.Query, len(places)), make([]rankcache.Answer, len(places))
	for n, i := range places {
		asks[n] = qs[i]
	}
	if len(asks) > 0 {
		r.replica.Read(ctx, asks, answers)
	}
	for n, i := range places {
		as[i] = answers[n]
	}
}

// judge returns why an answer of a replica is none to q.
func (p *proof) judge(q *rankcache.Query, a *rankcache.Answer) reason {
	switch {
	case p.trips == 0:
		return reasonAway
	case p.reason != "":
		return p.reason
	case a.Err != nil:
		return reasonAway
	case time.Since(p.at) > OldestReplica:
		return reasonBehind
	case a.Members == 0: // it may be on the primary: no board is told to be gone by a replica
		return reasonMissing
	case !reaches(q, a.State) || q.MaxAge != 0 && time.Since(p.at) > q.MaxAge:
		return reasonBounds
	}
	return ""
}

// reaches reports whether a state is within the bounds of q, as far as it tells.
func reaches(q *rankcache.Query, s rankcache.State) bool {
	want := &q.MinState
	return s.Seq >= q.MinSeq && (want.Run == 0 || s.Run == want.Run && s.Seq >= want.Seq && !(s.Seq == want.Seq && s.HasSum && want.HasSum && s.Sum != want.Sum))
}

// Run looks whether replicas may be read, until ctx is done; it returns nil.
func (r *Replicas) Run(ctx context.Context) error {
	for range tick.NowAndEvery(ctx, replicaLookEvery) {
		r.look(ctx)
	}
	return nil
}

// look sets the state, and logs that another reason holds than at the last look.
func (r *Replicas) look(ctx context.Context) {
	bounded, cancel := context.WithTimeout(ctx, r.primary.timeout)
	defer cancel()
	p, why, err := r.prove(bounded)
	if ctx.Err() != nil {
		return
	}
	next, last := stateOf(why, err, p.master), r.state.Load()
	if next.Reason == last.Reason && next.Master == last.Master {
		next.Since = last.Since
	}
	r.state.Store(next)
	logged := r.logged
	switch r.logged = why; {
	case why == logged:
	case next.Used:
		r.log.Info("boards are read from replicas", "master", next.Master)
	default:
		r.log.Warn("boards are read from the primary alone: "+next.Detail, "reason", next.Reason)
	}
}

// prove returns which master a replica follows, or why it must not be read.
func (r *Replicas) prove(ctx context.Context) (*proof, reason, error) {
	p := new(proof)
	var info *redis.StringCmd
	_, _ = r.replica.client.Pipelined(context.WithValue(ctx, proofKey{}, p), func(pipe redis.Pipeliner) error {
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
	case time.Since(p.at) > OldestReplica:
		return p, reasonBehind, fmt.Errorf("%v old", time.Since(p.at).Round(time.Millisecond))
	}
	why, err := r.compare(ctx, historyIn(info.Val()))
	return p, why, err
}

// compare returns why a replica with a history is none of the primary. That is asked for its own where another one is known, or that is some time ago.
func (r *Replicas) compare(ctx context.Context, history string) (reason, error) {
	if history != r.history || time.Since(r.historyAt) >= primaryLookEvery {
		info, err := r.primary.client.Info(ctx, "replication").Result()
		switch reply := redis.Error(nil); {
		case errors.As(err, &reply) && refused(err):
			return reasonRefused, err
		case err != nil:
			return reasonPrimary, err
		}
		r.history, r.historyAt = historyIn(info), time.Now()
	}
	if history == "" || history != r.history {
		return reasonOtherMaster, fmt.Errorf("its master_replid is %s, the primary's %s", history, r.history)
	}
	return "", nil
}

// historyIn returns the master_replid in the text of INFO replication: it is the same on a master and all its replicas, and another one after a restart or a
// failover.
func historyIn(info string) string {
	for line := range strings.Lines(info) {
		if id, ok := strings.CutPrefix(line, "master_replid:"); ok {
			return strings.TrimSpace(id)
		}
	}
	return ""
}
