package hotkey

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"rankcache/internal/metric"
	"rankcache/internal/tick"
)

// Limits of a verdict that is read from Redis.
const (
	maxVerdictBytes  = 256 << 10
	maxVerdictBoards = 1000
)

// verdictVersion is the format version that is written; others are refused.
const verdictVersion = 1

// Verdict is the result of one poll of a server-side source, shared with the fleet
// through Redis. It is immutable.
type Verdict struct {
	V       int          `json:"v"`       // version of the format, which Encode sets
	At      int64        `json:"at"`      // when the source answered, in Unix ms of the poller's clock
	Source  string       `json:"source"`  // the source's name
	Poller  string       `json:"poller"`  // ID of the poller
	Boards  []BoardCount `json:"boards"`  // the hot boards, most counted first
	Ignored int          `json:"ignored"` // hot keys that belong to no board
}

// Encode returns the JSON of the verdict, as it is stored in Redis.
func (v Verdict) Encode() []byte {
	v.V = verdictVersion
	data, _ := json.Marshal(v) // strings and numbers always marshal
	return data
}

// DecodeVerdict parses the result of [Verdict.Encode]. It returns an error for
// malformed or too long data and for another version.
func DecodeVerdict(data []byte) (v Verdict, err error) {
	if len(data) > maxVerdictBytes {
		return v, fmt.Errorf("verdict has %d bytes, want at most %d", len(data), maxVerdictBytes)
	}
	if err := json.Unmarshal(data, &v); err != nil {
		return v, fmt.Errorf("verdict: %w", err)
	}
	return v, v.check()
}

func (v *Verdict) check() error {
	switch {
	case v.V != verdictVersion:
		return fmt.Errorf("verdict of version %d, want %d: update the older sidecars or pollers", v.V, verdictVersion)
	case v.At <= 0:
		return errors.New("verdict has no time")
	case len(v.Boards) > maxVerdictBoards:
		return fmt.Errorf("verdict lists %d boards, want at most %d", len(v.Boards), maxVerdictBoards)
	}
	for _, b := range v.Boards {
		if err := b.Board.Check(); err != nil {
			return fmt.Errorf("verdict: %w", err)
		}
	}
	return nil
}

// same reports whether v and w are results of the same poll.
func (v Verdict) same(w Verdict) bool {
	return v.At == w.At && v.Poller == w.Poller && v.Source == w.Source
}

const (
	// readVerdictEvery is the interval of reading the verdict, ± 10 %.
	readVerdictEvery = time.Second
	// readVerdictTimeout bounds one read.
	readVerdictTimeout = 500 * time.Millisecond
)

// Observer receives verdicts; a [Tracker] is one.
type Observer interface {
	// Observe is called with every verdict that was read, often the same again.
	Observe(Verdict)
}

// VerdictReader reads the fleet's verdict from Redis and passes it to an [Observer].
type VerdictReader struct {
	rdb     redis.Cmdable
	key     string
	to      Observer
	log     *slog.Logger
	reads   *prometheus.CounterVec
	failing bool // the last read failed, which was logged
}

// NewVerdictReader returns a reader of the verdict under key (see
// wire.Names.HotKey). It starts nothing; the caller closes rdb.
func NewVerdictReader(rdb redis.Cmdable, key string, to Observer, log *slog.Logger, reg prometheus.Registerer) *VerdictReader {
	set := metric.New(reg, "hot_")
	defer set.Must()
	return &VerdictReader{rdb: rdb, key: key, to: to, log: log,
		reads: set.Counters("verdict_reads_total", "Reads of the fleet's hot-key verdict, by result.", "result")}
}

// Run reads the verdict about once a second until ctx is done; it returns nil.
func (r *VerdictReader) Run(ctx context.Context) error {
	for ; ctx.Err() == nil; tick.Sleep(ctx, tick.Jitter(readVerdictEvery)) {
		if result, err := r.read(ctx); ctx.Err() == nil {
			r.reads.WithLabelValues(result).Inc()
			r.logOutcome(err)
		}
	}
	return nil
}

// read passes the verdict to the observer, if there is one.
func (r *VerdictReader) read(ctx context.Context) (result string, err error) {
	ctx, cancel := context.WithTimeout(ctx, readVerdictTimeout)
	defer cancel()
	data, err := r.rdb.Get(ctx, r.key).Bytes()
	switch {
	case errors.Is(err, redis.Nil):
		return "none", nil
	case err != nil:
		return "error", fmt.Errorf("read the hot-key verdict %s: %w", r.key, err)
	}
	v, err := DecodeVerdict(data)
	if err != nil {
		return "bad", fmt.Errorf("%s: %w", r.key, err)
	}
	r.to.Observe(v)
	return "ok", nil
}

// logOutcome logs the first failure and the first success after it.
func (r *VerdictReader) logOutcome(err error) {
	switch failing := err != nil; {
	case failing == r.failing:
	case failing:
		r.log.Warn("the hot-key verdict can't be read; own request rates still promote", "err", err)
	default:
		r.log.Info("the hot-key verdict is read again")
	}
	r.failing = err != nil
}
