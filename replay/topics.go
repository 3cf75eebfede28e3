package replay

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"rankcache/internal/tick"
)

// topicWatcher keeps the consumer assigned to the topics of the followed boards.
// Its fields belong to the goroutine of run.
type topicWatcher struct {
	source   changeLog
	consumer *consumer
	feeds    *feeds
	cfg      Config
	wake     signal
	metrics  *metrics
	log      *slog.Logger

	known   map[string]*topic // those that are or were being read, by name
	asked   string            // the topic that was described last of those that are read
	backlog *atomic.Int64     // set to the records of all logs when their reading began
}

func newTopicWatcher(c *common, source changeLog, consumer *consumer) *topicWatcher {
	return &topicWatcher{source: source, consumer: consumer, feeds: &c.feeds, cfg: c.cfg, wake: c.topicsWake, metrics: c.metrics,
		log: c.log, known: make(map[string]*topic), backlog: &c.backlog}
}

func (w *topicWatcher) run(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := w.poll(ctx); err != nil && ctx.Err() == nil {
			w.failed(err)
		}
		w.wake.wait(ctx, tick.Jitter(w.cfg.PollEvery))
	}
	return nil
}

func (w *topicWatcher) failed(err error) {
	w.metrics.kafkaErrors.Inc()
	for _, f := range w.feeds.current() {
		f.sources.kafkaFailed(err)
	}
	w.log.Warn("topics can't be followed", "err", err)
}

// poll compares the topics that Kafka has with those being read, and sends the consumer the differences.
func (w *topicWatcher) poll(ctx context.Context) error {
	wanted := w.wanted()
	var todo topicChanges
	for name, t := range w.known {
		if wanted[name] == nil {
			todo.stop = append(todo.stop, t)
			delete(w.known, name)
		}
	}
	var err error
	if names := w.due(wanted); len(names) > 0 {
		var infos []topicInfo
		infos, err = w.source.describe(ctx, names)
		for _, info := range infos {
			w.plan(info, wanted[info.name], &todo)
		}
	}
	// A topic in trouble does not keep the ends of the others unknown.
	return errors.Join(w.carryOut(ctx, &todo), w.readEnds(ctx, wanted), err)
}

// describedAtOnce is how many topics that are read are described in a poll. A thousand cost a sidecar a few percent of
// a core each second, for what hardly ever changes: whether one was deleted or made again.
const describedAtOnce = 200

// due returns the topics to describe now: those for which there may be something to do, and some of the others in turn.
func (w *topicWatcher) due(wanted map[string][]*feed) (names []string) {
	var quiet []string
	for name, boards := range wanted {
		if w.settled(name, boards) {
			quiet = append(quiet, name)
		} else {
			names = append(names, name)
		}
	}
	if len(quiet) <= describedAtOnce {
		return append(names, quiet...)
	}
	slices.Sort(quiet)
	from, found := slices.BinarySearch(quiet, w.asked)
	if found {
		from++
	}
	for i := range describedAtOnce {
		w.asked = quiet[(from+i)%len(quiet)]
		names = append(names, w.asked)
	}
	return names
}

// settled returns whether a topic is read for its boards and all are open, as far as this process knows.
func (w *topicWatcher) settled(name string, boards []*feed) bool {
	t := w.known[name]
	todo := func(f *feed) bool { return f.lacks(t) || !f.replica.readable.Load() }
	return t != nil && !t.gone.Load() && !t.rewound.Load() && !slices.ContainsFunc(boards, todo)
}

// wanted returns the boards of each topic. A topic is not started before the files
// of all its boards are loaded, because they have the offsets to begin at.
func (w *topicWatcher) wanted() map[string][]*feed {
	wanted := make(map[string][]*feed)
	loading := func(f *feed) bool { return f.restoring.Load() }
	for name, boards := range w.feeds.byTopic() {
		if slices.ContainsFunc(boards, loading) {
			boards = slices.DeleteFunc(slices.Clone(boards), func(f *feed) bool { return w.known[name] == nil || loading(f) })
		}
		if len(boards) > 0 {
			wanted[name] = boards
		}
	}
	return wanted
}

// plan adds a topic's next steps to todo.
func (w *topicWatcher) plan(info topicInfo, boards []*feed, todo *topicChanges) {
	t := w.known[info.name]
	lacking := func(f *feed) bool { return f.lacks(t) }
	switch {
	case info.partitions == 0:
		w.missing(t, boards, todo)
	case info.partitions > 1 && w.cfg.TotalSource == TotalSeq && !boards[0].log.Shared:
		w.refuse(t, info, boards, todo)
	case t == nil:
		b := newReading(info, false, boards)
		if w.cfg.TotalSource == TotalSeq {
			b.resumeFrom(boards)
		}
		todo.start = append(todo.start, b)
	case t.id != info.id || t.rewound.Load():
		w.log.Warn("topic is read again and its boards are reset", "topic", info.name, "recreated", t.id != info.id)
		todo.start = append(todo.start, newReading(info, true, boards))
	case t.gone.Load() || info.partitions > len(t.parts) || !t.shared && slices.ContainsFunc(boards, lacking):
		todo.start = append(todo.start, newReading(info, false, boards))
	case t.shared:
		w.join(t, boards)
	}
}

