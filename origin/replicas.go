package origin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/internal/masters"
	"rankcache/internal/metric"
	"rankcache/internal/tick"
	"rankcache/wire"
)

const (
	// OldestReplica is how old a replica's answer may be if no query asks for less: then the primary answers.
	OldestReplica = 5 * time.Second
	// youngestReplica is the age below which replicas are not asked: keepers write the time three times a second.
	youngestReplica = 100 * time.Millisecond
	// How often replicas are looked at, and the primary is asked for its history, a cluster for its masters.
	replicaLookEvery, primaryLookEvery = time.Second, 5 * time.Second
)

// Replicas reads boards from replicas of a primary, and from the primary what these must not answer. An answer of a
// replica is one that the primary gave at [rankcache.Answer].CurrentAt or later, and within the bounds of its query.
// The primary answers where a query is for it alone, where the bounds ask for more, where the replica has no member of
// the board, and while no replica follows the primary: one of it has the same history (master_replid), and each answer
// has with it which master was followed, with the link up. While the primary does not answer, a replica that followed
// it does, if it had what the primary had up to [OldestReplica] before.
//
// Where boards are on several masters, each has a replica of its own, with an age of its own.
//
// Read may be called concurrently.
type Replicas struct {
	primary   reader
	near, far *redis.ClusterClient // of the masters and of their replicas; nil: there is one primary
	log       *slog.Logger
	answers   *prometheus.CounterVec
	table     atomic.Pointer[slotTable]

	unknown *follower // of slots that no master is known to have
	askedAt time.Time // when the masters were asked for; it belongs to Run
}

// slotTable is which master, and so which follower, has a slot. It is never changed.
type slotTable struct {
	followers []*follower
	ranges    []slotRange // ascending; none: all are the first one's
}

type slotRange struct {
	start, end int
	*follower
}

func (t *slotTable) of(key string, other *follower) *follower {
	if len(t.ranges) == 0 {
		return t.followers[0]
	}
	slot := masters.Slot(key)
	i, found := slices.BinarySearchFunc(t.ranges, slot, func(r slotRange, slot int) int {
		if r.start <= slot && slot <= r.end {
			return 0
		}
		return cmp.Compare(r.start, slot)
	})
	if !found {
		return other
	}
	return t.ranges[i].follower
}

// ReplicaState is whether boards are read from replicas, and why not.
type ReplicaState struct {
	Used   bool      `json:"used"`             // of several: all are
	Reason string    `json:"reason,omitempty"` // a value of the metric's label
	Detail string    `json:"detail,omitempty"`
	Master string    `json:"master,omitempty"` // that the replicas follow, as they name it
	Since  time.Time `json:"since"`
	AgeMs  int64     `json:"age_ms"` // of the latest answer of a replica; -1: unknown
	// Slots are those of the master, as 0-5460, where there are several, which Parts has.
	Slots string         `json:"slots,omitempty"`
	Parts []ReplicaState `json:"parts,omitempty"`
}

// NewReplicas returns what reads from the replicas that client leads to, as primary does from its own: of a cluster
// ([RoleRead]) or of instances, as many as primary has, if that reads from such. written is the key of the time that
// the keeper of one primary writes; of several each has a key of its own ([wire.MasterWrittenKey]). It sends nothing
// yet.
func NewReplicas(primary *Origin, client redis.UniversalClient, written string, log *slog.Logger, reg prometheus.Registerer) *Replicas {
	r := &Replicas{primary: primary.reader, log: log}
	set := metric.New(reg, "redis_read_")
	defer set.Must()
	r.answers = set.Counters("answers_total", "Answers about boards where --redis-read is set, by who gave them (replica or primary), and why the primary did: the query asked for it (asked) or for more than the replica has (bounds), the replica has no such board (missing) or its slot has moved (moved), or none may be read (away, refused, no_replica, other_master, primary, link, no_keeper, behind, start). A replica's reason is alone while the primary does not answer.", "by", "reason")
	set.GaugeFunc("used", "1 while boards are read from replicas (--redis-read); the share of the masters where there are several.", r.used)
	set.GaugeFunc("age_seconds", "How old a replica's answer would be, by the latest time of the keeper that one has shown; the oldest of several; -1: unknown.", func() float64 {
		if age := r.State().AgeMs; age >= 0 {
			return float64(age) / 1000
		}
		return -1
	})
	r.far, _ = client.(*redis.ClusterClient)
	if r.near, _ = r.primary.client.(*redis.ClusterClient); r.far != nil {
		r.far.OnNewNode(func(node *redis.Client) { node.AddHook(fence{}) })
		r.unknown = r.newFollower("")
		r.table.Store(&slotTable{followers: []*follower{r.unknown}})
		return r
	}
	client.AddHook(fence{})
	one := r.newFollower(written)
	one.primary, one.replica = r.primary.client, client
	r.table.Store(&slotTable{followers: []*follower{one}})
	return r
}

// newFollower returns a follower that is to have clients, and reads a time of the keeper.
func (r *Replicas) newFollower(written string) *follower {
	f := &follower{written: written, clock: new(keeperClock), like: r.primary.link, log: r.log, answers: r.answers, logged: reasonStart,
		scripts: r.far != nil && r.far.Options().ClusterSlots == nil}
	f.state.Store(&followerState{ReplicaState: stateOf(reasonStart, nil, "")})
	return f
}

