package replay

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// catalogue keeps the reader on the topics of the followed boards.
type catalogue struct {
	client  *client
	reader  *reader
	routes  *atomic.Pointer[routes]
	cfg     Config
	kick    chan struct{} // asks for a look now
	metrics *metrics
	log     *slog.Logger
	errLog  limiter

	known   map[string]*entry
	backlog *atomic.Int64
}

func newCatalogue(r *Runner, c *client, read *reader) *catalogue {
	return &catalogue{client: c, reader: read, routes: &r.routes, cfg: r.cfg, kick: r.catalogueKick,
		metrics: r.metrics, log: r.log, known: make(map[string]*entry), backlog: &r.backlog}
}

// entry is a topic that is or was being read.
type entry struct {
	topic *topic
	// followers are the boards that get the topic from its beginning, or from where
	// their files end. Another one has missed something.
	followers []*follower
}

func (c *catalogue) run(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := c.look(ctx); err != nil && ctx.Err() == nil {
			c.failed(err)
		}
		rest(ctx, c.cfg.PollEvery, c.kick)
	}
	return nil
}

func (c *catalogue) failed(err error) {
	c.metrics.kafkaErrors.Inc()
	for _, f := range *c.routes.Load() {
		f.kafkaFailed(err)
	}
	if skipped, ok := c.errLog.allow(time.Now()); ok {
		c.log.Warn("topics can't be followed", "err", err, "more", skipped)
	}
}

// look compares the topics that Kafka has with those being read, and has the
// reader change over.
func (c *catalogue) look(ctx context.Context) error {
	wanted := c.wanted()
	var todo change
	for name, e := range c.known {
		if wanted[name] == nil {
			todo.end = append(todo.end, e.topic)
			delete(c.known, name)
		}
	}
	var err error
	if len(wanted) > 0 {
		var infos []topicInfo
		infos, err = c.client.describe(ctx, names(wanted))
		for _, info := range infos {
			c.plan(info, wanted[info.name], &todo)
		}
	}
	if failed := c.carryOut(ctx, &todo); failed != nil {
		return failed
	}
	if failed := c.lookAtEnds(ctx); failed != nil {
		return failed
	}
	return err
}

// wanted returns the boards of each topic. One that still loads its file is not
// among them, and a topic is not begun before all its boards can say from where.
func (c *catalogue) wanted() map[string][]*follower {
	wanted := make(map[string][]*follower)
	var early []string
	for _, f := range *c.routes.Load() {
		if f.restoring.Load() {
			early = append(early, f.topic)
		} else {
			wanted[f.topic] = append(wanted[f.topic], f)
		}
	}
	for _, name := range early {
		if c.known[name] == nil {
			delete(wanted, name)
		}
	}
	return wanted
}

func names(wanted map[string][]*follower) []string {
	all := make([]string, 0, len(wanted))
	for name := range wanted {
		all = append(all, name)
	}
	return all
}

// plan adds to todo what a topic needs.
func (c *catalogue) plan(info topicInfo, followers []*follower, todo *change) {
	e := c.known[info.name]
	switch {
	case info.partitions == 0:
		c.missing(e, followers, todo)
	case e == nil:
		t := newTopic(info, false)
		t.resumeAt, t.resumeFor = resumeAt(info, followers), followers
		todo.begin = append(todo.begin, t)
	case e.topic.id != info.id || e.topic.torn.Load():
		c.log.Warn("topic is read again and its boards begin anew", "topic", info.name, "made_again", e.topic.id != info.id)
		todo.begin = append(todo.begin, newTopic(info, true))
	case e.topic.gone.Load() || !subset(followers, e.followers):
		todo.begin = append(todo.begin, newTopic(info, false))
	default:
		for n := len(e.topic.partitions()); n < info.partitions; n++ {
			todo.more = append(todo.more, &partition{topic: e.topic, number: int32(n)})
		}
	}
}

// missing ends the reading of a topic that Kafka does not have. Its entry stays,
// to tell whether the next one of the name is the same.
func (c *catalogue) missing(e *entry, followers []*follower, todo *change) {
	for _, f := range followers {
		f.topicAbsent()
	}
	if e != nil && !e.topic.gone.Swap(true) {
		c.log.Warn("topic is gone", "topic", e.topic.name)
		todo.end = append(todo.end, e.topic)
	}
}

// newTopic returns a reading of a topic with its partitions at their beginning,
// which carryOut finds out.
func newTopic(info topicInfo, anew bool) *topic {
	t := &topic{name: info.name, id: info.id, anew: anew}
	parts := make([]*partition, info.partitions)
	for n := range parts {
		parts[n] = &partition{topic: t, number: int32(n)}
	}
	t.parts.Store(&parts)
	return t
}

