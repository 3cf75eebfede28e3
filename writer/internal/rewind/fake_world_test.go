package rewind

import (
	"fmt"
	"hash/fnv"
	"iter"
	"math/rand/v2"
	"slices"
	"time"
)

// world is one history: servers, a log, writers and callers in virtual time. Whatever happens is
// a step of a thread or an event between two steps, both chosen by the seed.
type world struct {
	rules     rules
	rand      *rand.Rand
	now       time.Time
	step      int
	names     int // given so far
	orders    int // likewise
	runs      uint64
	shards    []*shard
	place     map[string]int // board -> shard
	topic     *topic
	writers   []*writer
	members   []*writer // of the group, as Kafka sees it
	term      int       // of the group
	ledger    ledger
	closing   *closing
	mendEvery time.Duration
	threads   []*thread
	callers   int // at work
	quiet     bool
	failed    error
	trace     []string
	log       bool

	commands                                 []*command
	refused                                  map[int]bool // published as refused, by the first record of a command
	scriptFlushes, logEvents, flushes, moves int
	// What excuses a history from being checked in full.
	flushed   []bool // of a shard: keys were deleted in the same era, so order may be lost
	cut       map[int]bool
	safe      map[int]bool // the ledger has them, whatever the log has
	repartial bool         // partitions were added, or the topic made again
	// forked are boards of which a former master of a cluster has begun a run: the ledger takes the highest, as there config epochs
	// demote a former master.
	forked map[string]bool
}

const (
	opIncr = iota + 1
	opSet
	opDelete
)

// command is one change that a caller asks for, and what he knows of it.
type command struct {
	id       int // of the order
	board    string
	member   string
	op       int
	number   int64
	post     bool
	appended int // step of its first record
	records  int
	acked    int // step at which the caller had the answer that it is applied, or 0
	first    int64
	part     int32
}

// entry is a record of the log.
type entry struct {
	*command
	topic  string
	part   int32
	offset int64
}

type topic struct {
	id        string
	parts     []*plog
	committed map[int32]int64
	owner     map[int32]*writer
}

type plog struct {
	start   int64
	records []*command
}

func (p *plog) end() int64 { return int64(len(p.records)) }

// update is a record of rank_updates: a change, or the masters that a writer names.
type update struct {
	id    int
	board string
	record
	era   Era  // of the server on which it was found, "" in a cluster
	past  bool // the board is in another run there
	named string
}

// Boards by the first letter of their names: C commutes and feeds F, L commutes and asks the ledger, S has sets, T has ties, and G has
// a guard that refuses.
func commutes(board string) bool { return board[0] == 'C' || board[0] == 'F' || asks(board) }
func guarded(board string) bool  { return board[0] == 'G' }
func ordered(board string) bool  { return board[0] == 'T' || board[0] == 'G' } // between members, too

func (w *world) name(prefix string) string {
	w.names++
	return fmt.Sprint(prefix, w.names)
}

// nextRun is the time, as a run.
func (w *world) nextRun() uint64 {
	w.runs++
	return w.runs
}

func (w *world) say(format string, args ...any) {
	if w.log {
		w.trace = append(w.trace, fmt.Sprintf("%6d ", w.step)+fmt.Sprintf(format, args...))
	}
}

func (w *world) fail(format string, args ...any) {
	if w.failed == nil {
		w.failed = fmt.Errorf(format, args...)
		w.say("FAILED: %v", w.failed)
	}
}

// partitionOf is the partitioner of Kafka.
func (w *world) partitionOf(c *command) int32 {
	key := c.member
	if ordered(c.board) && w.rules.boardKey {
		key = c.board
	}
	h := fnv.New32a()
	h.Write([]byte(key))
	return int32(h.Sum32() % uint32(len(w.topic.parts)))
}

// append writes a record of a command.
func (w *world) append(c *command) entry {
	p := w.partitionOf(c)
	log := w.topic.parts[p]
	e := entry{c, w.topic.id, p, log.end()}
	log.records = append(log.records, c)
	if c.records++; c.records == 1 {
		c.appended, c.first, c.part = w.step, e.offset, p
		w.commands = append(w.commands, c)
	}
	w.say("log %d/%d: order %d %s %s op %d number %d", p, e.offset, c.id, c.board, c.member, c.op, c.number)
	return e
}

// thread is a sequence of steps that can be cut between any two.
type thread struct {
	w        *world
	of       *writer // nil: nobody kills it
	resume   func() (struct{}, bool)
	stop     func()
	yield    func(struct{}) bool
	wake     time.Time
	inFlight bool // a request was sent and not served: it may be, whatever becomes of its sender
}

type killed struct{}

func (w *world) spawn(of *writer, run func(t *thread)) {
	t := &thread{w: w, of: of}
	t.resume, t.stop = iter.Pull(func(yield func(struct{}) bool) {
		defer func() {
			if r := recover(); r != nil && r != any(killed{}) {
				panic(r)
			}
		}()
		t.yield = yield
		run(t)
	})
	w.threads = append(w.threads, t)
}

func (t *thread) pause() {
	if !t.yield(struct{}{}) {
		panic(killed{})
	}
}

func (t *thread) sleep(d time.Duration) {
	t.wake = t.w.now.Add(d)
	t.pause()
}

// ask sends a request that is served at some later step, and returns when its reply has come.
func ask[T any](t *thread, serve func() T) T {
	t.inFlight = true
	t.pause()
	r := serve()
	t.inFlight = false
	t.pause()
	return r
}

// may reports whether the thread can make a step now.
func (t *thread) may() bool {
	if t.w.now.Before(t.wake) {
		return false
	}
	return t.of == nil || t.inFlight || t.of.alive && !t.of.frozen
}

// run makes one step of a thread that may, or lets time pass.
func (w *world) run() {
	w.step++
	i := w.rand.IntN(len(w.threads))
	for range len(w.threads) {
		t := w.threads[i]
		if t.of != nil && !t.of.alive && !t.inFlight {
			w.end(i)
			return
		}
		if t.may() {
			if _, more := t.resume(); !more {
				w.end(slices.Index(w.threads, t))
			}
			w.now = w.now.Add(time.Duration(w.rand.IntN(3)) * time.Millisecond)
			return
		}
		i = (i + 1) % len(w.threads)
	}
	next := w.now.Add(time.Second)
	for _, t := range w.threads {
		if t.wake.After(w.now) && t.wake.Before(next) {
			next = t.wake
		}
	}
	w.now = next
}

func (w *world) end(i int) {
	w.threads[i].stop()
	w.threads = slices.Delete(w.threads, i, i+1)
}

// close ends all threads.
func (w *world) close() {
	for _, t := range w.threads {
		t.stop()
	}
}
