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
	"rankcache/wire"
)

// Limits of a verdict that is read from Redis.
const (
	maxVerdictBytes  = 256 << 10
	maxVerdictBoards = 1000
)

const verdictVersion = 1 // the format version that is written; others are refused

// Verdict is the result of one poll of a server-side source, shared with the fleet through Redis. It is immutable.
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

// DecodeVerdict parses the result of [Verdict.Encode]; an error for bad or too long data or another version.
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

const exchangeTimeout = 500 * time.Millisecond // bounds one read of the verdict

// Observer receives verdicts; a [Tracker] is one.
type Observer interface {
	// Observe is called with every verdict that was read, often the same again.
	Observe(Verdict)
}

// VerdictReader passes the fleet's verdict in Redis to an [Observer], and sends this process's reports.
type VerdictReader struct {
	rdb     redis.Cmdable
	verdict string // Redis key
	reports string // Redis key of the hash of reports
	id      string // of this process
	to      Observer
	log     *slog.Logger
	reads   *prometheus.CounterVec
	failing bool // the last read failed, which was logged
}

// NewVerdictReader returns a reader for a process with an id unique in the fleet. The caller closes rdb.
func NewVerdictReader(rdb redis.Cmdable, names wire.Names, instance, id string, to Observer, log *slog.Logger, reg prometheus.Registerer) *VerdictReader {
	set := metric.New(reg, "hot_")
	defer set.Must()
	return &VerdictReader{rdb: rdb, verdict: names.HotKey(instance), reports: names.ReadsKey(instance), id: id, to: to, log: log,
		reads: set.Counters("verdict_reads_total", "Reads of the fleet's hot-key verdict, by result.", "result")}
}

// Exchange sends a report, if any, and passes the newest verdict to the observer. One call at a time.
func (r *VerdictReader) Exchange(ctx context.Context, report []byte) {
	if result, err := r.exchange(ctx, report); ctx.Err() == nil {
		r.reads.WithLabelValues(result).Inc()
		r.logOutcome(err)
	}
}

func (r *VerdictReader) exchange(ctx context.Context, report []byte) (result string, err error) {
	ctx, cancel := context.WithTimeout(ctx, exchangeTimeout)
	defer cancel()
	pipe := r.rdb.Pipeline()
	get, sent := pipe.Get(ctx, r.verdict), &redis.IntCmd{}
	if report != nil {
		sent = pipe.HSet(ctx, r.reports, r.id, report)
		pipe.PExpire(ctx, r.reports, reportsLive)
	}
	_, _ = pipe.Exec(ctx) // each command has its own error
	data, err := get.Bytes()
	switch {
	case errors.Is(err, redis.Nil):
		return "none", nil
	case err != nil:
		return "error", fmt.Errorf("read the hot-key verdict %s: %w", r.verdict, err)
	}
	v, err := DecodeVerdict(data)
	if err != nil {
		return "bad", fmt.Errorf("%s: %w", r.verdict, err)
	}
	r.to.Observe(v)
	if err := sent.Err(); err != nil {
		return "ok", fmt.Errorf("report the boards that are read here to %s: %w", r.reports, err)
	}
	return "ok", nil
}

// logOutcome logs the first failure and the first success after it.
func (r *VerdictReader) logOutcome(err error) {
	switch failing := err != nil; {
	case failing == r.failing:
	case failing:
		r.log.Warn("this sidecar is cut off from the fleet's hot keys; own request rates still promote", "err", err)
	default:
		r.log.Info("the fleet's hot keys are heard of again")
	}
	r.failing = err != nil
}
