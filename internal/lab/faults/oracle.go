package faults

import (
	"fmt"
	"sort"
	"sync"
	"time"

	"rankcache"
	"rankcache/wire"
)

// Phase is where a row stands.
type Phase int

// The phases of a row, in order.
const (
	Steady     Phase = iota
	Faulty           // from the injection to the healing
	Recovering       // from the healing until all is as it was
	Recovered
	phases
)

// Oracle knows what every board was at every seq, and judges answers by it. All
// methods may be called concurrently.
type Oracle struct {
	// CopyAge is how old a copy may be that answers without a seq, such as that a member is not there. It is set before
	// questions are asked.
	CopyAge time.Duration

	mu     sync.Mutex
	phase  Phase
	boards map[rankcache.BoardID]*knowledge
}

// knowledge is what is known of one board.
type knowledge struct {
	now   *history
	past  []*history // of Redises that have lost writes
	acks  []ack      // rising
	floor map[string]uint64
	// losing is set while Redis may lose writes: how old an answer is, is not known then.
	losing bool
	asked  []judged // to be judged once their seq is known
	wrong  []Wrong
}

// ack reports that Redis had reached seq at a time.
type ack struct {
	at  time.Time
	seq uint64
}

// copyAge is [Oracle.CopyAge] at first: a partition is away for 13 s in one row.
const copyAge = 20 * time.Second

// Ask is a question at the moment it was sent.
type Ask struct {
	Question
	Phase Phase
	at    time.Time
	past  int               // how many times the board had lost writes
	floor map[string]uint64 // by source: what an answer must not go back behind
	low   uint64            // what Redis had CopyAge before
}

type judged struct {
	*Ask
	*Reply
}

// Wrong is one wrong answer and why it is wrong.
type Wrong struct {
	Ask   Ask
	Reply Reply
	Why   string
}

func (w Wrong) String() string {
	return fmt.Sprintf("%s of %s (%s, phase %d) seq %d age %v: %s", w.Ask.Kind, w.Ask.Board, w.Reply.Source, w.Ask.Phase, w.Reply.Seq, w.Reply.Age, w.Why)
}

// NewOracle returns an oracle that knows of no board.
func NewOracle() *Oracle {
	return &Oracle{CopyAge: copyAge, boards: map[rankcache.BoardID]*knowledge{}}
}

// of is called with the lock held.
func (o *Oracle) of(b rankcache.BoardID) *knowledge {
	k := o.boards[b]
	if k == nil {
		k = &knowledge{now: newHistory(), floor: map[string]uint64{}}
		o.boards[b] = k
	}
	return k
}

// Enter begins a phase.
func (o *Oracle) Enter(p Phase) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.phase = p
	o.forgetFloors()
}

// Restarted notes that the sidecar is another one: it may begin with older copies
// than the one before had, as long as it tells how old they are.
func (o *Oracle) Restarted() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.forgetFloors()
}

// forgetFloors is called with the lock held.
func (o *Oracle) forgetFloors() {
	for _, k := range o.boards {
		clear(k.floor)
	}
}

// Phase returns the phase of now.
func (o *Oracle) Phase() Phase {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.phase
}

// Applied notes an order that Redis had applied at a time.
func (o *Oracle) Applied(u wire.Update, at time.Time) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	k := o.of(u.Board)
	if n := len(k.acks); n == 0 || k.acks[n-1].seq < u.Seq {
		k.acks = append(k.acks, ack{at, u.Seq})
	}
	return k.now.add(u)
}

// Losing notes that Redis may lose writes of the board from now on, until [Oracle.Rewind]
// tells how many.
func (o *Oracle) Losing(b rankcache.BoardID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.of(b).losing = true
}

// Rewind notes that Redis has lost everything after seq. No order may be on its
// way.
func (o *Oracle) Rewind(b rankcache.BoardID, seq uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	k := o.of(b)
	k.past = append(k.past, k.now)
	k.now, k.losing = k.now.until(seq), false
	k.acks, k.floor = []ack{{time.Now(), seq}}, map[string]uint64{}
}

// Reached returns the greatest seq of the board that Redis is known to have had.
func (o *Oracle) Reached(b rankcache.BoardID) uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.of(b).reached(time.Now())
}

// Lost is Rewind where no earlier answer can be of what is lost: later answers of it are
// wrong.
func (o *Oracle) Lost(b rankcache.BoardID, seq uint64) {
	o.Rewind(b, seq)
	o.mu.Lock()
	defer o.mu.Unlock()
	k := o.of(b)
	k.past = k.past[:len(k.past)-1]
}

// Changed notes that members were changed in Redis past the writer, so that the
// board's seq stays. No order may be on its way. Until the row has recovered, the
// board may be answered as it was before.
func (o *Oracle) Changed(b rankcache.BoardID, members map[string]Place) {
	o.mu.Lock()
	defer o.mu.Unlock()
	k := o.of(b)
	k.past = append(k.past, k.now)
	k.now = k.now.until(k.now.known())
	k.now.amend(members)
	k.acks, k.floor = []ack{{time.Now(), k.now.known()}}, map[string]uint64{}
}

func (k *knowledge) reached(at time.Time) uint64 {
	i := sort.Search(len(k.acks), func(i int) bool { return k.acks[i].at.After(at) })
	if i == 0 {
		return 0
	}
	return k.acks[i-1].seq
}

// Ask notes that the question is being sent.
func (o *Oracle) Ask(q Question) *Ask {
	o.mu.Lock()
	defer o.mu.Unlock()
	k, now := o.of(q.Board), time.Now()
	a := &Ask{Question: q, Phase: o.phase, at: now, past: len(k.past), low: k.reached(now.Add(-o.CopyAge))}
	a.floor = map[string]uint64{}
	for _, source := range sources {
		a.floor[source] = k.floor[q.floorKey(source)]
	}
	return a
}

// Tell notes the answer, and judges at once what does not need the history.
func (o *Oracle) Tell(a *Ask, r *Reply) {
	o.mu.Lock()
	defer o.mu.Unlock()
	k := o.of(a.Board)
	if a.Phase == Steady || a.Phase == Recovered {
		a.Phase = o.phase // a fault that comes while a read is on its way is the fault's
	}
	if r.failed() {
		return
	}
	if a.past != len(k.past) {
		a.low = 0 // writes were lost while it was on its way
	}
	if why := k.atOnce(a, r, o.phase); why != "" {
		k.wrong = append(k.wrong, Wrong{*a, *r, why})
		return
	}
	k.asked = append(k.asked, judged{a, r})
}
