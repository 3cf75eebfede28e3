package replay

import (
	"context"
	"time"
)

// changeLog is where the changes of boards come from: the topics of Kafka (kafka.go), or the log in Redis (stream.go),
// which is one shared topic.
type changeLog interface {
	// run does what goes on while the log is read, until ctx ends.
	run(ctx context.Context) error
	// close ends the log. No other call may be running.
	close() error

	// The consumer's goroutine alone calls these.

	// fill has the consumer add what is there now, and returns how many events that were. An error is one for good.
	fill(to *consumer) (events int, err error)
	// arrived returns what wakes the consumer when more is there; nil: fill has to be called again and again.
	arrived() <-chan struct{}
	// assign starts reading partitions where they begin.
	assign(parts []*partition) error
	// unassign stops reading. Nothing of the partitions comes afterwards.
	unassign(parts []*partition) error

	// The topic watcher's goroutine calls these.

	// describe returns the topics' descriptions. It creates none.
	describe(ctx context.Context, names []string) ([]topicInfo, error)
	// offsets returns where the partitions begin and end. It leaves out those without an answer, and returns one of the
	// reasons; so do since and ends.
	offsets(ctx context.Context, parts []*partition) (map[*partition]offsets, error)
	// since returns where to begin to have each record since a time of boards that have nothing from before.
	since(ctx context.Context, parts []*partition, at time.Time) (map[*partition]int64, error)
	// ends returns where the partitions end.
	ends(ctx context.Context, parts []*partition) (map[*partition]int64, error)
}

// newLog returns the log that is read.
func (r *Runner) newLog() (changeLog, error) {
	if r.cfg.RedisLog != nil {
		return newStream(&r.common), nil
	}
	return newClient(r.cfg, r.metrics, r.log)
}
