package writer

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"sync"
	"time"

	"rankcache/internal/kafka"
	"rankcache/rooms"
	"rankcache/writer/internal/rewind"
)

// postHeader of a record of the command topic names the post that waits for what becomes of it.
const postHeader = "post"

// waits are the posts whose commands the reader of their partition applies, so that Redis is what the log makes of
// it: those of ordered classes. It is safe for concurrent use.
type waits struct {
	mu    sync.Mutex // nothing is called under it
	of    map[string]*waiting
	begun chan struct{} // gets one when a post begins to wait; its capacity is 1
}

// waiting is a post that waits.
type waiting struct {
	name  string
	job   job  // a copy
	known bool // its order id was applied before it was appended
	at    rewind.Post
	told  chan verdict // its capacity is 1
}

// verdict is what has become of a command and of the boards that it feeds.
type verdict struct {
	Outcome
	fed []*job
}

func newWaits() *waits {
	return &waits{of: make(map[string]*waiting), begun: make(chan struct{}, 1)}
}

// add has a post wait, before its command is appended.
func (w *waits) add(j *job, known bool) *waiting {
	one := &waiting{name: rand.Text(), job: *j, known: known, told: make(chan verdict, 1)}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.of[one.name] = one
	return one
}

// appended tells where the command of a post is.
func (w *waits) appended(one *waiting, at kafka.TopicPartition) {
	w.mu.Lock()
	one.at = rewind.Post{Partition: at.Partition, Offset: int64(at.Offset), Since: time.Now()}
	w.mu.Unlock()
	select {
	case w.begun <- struct{}{}:
	default:
	}
}

// tell tells a post what has become of it, and reports whether it waits here.
func (w *waits) tell(name string, v verdict) bool {
	w.mu.Lock()
	one := w.of[name]
	delete(w.of, name)
	w.mu.Unlock()
	if one != nil {
		v.Duplicate = one.known
		one.told <- v
	}
	return one != nil
}

func (w *waits) drop(one *waiting) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.of, one.name)
}

// due returns the posts that have waited for longer than a reader in this process takes, and whether any waits.
func (w *waits) due() (due []*waiting, some bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, one := range w.of {
		if !one.at.Since.IsZero() && time.Since(one.at.Since) >= lookAtPosts {
			due = append(due, one)
		}
	}
	return due, len(w.of) > 0
}

// waitsFor reports whether posts of a class wait: it is durable, and the sequence of commands matters on a board of it
// or on one that it feeds.
func (p *processor) waitsFor(kind *rooms.Class) bool {
	return kind.Durable && (kind.Ordered() || slices.ContainsFunc(p.opts.Tiers.File().Fed(kind), func(to rooms.Fed) bool { return to.Ordered() }))
}

// clocksDiffer is how far the clocks of Redis and Kafka may differ for a post and its record to be judged alike.
const clocksDiffer = 30 * time.Second

// isClose reports whether a command that is in time may be outside of its time when Kafka has appended it. Then its post
// waits, as the reader is who judges by the record's time, also when it is read again.
func isClose(j *job, now time.Time) bool {
	ms, apart := now.UnixMilli(), clocksDiffer.Milliseconds()
	late := j.rules.over != 0 && j.rules.over-ms < apart+PostTimeout.Milliseconds()
	return late || max(j.At, j.rules.start)-ms > maxAhead.Milliseconds()-apart
}

// await waits for the posts whose commands were appended for a reader.
func (p *poster) await(ctx context.Context, posts []posted) {
	for i := range posts {
		post := &posts[i]
		if post.wait == nil || post.err != nil {
			continue
		}
		select {
		case v := <-post.wait.told:
			post.Outcome, post.fed, post.done = v.Outcome, v.fed, true
			if v.Refusal != nil {
				post.err = v.Refusal
			}
		case <-ctx.Done():
			p.waits.drop(post.wait)
			post.err = &notYet{post.OrderID}
		}
	}
}

// notYet tells that it was not the turn of a posted command in time.
type notYet struct{ order string }

func (e *notYet) Error() string {
	return fmt.Sprintf("the command with order %s is in the command topic, and not applied yet", e.order)
}

// heard is what has become of a record that a post waits for, here or in another writer.
type heard struct {
	post string // its name
	verdict
}

// appendHeard appends what has become of a record, if a post waits for that.
func appendHeard(dst []heard, m *kafka.Message, o *Outcome, fed []*job) []heard {
	for _, h := range m.Headers {
		if h.Key == postHeader {
			dst = append(dst, heard{string(h.Value), verdict{*o, fed}})
		}
	}
	return dst
}

// answer answers the posts of this writer, and leaves the refusals of others.
func (p *processor) answer(ctx context.Context, all []heard) {
	var others []heard
	for _, h := range all {
		if !p.waits.tell(h.post, h.verdict) && h.Refusal != nil {
			others = append(others, h)
		}
	}
	p.leaveRefusals(ctx, others)
}