// join has boards begin with what comes next in a shared topic that is being read. If they
// were changed before, the topic has lost their beginning as far as they can tell.
func (w *topicWatcher) join(t *topic, boards []*feed) {
	for _, f := range boards {
		if f.lacks(t) {
			f.replica.join(t)
			f.whole = t
		}
	}
}

// refuse closes boards whose topic has several partitions, because they bring a board's updates out of order.
func (w *topicWatcher) refuse(t *topic, info topicInfo, boards []*feed, todo *topicChanges) {
	why := fmt.Sprintf("topic %s has %d partitions, and a board with seqs is read from one: delete the topic, the writer makes it again, "+
		"or make it with one partition if another program writes it", info.name, info.partitions)
	for _, f := range boards {
		if f.sources.topicRefused(why) {
			w.log.Error("topic is not read", "board", f.id, "reason", why)
		}
	}
	if t == nil || t.gone.Swap(true) {
		return
	}
	todo.stop = append(todo.stop, t)
	for _, f := range boards {
		f.replica.report(f.replica.currentEpoch(), fault{reason: why, counted: true})
	}
}

// missing stops reading a topic that Kafka does not have. It stays known, so that
// the id of the next one of the name can be compared.
func (w *topicWatcher) missing(t *topic, boards []*feed, todo *topicChanges) {
	for _, f := range boards {
		f.sources.topicRefused("its topic does not exist yet: writers make it within seconds if their rooms name the board")
	}
	if t != nil && !t.gone.Swap(true) {
		w.log.Warn("topic is gone", "topic", t.name)
		todo.stop = append(todo.stop, t)
	}
}

// carryOut finds out where the new readings begin and sends them to the consumer.
// A topic whose offsets are not known yet is left for the next poll.
func (w *topicWatcher) carryOut(ctx context.Context, todo *topicChanges) error {
	void, unknown := todo.fetchOffsets(ctx, w.source)
	for _, b := range void {
		w.metrics.voidFiles.WithLabelValues(kindLog).Inc()
		w.log.Warn("log lacks the records after the saved boards: it is read from its beginning", "topic", b.name)
	}
	if len(todo.start)+len(todo.stop) == 0 {
		return unknown
	}
	if err := w.reassign(ctx, todo); err != nil {
		return err
	}
	return unknown
}

// reassign sends the request and records the new readings. The boards that a
// reading serves are those of before the request: later ones have missed records.
func (w *topicWatcher) reassign(ctx context.Context, todo *topicChanges) error {
	wanted, request := w.wanted(), reassignment{stop: todo.stop}
	for _, b := range todo.start {
		request.start = append(request.start, b.topic)
	}
	if err := w.consumer.reassign(ctx, request); err != nil {
		return err
	}
	for _, b := range todo.start {
		boards := wanted[b.name]
		if b.resumed || b.shared {
			boards = b.readFor // any other may have updates before
		}
		w.reads(b.topic, boards)
		w.log.Info("topic is read", "topic", b.name, "partitions", len(b.parts), "records", b.size(), "again", b.reset, "resumed", b.resumeAt != nil)
	}
	var sum int64
	for _, t := range w.known {
		sum += t.size()
	}
	w.backlog.Store(sum)
	return nil
}

// reads notes a reading and the boards that it has everything of.
func (w *topicWatcher) reads(t *topic, boards []*feed) {
	for _, f := range boards {
		f.whole = t
	}
	w.known[t.name] = t
}

// readEnds reads where the logs end of boards that may miss an update: a log with nothing more in it will not bring it.
func (w *topicWatcher) readEnds(ctx context.Context, wanted map[string][]*feed) error {
	var parts []*partition
	var topics []*topic
	for name, t := range w.known {
		if !t.gone.Load() && slices.ContainsFunc(wanted[name], w.needsEnd) {
			topics, parts = append(topics, t), append(parts, t.parts...)
		} else {
			t.end.Store(nil)
		}
	}
	if len(parts) == 0 {
		return nil
	}
	requested := time.Now()
	found, err := w.source.ends(ctx, parts)
	for _, t := range topics {
		t.setEnd(requested, found)
	}
	return err
}

// needsEnd returns whether a board has to know where its log ends: it is proved, it is
// behind Redis, or its log was read to the end of the start and it could not be opened.
func (w *topicWatcher) needsEnd(f *feed) bool {
	if w.known[f.log.Topic] != f.whole {
		return false
	}
	if f.replica.proving() {
		return true
	}
	if f.replica.readable.Load() {
		return w.cfg.TotalSource == TotalNone || f.replica.awaited.Load() != nil
	}
	t := f.sources.topic()
	return t != nil && t.ended()
}
