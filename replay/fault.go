package replay

import (
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"rankcache"
)

// fault is a reason to fill a board again, or to look whether that is needed.
type fault struct {
	kind, reason string
	suspected    bool // means that the board may be right: it keeps what it has until Redis was asked
	counted      bool // means that the differences behind it have been counted
}

func faultGone(what string) fault {
	return fault{kind: kindGone, reason: "Redis has no " + what + " of the board any more"}
}

func faultAhead(redis, board uint64) fault {
	return fault{kind: kindAhead,
		reason: fmt.Sprintf("Redis is at update %d, the board at %d: Redis has lost writes or was reset", redis, board)}
}

func faultRefuted(seq uint64) fault {
	return fault{kind: kindRefuted, suspected: true,
		reason: fmt.Sprintf("update %d gives another checksum than it carries: it is of a history that Redis has lost, or the board is wrong", seq)}
}

// faultUnproved is the reason to prove a board that was opened by a sample, while Redis had no checksum of it.
func faultUnproved() fault {
	return fault{kind: kindSum, suspected: true, counted: true, reason: "it was opened by a sample, and now Redis has a checksum"}
}

func faultRun(now, before uint64) fault {
	return fault{kind: kindRun, reason: fmt.Sprintf("the board began again as run %d, it was %d", now, before)}
}

// faultLater is the fault of a board that Redis has in a later run. One that goes on from its seq was added up anew.
func faultLater(redis, board rankcache.State) fault {
	if board.Seq == 0 || redis.Seq < board.Seq {
		return faultRun(redis.Run, board.Run)
	}
	return fault{kind: kindPast,
		reason: fmt.Sprintf("at update %d it was added up anew, as run %d: something has changed it past rankcache", redis.Seq, redis.Run)}
}

func faultRunLost(redis, board uint64) fault {
	return fault{kind: kindRun, reason: fmt.Sprintf("Redis has run %d of the board, the log already %d: Redis has lost writes", redis, board)}
}

func faultSum(redis rankcache.State, sum uint64) fault {
	return fault{kind: kindSum, reason: fmt.Sprintf("at update %d the members add up to %012x, in Redis to %012x", redis.Seq, sum, redis.Sum)}
}

func faultMemory(kept rankcache.State, sum uint64) fault {
	return fault{kind: kindMemory, reason: fmt.Sprintf("at update %d the members add up to %012x, while each change gave %012x: memory was changed", kept.Seq, sum, kept.Sum)}
}

// faultDifferences is the fault of a board whose members differ, which were counted.
func faultDifferences(all []difference) fault {
	return fault{kind: all[0].kind, reason: fmt.Sprintf("%d differences from Redis, such as: %s", len(all), &all[0]), counted: true}
}

func faultOverflow(missing uint64) fault {
	return fault{kind: kindOverflow, reason: fmt.Sprintf("update %d does not come, and no more can wait for it", missing)}
}

// disproof returns a fault if a state of Redis, read after the board had a state, shows that Redis has another history.
func disproof(origin, board rankcache.State) *fault {
	switch {
	case origin.Run == 0:
		return new(faultGone("run"))
	case origin.Run > board.Run:
		return new(faultLater(origin, board))
	case origin.Run < board.Run:
		return new(faultRunLost(origin.Run, board.Run))
	case origin.Seq < board.Seq:
		return new(faultAhead(origin.Seq, board.Seq))
	}
	return nil
}

// claim is the state of one member in an observation.
type claim struct {
	member string
	score  float64
	data   string
	there  bool // on the board
	rank   int  // from 1, best first; 0: not observed
}

// difference is a claim that the board contradicts, or a contradiction that concerns no single member.
type difference struct {
	kind string
	claim
	seq uint64 // of the observation
	why string
}

func (d *difference) String() string {
	if d.why != "" {
		return d.why
	}
	return fmt.Sprintf("member %q differs from Redis (%s)", d.member, d.kind)
}

const auditLogEvery = time.Minute // the shortest time between two log lines about one board's differences

// auditStats is what comparisons of a board with Redis have found. mu is a leaf.
type auditStats struct {
	board   rankcache.BoardID
	metrics *metrics

	mu      sync.Mutex
	found   rankcache.AuditStatus
	warning rate.Sometimes
}

func newAuditStats(board rankcache.BoardID, m *metrics) *auditStats {
	return &auditStats{board: board, metrics: m, warning: rate.Sometimes{Interval: auditLogEvery}}
}

func (s *auditStats) status() rankcache.AuditStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.found
}

// comparison counts a comparison of members; unknown is one that could not be made.
func (s *auditStats) comparison(members int, different, unknown bool, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case unknown:
		s.metrics.checks.WithLabelValues(resultUnknown).Inc()
		s.found.Unknown++
		return
	case different:
		s.metrics.checks.WithLabelValues(resultDifferent).Inc()
	default:
		s.metrics.checks.WithLabelValues(resultEqual).Inc()
	}
	s.metrics.compared.Add(float64(members))
	s.found.At = now
	s.found.Checks++
	s.found.Members += uint64(members)
}

func (s *auditStats) difference(kind, what string, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.found.Differences++
	s.found.Last, s.found.LastAt = what, now
	s.metrics.differences.WithLabelValues(kind).Inc()
}

// differences counts differences that are about to be healed, at least one, and logs the first.
func (s *auditStats) differences(all []difference, log *slog.Logger) {
	now := time.Now()
	for i := range all {
		s.difference(all[i].kind, all[i].String(), now)
	}
	s.warning.Do(func() {
		log.Warn("board differs from Redis and is filled again", "board", s.board, "differences", len(all), "first", all[0].String())
	})
}

// voidFile counts a file that could be read and turned out void.
func (s *auditStats) voidFile(kind string) { s.metrics.voidFiles.WithLabelValues(kind).Inc() }

func (s *auditStats) refill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.found.Rebuilds++
}