// State returns whether boards are read from replicas.
func (r *Replicas) State() ReplicaState {
	t := r.table.Load()
	all := make([]ReplicaState, len(t.followers))
	for i, f := range t.followers {
		all[i] = f.now()
		for _, at := range t.ranges {
			if at.follower == f {
				all[i].Slots += fmt.Sprintf(",%d-%d", at.start, at.end)
			}
		}
		all[i].Slots = strings.TrimPrefix(all[i].Slots, ",")
	}
	if len(t.ranges) == 0 {
		return all[0]
	}
	return worst(all)
}

// worst returns the first state that is not used, or the first, with the age of the oldest.
func worst(all []ReplicaState) ReplicaState {
	w := all[max(0, slices.IndexFunc(all, func(s ReplicaState) bool { return !s.Used }))]
	w.Slots, w.Parts = "", all
	for _, s := range all {
		if w.AgeMs >= 0 && (s.AgeMs < 0 || s.AgeMs > w.AgeMs) {
			w.AgeMs = s.AgeMs
		}
	}
	return w
}

// used returns the share of the followers that are read.
func (r *Replicas) used() float64 {
	all, n := r.table.Load().followers, 0
	for _, f := range all {
		if f.state.Load().Used {
			n++
		}
	}
	return float64(n) / float64(len(all))
}

// Read implements [rankcache.Reader].
func (r *Replicas) Read(ctx context.Context, qs []rankcache.Query, as []rankcache.Answer) {
	t := r.table.Load()
	if len(t.followers) == 1 {
		readSome(ctx, r.primary.Read, qs, as, t.followers[0].read(ctx, qs, as))
		return
	}
	places := make(map[*follower][]int)
	for i := range qs {
		f := t.of(r.primary.names.BoardKey(qs[i].Board), r.unknown)
		places[f] = append(places[f], i)
	}
	var mu sync.Mutex
	var rest []int
	var all sync.WaitGroup
	for f, its := range places {
		all.Go(func() {
			var left []int
			readSome(ctx, func(ctx context.Context, qs []rankcache.Query, as []rankcache.Answer) { left = f.read(ctx, qs, as) }, qs, as, its)
			mu.Lock()
			defer mu.Unlock()
			for _, n := range left {
				rest = append(rest, its[n])
			}
		})
	}
	all.Wait()
	readSome(ctx, r.primary.Read, qs, as, rest)
}

// readSome has those of the queries read that are at the places.
func readSome(ctx context.Context, read func(context.Context, []rankcache.Query, []rankcache.Answer), qs []rankcache.Query, as []rankcache.Answer, places []int) {
	switch len(places) {
	case 0:
		return
	case len(qs):
		read(ctx, qs, as)
		return
	}
	asks, answers := make([]rankcache.Query, len(places)), make([]rankcache.Answer, len(places))
	for n, i := range places {
		asks[n] = qs[i]
	}
	read(ctx, asks, answers)
	for n, i := range places {
		as[i] = answers[n]
	}
}

// Run looks whether replicas may be read, until ctx is done; it returns nil.
func (r *Replicas) Run(ctx context.Context) error {
	for range tick.NowAndEvery(ctx, replicaLookEvery) {
		r.Look(ctx)
	}
	return nil
}

// Look looks once whether replicas may be read, and returns what it found; not beside Run.
func (r *Replicas) Look(ctx context.Context) ReplicaState {
	r.followMasters(ctx)
	var all sync.WaitGroup
	for _, f := range r.table.Load().followers {
		all.Go(func() { f.look(ctx) })
	}
	all.Wait()
	return r.State()
}

// followMasters takes the masters of now, of which there are several: now and then, and while a replica is not read.
func (r *Replicas) followMasters(ctx context.Context) {
	if r.far == nil || time.Since(r.askedAt) < primaryLookEvery && r.used() == 1 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, r.primary.timeout)
	defer cancel()
	parts, err := masters.Parts(ctx, r.near)
	if err == nil && len(parts) == 0 {
		err = errors.New("no master has slots")
	}
	if err != nil {
		r.unknown.state.Store(&followerState{ReplicaState: stateOf(reasonPrimary, err, "")})
		return
	}
	r.askedAt = time.Now()
	if r.used() < 1 {
		r.far.ReloadState(ctx) // only begins to
	}
	next, last := new(slotTable), r.table.Load()
	for _, p := range parts {
		f := r.followerOf(ctx, last, p)
		next.followers = append(next.followers, f)
		for _, s := range p.Ranges {
			next.ranges = append(next.ranges, slotRange{s.Start, s.End, f})
		}
	}
	slices.SortFunc(next.ranges, func(a, b slotRange) int { return cmp.Compare(a.start, b.start) })
	r.table.Store(next)
}

// followerOf returns the follower of a master, with the clients of now. A replica that is read remains the one that is.
func (r *Replicas) followerOf(ctx context.Context, last *slotTable, p masters.Part) *follower {
	written := wire.MasterWrittenKey(p.Tag)
	f := r.newFollower(written)
	if i := slices.IndexFunc(last.followers, func(f *follower) bool { return f.written == written }); i >= 0 {
		f = last.followers[i]
	}
	if near, err := r.near.MasterForKey(ctx, p.Tag); err == nil { // without a round trip
		f.primary = near
	}
	if far, err := r.far.SlaveForKey(ctx, p.Tag); err == nil && !f.state.Load().Used {
		f.replica = far
	}
	return f
}
