package simulate

import (
	"math/rand/v2"
	"time"

	"rankcache/internal/plan"
	"rankcache/replay"
)

// fleet is all that runs.
type fleet struct {
	q        plan.Question
	network  float64 // bytes a second of all brokers and the bucket together
	clock    *clock
	random   *rand.Rand
	redis    *redis
	keeper   *publisher // nil: none
	sidecars []*sidecar
}

// newFleet returns a fleet of which so many sidecars run and have all boards open.
func newFleet(q plan.Question, network float64, seed uint64, running int) *fleet {
	f := &fleet{q: q, network: network, clock: newClock(), random: rand.New(rand.NewPCG(seed, 0))} // #nosec G404 -- a simulation
	f.redis = &redis{clock: f.clock, free: f.clock.now, last: f.clock.now, lost: make([]int, len(q.Members))}
	if q.Keepers > 0 {
		f.keeper = &publisher{fleet: f}
		f.keeper.start()
	}
	for range running {
		s := f.start(0)
		for b := range s.boards {
			s.boards[b].open, s.boards[b].asked = true, f.clock.now.Add(-f.upTo(replay.SelfCheckEvery))
			s.open++
		}
		s.allOpen()
	}
	f.update()
	return f
}

// upTo returns a random time.
func (f *fleet) upTo(d time.Duration) time.Duration {
	return time.Duration(f.random.Float64() * float64(d))
}

// update changes a board, and goes on.
func (f *fleet) update() {
	if f.q.Updates == 0 {
		return
	}
	f.redis.update()
	f.clock.after(seconds(f.random.ExpFloat64()/f.q.Updates), f.update)
}

// start starts a sidecar that reads so many bytes before it opens its boards.
func (f *fleet) start(read float64) *sidecar {
	s := f.newSidecar()
	s.left = read
	s.run()
	f.sidecars = append(f.sidecars, s)
	return s
}

// fillEvery is how often it is reckoned what sidecars that start have read.
const fillEvery = 100 * time.Millisecond

// fill has the sidecars that start share the network with what the others take for updates and fetches, until all have
// read.
func (f *fleet) fill() {
	a := plan.Make(f.q)
	demand := f.q.Updates*float64(a.UpdateBytes) + a.PodFetchKB*1e3
	share := f.network / float64(len(f.sidecars))
	filling := 0.
	for _, s := range f.sidecars {
		if s.left > 0 {
			filling++
		}
	}
	if filling == 0 {
		return
	}
	others := (float64(len(f.sidecars)) - filling) * min(share, demand)
	each := min((f.network-others)/filling, plan.ReplayPerSecond*float64(a.UpdateBytes)) - f.q.Updates*float64(a.UpdateBytes)
	if each <= 0 {
		return // the updates alone are more than the network carries: they never open
	}
	for _, s := range f.sidecars {
		if s.left <= 0 {
			continue
		}
		if s.left -= each * fillEvery.Seconds(); s.left <= 0 {
			for b := range s.boards {
				s.clock.after(s.upTo(fillEvery), func() { s.prove(b) })
			}
		}
	}
	f.clock.after(fillEvery, f.fill)
}
