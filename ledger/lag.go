package ledger

import (
	"context"
	"errors"
	"maps"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"

	"rankcache/internal/kafka"
	"rankcache/internal/tick"
)

const measureEvery = time.Second // the time between two looks at the ends of the topic

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

// measure tells how far the database is behind the topic, until ctx ends: beside batches, which may wait.
func (l *Ledger) measure(ctx context.Context, c *consumer) {
	limit := rate.Sometimes{Interval: 10 * logEvery}
	for range tick.Every(ctx, measureEvery) {
		topic, err := topicNow(ctx, c.client.Admin, c.topic)
		if err == nil {
			c.next.look(topic)
		}
		ends, err := c.ends(ctx)
		if err != nil && ctx.Err() == nil {
			limit.Do(func() {
				l.log.Warn("it is not known how far the ledger is behind the topic", "topic", c.topic, "err", err)
			})
			continue
		}
		records, partitions := c.next.behind(ends)
		l.note(func(s *Status) { s.Behind, s.Partitions = records+int64(s.Pending+s.Differs), partitions })
	}
}

func (c *consumer) ends(ctx context.Context) (map[int32]int64, error) {
	var of []kafka.TopicPartition
	for p := range c.next.all() {
		of = append(of, kafka.On(c.topic, p))
	}
	if len(of) == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, offsetsTime)
	defer cancel()
	return c.client.OffsetsOf(ctx, of, kafka.End)
}

// wrote notes what became of a write.
func (l *Ledger) wrote(of string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failed[of] = err
}

// WriteError returns why the database refused the last write of any kind, nil if it took it. Call it at any time.
func (l *Ledger) WriteError() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, tried := l.failed["rank_lost"]; !tried { // which is written without a batch, too
		return errors.New("nothing was written yet")
	}
	return errors.Join(l.failed["newer"], l.failed["database"], l.failed["rank_lost"])
}
