package files

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"rankcache"
	"rankcache/internal/metric"
	"rankcache/replay"
	"rankcache/wire"
)

const (
	sharedWait = 10 * time.Second // how long a snapshot may take to be read, or written
	offFor     = time.Minute      // how long a store is left alone that does not answer or refuses this process
)

// Objects is where shared snapshots are.
type Objects interface {
	Put(ctx context.Context, name string, data []byte) (objectURL string, err error)
	Get(ctx context.Context, name string) (body io.ReadCloser, size int64, err error)
}

// Shared has a fleet's snapshots: a keeper writes, sidecars read. Any goroutine may call its methods.
type Shared struct {
	objects Objects
	topic   func(rankcache.BoardID) string
	metrics *metrics
	off     atomic.Pointer[time.Time] // until when the store is left alone

	saving sync.Mutex
	buf    bytes.Buffer // of what is saved
}

// NewShared returns the snapshots in objects; topic is a board's. It connects to nothing; errors are reg's.
func NewShared(objects Objects, topic func(rankcache.BoardID) string, reg prometheus.Registerer) (*Shared, error) {
	set := metric.New(reg, "snapshots_")
	return &Shared{objects: objects, topic: topic, metrics: &metrics{
		saves:   set.Counters("saves_total", "Shared snapshots written, by result: ok, denied, slow or failed.", "result"),
		loads:   set.Counters("loads_total", "Shared snapshots read, by result: ok, absent, older (than the sidecar's own file), cut, corrupt, foreign, version, denied, slow, failed, or off (not tried, as one was denied, slow or failed in the last minute).", "result"),
		seconds: set.Histogram("save_seconds", "How long it took to write a shared snapshot.", saveBuckets),
	}}, set.Err()
}

func (s *Shared) name(topic string, board rankcache.BoardID) string {
	return topic + "/" + wire.FileName(board) + fileEnding
}

// Save replaces the snapshot of a board. Nothing of pieces is kept.
func (s *Shared) Save(snap replay.Saved, pieces iter.Seq[[]rankcache.Entry]) error {
	begin := time.Now()
	err := s.save(&snap, pieces)
	s.metrics.saves.WithLabelValues(kind(err)).Inc()
	if err != nil {
		return fmt.Errorf("save the snapshot of board %s: %w", snap.Board, err)
	}
	s.metrics.seconds.Observe(time.Since(begin).Seconds())
	return nil
}

func (s *Shared) save(snap *replay.Saved, pieces iter.Seq[[]rankcache.Entry]) error {
	s.saving.Lock()
	defer s.saving.Unlock()
	s.buf.Reset()
	if err := encode(&s.buf, snap, pieces); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), sharedWait) // the last save comes after the end of any other
	defer cancel()
	_, err := s.objects.Put(ctx, s.name(snap.Topic, snap.Board), s.buf.Bytes())
	return err
}

// Load returns the snapshot of a board. The errors are those of [Shared.LoadNewer].
func (s *Shared) Load(board rankcache.BoardID) (replay.Saved, []rankcache.Entry, error) {
	return s.LoadNewer(context.Background(), board, nil)
}

// LoadNewer returns the snapshot of a board if it is newer than a file, which may be nil. The error wraps
// [fs.ErrNotExist] if there is none, or the store did not answer within the last minute, [replay.ErrOlder] if it is not
// newer, or tells why it can't be used. It ends with ctx, and after 10 s.
func (s *Shared) LoadNewer(ctx context.Context, board rankcache.BoardID, than *replay.Saved) (snap replay.Saved, entries []rankcache.Entry, err error) {
	err = s.read(ctx, board, func(body io.Reader, size int64) (err error) {
		snap, entries, err = decode(body, size, board, func(head *replay.Saved) error {
			if !head.NewerThan(than) {
				return replay.ErrOlder
			}
			return nil
		})
		return err
	})
	s.metrics.loads.WithLabelValues(kind(err)).Inc()
	if err != nil {
		return replay.Saved{}, nil, fmt.Errorf("load the snapshot of board %s: %w", board, err)
	}
	return snap, entries, nil
}

// ReadHeader returns a snapshot's header, and the mean length of its members' ids, as [Store.ReadHeader].
func (s *Shared) ReadHeader(board rankcache.BoardID) (snap replay.Saved, mean int, err error) {
	err = s.read(context.Background(), board, func(body io.Reader, size int64) (err error) {
		d := &decoder{in: bufio.NewReader(body)}
		snap, err = d.headerOf(board, size)
		mean = idBytes(&snap, size)
		return err
	})
	return snap, mean, err
}

// Sweep does nothing: the controller deletes snapshots with the topics of their boards.
func (s *Shared) Sweep([]rankcache.BoardID, time.Duration) error { return nil }

var (
	errOff      = fmt.Errorf("%w: the store did not answer or refused this process within the last minute", fs.ErrNotExist)
	errNoLength = errors.New("the server does not tell how long it is")
)

// read gives a board's object to use. After a failure of the store itself each of many boards would wait.
func (s *Shared) read(ctx context.Context, board rankcache.BoardID, use func(io.Reader, int64) error) (err error) {
	if err := board.Check(); err != nil {
		return err
	}
	if until := s.off.Load(); until != nil && time.Now().Before(*until) {
		return errOff
	}
	ctx, cancel := context.WithTimeout(ctx, sharedWait)
	defer cancel()
	body, size, err := s.objects.Get(ctx, s.name(s.topic(board), board))
	if err == nil {
		defer body.Close()
		if err = errNoLength; size >= 0 {
			err = use(io.LimitReader(body, size+1), size)
		}
	}
	if err != nil && ctx.Err() != nil {
		err = errors.Join(err, ctx.Err()) // a server's error may not tell
	}
	switch kind(err) {
	case "denied", "slow", "failed":
		s.off.Store(new(time.Now().Add(offFor)))
	}
	return err
}
