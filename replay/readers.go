package replay

import (
	"errors"
	"sync"

	"rankcache/internal/kafka"
)

// partitionsEach is how many partitions one client of librdkafka reads: each answer to a fetch names all, each looked
// up from the first on. 5,000 in one take a tenth of a core at rest.
const partitionsEach = 1000

// readers are librdkafka's clients, each of so many partitions. poll, assign and unassign are the consumer's.
type readers struct {
	begin func() (*kafka.Consumer, error)
	each  int // partitions of a reader
	next  int // the reader that is polled next
	of    map[*partition]*reader

	mu    sync.Mutex // guards what a new login needs; assigning and polling is not under it
	all   []*reader
	login func(*kafka.Consumer) error // nil: that of the settings
}

type reader struct {
	*kafka.Consumer
	parts int
}

func newReaders(begin func() (*kafka.Consumer, error)) (*readers, error) {
	r := &readers{begin: begin, each: partitionsEach, of: make(map[*partition]*reader)}
	_, err := r.add()
	return r, err
}

func (r *readers) add() (*reader, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	made, err := r.begin()
	if err != nil {
		return nil, err
	}
	r.all = append(r.all, &reader{Consumer: made})
	if r.login != nil {
		err = r.login(made)
	}
	return r.all[len(r.all)-1], err
}

// poll stores in into the records of one reader, the readers taking turns.
func (r *readers) poll(into []kafka.Record) (n int, other kafka.Event) {
	for range r.all {
		r.next = (r.next + 1) % len(r.all)
		if n, other = r.all[r.next].Records(into); n > 0 || other != nil {
			break
		}
	}
	return n, other
}

// assign starts reading partitions at their from.
func (r *readers) assign(parts []*partition) error {
	assigned := make(map[*reader][]*partition)
	for _, p := range parts {
		to := r.of[p]
		if to == nil { // else it was not assigned the last time
			var err error
			if to, err = r.withRoom(); err != nil {
				return err
			}
			to.parts++
			r.of[p] = to
		}
		assigned[to] = append(assigned[to], p)
	}
	var errs []error
	for to, parts := range assigned {
		errs = append(errs, to.IncrementalAssign(topicPartitions(parts)))
	}
	return errors.Join(errs...)
}

func (r *readers) withRoom() (*reader, error) {
	for _, to := range r.all {
		if to.parts < r.each {
			return to, nil
		}
	}
	return r.add()
}

// unassign stops reading. No record of the partitions is polled afterwards.
func (r *readers) unassign(parts []*partition) error {
	assigned := make(map[*reader][]*partition)
	for _, p := range parts {
		if from := r.of[p]; from != nil {
			from.parts--
			delete(r.of, p)
			assigned[from] = append(assigned[from], p)
		}
	}
	var errs []error
	for from, parts := range assigned {
		errs = append(errs, from.IncrementalUnassign(topicPartitions(parts)))
	}
	return errors.Join(errs...)
}

// setLogin has all of them, and those made later, log in with another user name and password.
func (r *readers) setLogin(username, password string) (err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.login = func(c *kafka.Consumer) error { return c.SetSaslCredentials(username, password) }
	for _, made := range r.all {
		err = errors.Join(err, r.login(made.Consumer))
	}
	return err
}

func (r *readers) close() (err error) {
	for _, made := range r.all {
		err = errors.Join(err, made.Close())
	}
	return err
}

func topicPartitions(parts []*partition) []kafka.TopicPartition {
	tps := make([]kafka.TopicPartition, len(parts))
	for i, p := range parts {
		tps[i] = kafka.TopicPartition{Topic: &p.topic.name, Partition: p.number, Offset: kafka.Offset(p.from)}
	}
	return tps
}