func subset(some, of []*follower) bool {
	for _, f := range some {
		if !slices.Contains(of, f) {
			return false
		}
	}
	return true
}

// carryOut finds out where the new readings begin and hands them to the reader. A
// topic whose offsets are not known yet is left for the next look.
func (c *catalogue) carryOut(ctx context.Context, todo *change) error {
	unknown := c.askBeginnings(ctx, todo)
	if len(todo.begin)+len(todo.end)+len(todo.more) == 0 {
		return unknown
	}
	if err := c.begin(ctx, todo); err != nil {
		return err
	}
	return unknown
}

// askBeginnings finds out where the new readings begin, and drops those that
// Kafka does not tell.
func (c *catalogue) askBeginnings(ctx context.Context, todo *change) error {
	var parts []*partition
	for _, t := range todo.begin {
		parts = append(parts, t.partitions()...)
	}
	if parts = append(parts, todo.more...); len(parts) == 0 {
		return nil
	}
	policies := make(chan struct{})
	go func() {
		defer close(policies)
		c.policies(ctx, todo.begin)
	}()
	found, err := c.client.offsets(ctx, parts)
	<-policies
	unset := func(p *partition) bool { return !p.set(found) }
	todo.begin = slices.DeleteFunc(todo.begin, func(t *topic) bool { return slices.ContainsFunc(t.partitions(), unset) })
	todo.more = slices.DeleteFunc(todo.more, unset)
	for _, t := range todo.begin {
		if t.resumeAt != nil && !t.goOn() {
			c.log.Warn("log does not have what follows the saved boards: it is read from its beginning", "topic", t.name)
		}
	}
	return err
}

// begin notes the new readings, before the reader is told: the boards that they
// are for are the ones of now.
func (c *catalogue) begin(ctx context.Context, todo *change) error {
	wanted := c.wanted()
	if err := c.reader.change(ctx, *todo); err != nil {
		return err
	}
	for _, t := range todo.begin {
		boards := wanted[t.name]
		if t.resumed {
			boards = t.resumeFor // one that came since has missed what files have
		}
		c.known[t.name] = &entry{t, boards}
		c.log.Info("topic is read", "topic", t.name, "partitions", len(t.partitions()), "records", t.size(), "again", t.anew, "resumed", t.resumed)
	}
	var sum int64
	for _, e := range c.known {
		sum += e.topic.size()
	}
	c.backlog.Store(sum)
	return nil
}

// set takes the partition's beginning and end.
func (p *partition) set(found map[*partition]offsets) bool {
	at, ok := found[p]
	p.low, p.high, p.from, p.reached = at.low, at.high, at.low, at.low
	p.next.Store(at.low)
	return ok
}

// policies finds out which topics are compacted. Not being allowed to see it is
// no obstacle: a board with holes then comes from Redis.
func (c *catalogue) policies(ctx context.Context, topics []*topic) {
	if len(topics) == 0 {
		return
	}
	list := make([]string, len(topics))
	for i, t := range topics {
		list[i] = t.name
	}
	found, err := c.client.policies(ctx, list)
	if err != nil && ctx.Err() == nil {
		c.log.Warn("cleanup policies are not known: topics are taken for complete", "err", err)
	}
	for _, t := range topics {
		t.compacted = strings.Contains(found[t.name], "compact")
	}
}

// lookAtEnds asks where the logs end whose boards are behind Redis: one that has
// nothing more to give will not bring them up.
func (c *catalogue) lookAtEnds(ctx context.Context) error {
	var parts []*partition
	var topics []*topic
	for _, e := range c.known {
		if !e.topic.gone.Load() && slices.ContainsFunc(e.followers, c.needsEnd) {
			topics, parts = append(topics, e.topic), append(parts, e.topic.partitions()...)
		}
	}
	if len(parts) == 0 {
		return nil
	}
	asked := time.Now()
	found, err := c.client.ends(ctx, parts)
	for _, t := range topics {
		t.noteEnd(asked, found)
	}
	return err
}

func (c *catalogue) needsEnd(f *follower) bool {
	return f.readable.Load() && (c.cfg.Total == TotalNone || f.overdue.Load() != nil)
}

func (t *topic) noteEnd(asked time.Time, found map[*partition]int64) {
	end := &logEnd{asked: asked}
	for _, p := range t.partitions() {
		high, ok := found[p]
		if !ok {
			return
		}
		end.high = append(end.high, high)
	}
	t.end.Store(end)
}

// jitter returns d, give or take a tenth.
func jitter(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.9 + 0.2*rand.Float64()))
}
