package replay

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"rankcache/internal/tick"
	"rankcache/wire"
)

const (
	// streamID is the id of the log in Redis as a topic. Kafka has no such id: what was saved at a place of one log is
	// never taken for one of the other.
	streamID = "redis"
	// streamWait is how long a read waits for an entry. After one without any it is looked whether the log ends before
	// the place that was read.
	streamWait = time.Second
	// againBy is how far before its place reading goes on after a failure: meanwhile another server, whose clock is
	// behind, may have added entries there. What comes again changes nothing.
	againBy = 10 * wire.LogSecond
	// An entry has the changes of a call, up to about 100 KB: streamRead is how many one read brings, and streamBatch from
	// how many bytes on a batch is full.
	streamRead, streamBatch = 64, 256 << 10
)

// stream is the log in Redis: a shared topic of one partition, whose offsets are the places of entries. fill, assign and
// unassign are the consumer's, run is a goroutine of its own, which waits in Redis.
//
// The server may lose entries, as in a failover, or the whole log. Then places go on from earlier ones. That is no other
// topic: boards that are equal to Redis stay open, and any other is filled again once it lacks an update.
type stream struct {
	from    RedisLog
	pause   time.Duration // the shortest time between two reads while entries come
	reading atomic.Pointer[partition]
	changed signal // wakes run: there is something to read
	items   chan item
	queued  signal // wakes the consumer
	metrics *metrics
	log     *slog.Logger
	badLog  rate.Sometimes
}

func newStream(c *common) *stream {
	return &stream{from: c.cfg.RedisLog, pause: c.cfg.PublishEvery, changed: newSignal(), items: make(chan item, streamRead+1), // of a whole read, with an itemAgain
		queued: newSignal(), metrics: c.metrics, log: c.log, badLog: rate.Sometimes{Interval: logEvery}}
}

func (s *stream) close() error { return nil }

func (s *stream) assign(parts []*partition) error {
	s.reading.Store(parts[0])
	s.changed.wake()
	return nil
}

func (s *stream) unassign([]*partition) error {
	s.reading.Store(nil)
	return nil
}

func (s *stream) fill(to *consumer) (events int, err error) {
	for size := 0; events < batchItems && size < streamBatch; events++ {
		select {
		case it := <-s.items:
			if it.part == s.reading.Load() { // else it is of a reading that has ended
				to.batch = append(to.batch, it)
			}
			if it.entry != nil {
				size += len(it.entry.Changes)
			}
		default:
			return events, nil
		}
	}
	return events, nil
}

func (s *stream) arrived() <-chan struct{} { return s.queued }

func (s *stream) run(ctx context.Context) error {
	for ctx.Err() == nil {
		if part := s.reading.Load(); part != nil {
			s.read(ctx, part)
		} else {
			s.changed.wait(ctx, never)
		}
	}
	return nil
}

// read reads until the partition is not read any more.
func (s *stream) read(ctx context.Context, part *partition) {
	p := place{part: part, last: part.from - 1, quiet: true}
	for ctx.Err() == nil && s.reading.Load() == part {
		begun := time.Now()
		items, err := p.next(ctx, s.from)
		for _, it := range items {
			select {
			case s.items <- it:
			case <-ctx.Done():
			}
		}
		s.queued.wake() // only now, so that one batch has all
		switch {
		case err != nil && ctx.Err() == nil:
			s.metrics.redisErrors.Inc()
			s.badLog.Do(func() { s.log.Warn("the log in Redis can't be read", "err", err) })
			tick.Sleep(ctx, tick.Jitter(minRetry))
		case len(items) < streamRead: // else more is there
			tick.Sleep(ctx, s.pause-time.Since(begun))
		}
	}
}

// place is how far the log was read.
type place struct {
	part  *partition
	last  int64 // the place of the last entry
	quiet bool  // the last read has found nothing
	lost  bool  // the last call has failed
}

// next returns what follows: entries, or else the end; before them that reading has gone back.
func (p *place) next(ctx context.Context, from RedisLog) (items []item, err error) {
	after, end := p.last, p.last+1
	if p.quiet || p.lost {
		if _, end, err = from.Ends(ctx); err != nil {
			p.lost = true
			return nil, err
		}
	}
	if p.lost || end <= p.last {
		after = max(min(p.last, end-1)-againBy, 0)
		items = append(items, item{part: p.part, offset: after + 1, kind: itemAgain})
	}
	entries, err := from.Read(ctx, after, streamRead, streamWait)
	if p.lost = err != nil; p.lost {
		return nil, err
	}
	p.last, p.quiet = after, len(entries) == 0
	for i := range entries {
		p.last = entries[i].Place
		items = append(items, item{part: p.part, offset: p.last, entry: &entries[i]})
	}
	if p.quiet {
		p.last = max(p.last, end-1)
		items = append(items, item{part: p.part, offset: p.last + 1, kind: itemEnd})
	}
	return items, nil
}

func (s *stream) describe(_ context.Context, names []string) (infos []topicInfo, err error) {
	for _, name := range names {
		infos = append(infos, topicInfo{name, streamID, 1})
	}
	return infos, nil
}

func (s *stream) offsets(ctx context.Context, parts []*partition) (map[*partition]offsets, error) {
	low, high, err := s.from.Ends(ctx)
	if err != nil {
		return nil, err
	}
	return everywhere(parts, offsets{low, high}), nil
}

// since returns the end: what a board has from before, Redis has.
func (s *stream) since(_ context.Context, parts []*partition, _ time.Time) (map[*partition]int64, error) {
	return everywhere(parts, parts[0].high), nil
}

func (s *stream) ends(ctx context.Context, parts []*partition) (map[*partition]int64, error) {
	_, end, err := s.from.Ends(ctx)
	if err != nil {
		return nil, err
	}
	return everywhere(parts, end), nil
}

func everywhere[T any](parts []*partition, value T) map[*partition]T {
	all := make(map[*partition]T, len(parts))
	for _, p := range parts {
		all[p] = value
	}
	return all
}
