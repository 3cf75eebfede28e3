package writer

import (
	"crypto/rand"
	"fmt"
	"sync"
	"time"

	"rankcache/internal/kafka"
	"rankcache/writer/internal/rewind"
)

// waits are the posts of durable classes. The reader of its partition tells what has become of one that is not applied
// at once, or is refused then: it alone has all that was accepted before. It is safe for concurrent use.
type waits struct {
	mu    sync.Mutex // nothing is called under it
	of    map[string]*waiting
	begun chan struct{} // gets one when a post begins to wait; its capacity is 1
}

// waiting is a post that waits.
type waiting struct {
	name string
	job  job // a copy
	at   rewind.Post
	told chan verdict // its capacity is 1
}

// verdict is what has become of a command and of the boards that it feeds.
type verdict struct {
	Outcome
	fed []*job
}

func newWaits() *waits {
	return &waits{of: make(map[string]*waiting), begun: make(chan struct{}, 1)}
}

// add names a post, before its command is appended, and has it hear of the reader.
func (w *waits) add(j *job) *waiting {
	one := &waiting{name: rand.Text(), told: make(chan verdict, 1)}
	j.origin = originOfPost(one.name)
	one.job = *j
	w.mu.Lock()
	defer w.mu.Unlock()
	w.of[one.name] = one
	return one
}

// begin has a post whose command was appended wait for the reader, also for one in another writer.
func (w *waits) begin(one *waiting, at kafka.TopicPartition) {
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
		one.told <- v
	}
	return one != nil
}

func (w *waits) drop(one *waiting) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.of, one.name)
}

// lookAtPosts is how often Redis is asked about all posts that wait for readers of other writers.
const lookAtPosts = 50 * time.Millisecond

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

type notYet struct{ order string } // tells that it was not the turn of a posted command in time

func (e *notYet) Error() string {
	return fmt.Sprintf("the command with order %s is in the command topic, and not applied yet", e.order)
}

// heard is what has become of a record that a post waits for, here or in another writer.
type heard struct {
	post string // its name
	verdict
}

// appendHeard appends what has become of a record, if it is of a post.
func appendHeard(dst []heard, m *kafka.Message, o Outcome, fed []*job) []heard {
	if name := postOf(m); name != "" {
		dst = append(dst, heard{name, verdict{o, fed}})
	}
	return dst
}
