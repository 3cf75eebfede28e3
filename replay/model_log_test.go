package replay

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"rankcache/wire"
)

// modelLog is the board's topic in a model of Kafka.
type modelLog struct {
	rng       *rand.Rand
	created   int // how often: its id
	parts     []modelPartition
	shared    bool // others have updates in it: the board's are all in its home
	home      int
	compacted bool
	away      bool // no broker answers
}

type modelPartition struct {
	low, end int64
	records  []modelRecord
	stalled  time.Time // nothing is read from it before
	away     bool      // while stalled: its end is not known either
}

type modelRecord struct {
	offset int64
	member string
	value  []byte
}

func (l *modelLog) create(partitions int) {
	l.created++
	l.parts = nil
	l.grow(partitions)
}

// grow adds partitions; keys then belong to others.
func (l *modelLog) grow(more int) {
	l.parts = append(l.parts, make([]modelPartition, more)...)
	l.home = l.rng.IntN(len(l.parts))
}

func (l *modelLog) info() topicInfo {
	return topicInfo{modelTopic, fmt.Sprint("id ", l.created), len(l.parts)}
}

func (l *modelLog) produce(u *wire.Update) {
	n := l.home
	if !l.shared {
		n = int(modelHash(u.Member)) % len(l.parts)
	}
	p := &l.parts[n]
	p.records = append(p.records, modelRecord{p.end, u.Member, wire.AppendUpdate(nil, u)})
	p.end++
}

// compact keeps the last record of each member, and the newest few.
func (l *modelLog) compact() {
	for i := range l.parts {
		p := &l.parts[i]
		sealed := max(0, len(p.records)-l.rng.IntN(4))
		last := make(map[string]int64)
		for _, r := range p.records[:sealed] {
			last[r.member] = r.offset
		}
		var kept []modelRecord
		for j, r := range p.records {
			if j >= sealed || last[r.member] == r.offset {
				kept = append(kept, r)
			}
		}
		p.records = kept
	}
}

// cut removes the beginning of some partitions.
func (l *modelLog) cut() {
	for i := range l.parts {
		if p := &l.parts[i]; l.rng.IntN(2) == 0 {
			p.low += l.rng.Int64N(p.end - p.low + 1)
			p.records = slices.DeleteFunc(p.records, func(r modelRecord) bool { return r.offset < p.low })
		}
	}
}

func (l *modelLog) stall(d time.Duration) {
	until, away := time.Now().Add(d), l.rng.IntN(2) == 0
	one := l.rng.IntN(len(l.parts))
	for i := range l.parts {
		if i == one || l.rng.IntN(4) == 0 {
			l.parts[i].stalled, l.parts[i].away = until, away
		}
	}
}

// modelReader stands for consumer, Kafka client and topic watcher.
type modelReader struct {
	log      *modelLog
	watcher  *topicWatcher // its plans are the real ones
	queue    batches
	topic    *topic
	next     []int64
	ended    []int64 // the end that was last reported
	lookAt   time.Time
	maxChunk int
}

func newModelReader(l *modelLog, r *Runner, queue batches) *modelReader {
	return &modelReader{log: l, queue: queue, maxChunk: 1 + l.rng.IntN(40),
		watcher: &topicWatcher{feeds: &r.feeds, cfg: r.cfg, metrics: r.metrics, log: r.log, known: make(map[string]*topic), backlog: &r.backlog}}
}

// watch does what topicWatcher.poll does.
func (r *modelReader) watch(now time.Time, wake signal) {
	select {
	case <-wake:
	default:
		if now.Before(r.lookAt) {
			return
		}
	}
	r.lookAt = now.Add(DefaultPollEvery)
	if r.log.away {
		r.watcher.failed(errors.New("model: no broker answers"))
		return
	}
	var todo topicChanges
	for _, boards := range r.watcher.wanted() {
		r.watcher.plan(r.log.info(), boards, &todo)
		if len(todo.stop) > 0 {
			r.topic = nil
		}
		for _, t := range todo.start {
			r.start(t)
			if t.resumed || t.shared {
				boards = t.readFor
			}
			r.watcher.reads(t.topic, boards)
		}
	}
	r.readEnds(now)
}

func (r *modelReader) start(t *beginning) {
	found := make(map[*partition]offsets)
	for _, p := range t.parts {
		found[p] = offsets{r.log.parts[p.number].low, r.log.parts[p.number].end}
		p.setOffsets(found)
	}
	if t.resumeAt != nil {
		t.resume()
	}
	for _, p := range t.parts {
		if t.shared && len(t.lacking) > 0 { // a time tells an offset as well as clocks agree
			p.start(p.low + r.log.rng.Int64N(p.high-p.low+1))
		}
	}
	r.topic, r.next, r.ended = t.topic, nil, nil
	for _, p := range t.parts {
		r.next, r.ended = append(r.next, p.from), append(r.ended, -1)
	}
	batch := <-r.queue.free
	r.queue.full <- append(batch, item{part: t.parts[0], kind: itemBegin})
}

func (r *modelReader) readEnds(now time.Time) {
	if r.topic == nil || !slices.ContainsFunc(r.watcher.wanted()[r.topic.name], r.watcher.needsEnd) {
		return
	}
	found := make(map[*partition]int64)
	for i, p := range r.topic.parts {
		if at := &r.log.parts[i]; !at.away || now.After(at.stalled) {
			found[p] = at.end
		}
	}
	r.topic.setEnd(now, found)
}

// read passes some records on, as the consumer does.
func (r *modelReader) read(now time.Time) {
	if r.topic == nil || r.log.away || r.topic.id != r.log.info().id {
		return
	}
	var batch []item
	select {
	case batch = <-r.queue.free:
	default:
		return
	}
	for _, i := range r.log.rng.Perm(len(r.next)) {
		if !now.Before(r.log.parts[i].stalled) && r.log.rng.IntN(3) > 0 {
			batch = r.readPartition(i, batch)
		}
	}
	if len(batch) == 0 {
		r.queue.free <- batch
		return
	}
	r.queue.full <- batch
}

func (r *modelReader) readPartition(i int, batch []item) []item {
	p, part := &r.log.parts[i], r.topic.parts[i]
	r.next[i] = max(r.next[i], p.low)
	from, _ := slices.BinarySearchFunc(p.records, r.next[i], func(rec modelRecord, at int64) int { return int(rec.offset - at) })
	chunk := p.records[from:min(from+r.maxChunk, len(p.records))]
	for _, rec := range chunk {
		batch = append(batch, item{part: part, offset: rec.offset, value: rec.value})
		r.next[i] = rec.offset + 1
	}
	if from+len(chunk) == len(p.records) && r.ended[i] != p.end {
		batch = append(batch, item{part: part, offset: p.end, kind: itemEnd})
		r.next[i], r.ended[i] = p.end, p.end
	}
	return batch
}

// modelProducer is one writer's queue of updates that it has not produced yet.
type modelProducer struct {
	queue   []wire.Update
	stalled time.Time
}
