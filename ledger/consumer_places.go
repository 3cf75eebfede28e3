package ledger

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"

	"rankcache/internal/kafka"
)

const watermarksTimeout = 10 * time.Second // bounds a question for the ends of a partition

// places are the offsets that the database has of the assigned partitions. One goroutine changes them.
type places struct {
	mu    sync.Mutex // no server is called with it held
	next  map[int32]int64
	topic Topic // of them
	other bool  // the topic has been made again since
	lag   *prometheus.GaugeVec
}

func newPlaces(lag *prometheus.GaugeVec) *places {
	return &places{next: make(map[int32]int64), lag: lag}
}

func (p *places) get(partition int32) (next int64, mine bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	next, mine = p.next[partition]
	return next, mine
}

func (p *places) set(partition int32, next int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next[partition] = next
}

func (p *places) drop(partition int32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.next, partition)
	p.lag.DeleteLabelValues(strconv.Itoa(int(partition)))
}

// of notes of which topic the offsets are from now on.
func (p *places) of(topic Topic) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.topic, p.other = topic, false
}

func (p *places) look(now Topic) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.other = p.topic.ID != "" && now.ID != "" && now.ID != p.topic.ID
}

// replaced reports whether the topic was made again.
func (p *places) replaced() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.other
}

func (p *places) all() map[int32]int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.next)
}

// unread has the metrics tell that a partition has a record which is not read.
func (p *places) unread(partition int32) {
	p.lag.WithLabelValues(strconv.Itoa(int(partition))).Set(1)
}

// behind sets the metrics of how far behind these ends the partitions are, and returns the sum, and how many they are.
func (p *places) behind(ends map[int32]int64) (records int64, partitions int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for partition, next := range p.next {
		if end, known := ends[partition]; known {
			n := max(0, end-next)
			p.lag.WithLabelValues(strconv.Itoa(int(partition))).Set(float64(n))
			records += n
		}
	}
	return records, len(p.next)
}

// finder finds where the partitions of the topic are read on.
type finder struct {
	*Ledger
	ctx    context.Context // of the run, for what happens in polls
	client *kafka.Consumer
	next   *places        // what the database has of the assigned partitions
	errLog rate.Sometimes // for what passes
}

// place returns where a partition is to be read on. Records that the topic lost are skipped, one made again is read
// from its beginning: both are counted and logged. The error: the consumer is ended, or the topic before what was read.
func (f *finder) place(partition int32) (next int64, err error) {
	topic, err := f.identify()
	if err != nil {
		return 0, err
	}
	low, high, err := f.watermarks(partition)
	if err != nil {
		return 0, err
	}
	var met Met
	err = f.retry(f.ctx, "database", func() (err error) {
		met, err = f.opts.Store.Meet(f.ctx, topic, partition, low)
		return err
	})
	if err != nil {
		return 0, err
	}
	f.tell(met, topic, partition)
	if met.Next > high { // another ledger may have read what came since Kafka was asked
		_, high, err = f.watermarks(partition)
	}
	if err == nil && met.Next > high {
		err = fmt.Errorf("%w: partition %d of %s ends at offset %d, the ledger has read up to %d: if the topic was made again on purpose, give it another name",
			ErrTopic, partition, f.opts.Topic, high, met.Next)
	}
	return met.Next, err
}

// identify asks Kafka which topic has the name now.
func (f *finder) identify() (Topic, error) {
	topic := Topic{Name: f.opts.Topic}
	err := f.retry(f.ctx, "kafka", func() (err error) {
		topic, err = topicNow(f.ctx, f.client.Admin, f.opts.Topic)
		return err
	})
	f.next.of(topic)
	return topic, err
}

// tell counts and logs what is not read.
func (f *finder) tell(met Met, topic Topic, partition int32) {
	switch log := f.log.With("topic", topic.Name, "partition", partition, "from", met.Was, "to", met.Next); {
	case met.Other:
		f.metrics.replaced.Inc()
		f.note(func(s *Status) { s.Replaced++ })
		log.Error("the topic was deleted and made again: what the ledger had not read of the former one is not in it, compare the boards with Redis; the new one is read from its beginning", "id", topic.ID)
	case met.Next != met.Was:
		f.metrics.gaps.Add(float64(met.Next - met.Was))
		f.note(func(s *Status) { s.Skipped += met.Next - met.Was })
		log.Error("records are gone from the topic before they were read: compare the boards with Redis")
	}
}

// watermarks asks Kafka for the first offset of a partition, and that behind its last record.
func (f *finder) watermarks(partition int32) (low, high int64, err error) {
	err = f.retry(f.ctx, "kafka", func() (err error) {
		low, high, err = f.client.QueryWatermarkOffsets(f.opts.Topic, partition, int(watermarksTimeout.Milliseconds()))
		return err
	})
	return low, high, err
}

var ErrTopic = errors.New("not the topic that the ledger has read") // reports a topic that is not the one that was read
