package hotkey

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"golang.org/x/time/rate"

	"rankcache"
	"rankcache/internal/metric"
	"rankcache/wire"
)

// SourceFleet is the source of a verdict that is made of what the sidecars report. They report while there is one.
const SourceFleet = "fleet"

const FleetEvery = time.Second // the time between two calls of a [Fleet]: sidecars report as often

const (
	// fleetRate lists a board: it is what Tencent's default is.
	fleetRate = 100 // requests/s of the whole fleet
	// maxReadRate is the most that a report of one sidecar counts for a board: ten cores answer as much.
	maxReadRate = 1_000_000        // requests/s
	reportLives = 3 * time.Second  // for how long a report counts that is not followed by another one
	reportsLive = 10 * time.Second // the life in Redis of all reports after the last one
	maxReports  = 10_000           // bounds the memory for them
	// maxReportBytes bounds all of them together: ten thousand of 50 boards with ids of 40 bytes are 21 MB.
	maxReportBytes = 32 << 20
	maxReporter    = 255 // the longest name of a sidecar, in bytes
)

// Fleet is a [Source] that adds up what the sidecars report ([wire.Reads]).
type Fleet struct {
	rdb    redis.Cmdable
	key    string
	names  wire.Names
	log    *slog.Logger
	errLog rate.Sometimes
	capped prometheus.Counter
	known  map[string]known // by sidecar
}

// known is the latest report of a sidecar, and when it was first seen here: the sidecar's clock may be off.
type known struct {
	at   uint64
	seen time.Time
}

// NewFleet returns the source for one Redis instance. It starts nothing; the caller closes rdb.
func NewFleet(rdb redis.Cmdable, names wire.Names, instance string, log *slog.Logger, reg prometheus.Registerer) *Fleet {
	set := metric.New(reg, "hot_")
	defer set.Must()
	return &Fleet{rdb: rdb, key: names.ReadsKey(instance), names: names, log: log, errLog: rate.Sometimes{First: 3, Interval: 10 * time.Second},
		capped: set.Counter("reports_capped_total", "Rates in reports of sidecars that were higher than one can answer, and were counted as the most that it can."),
		known:  make(map[string]known)}
}

func (f *Fleet) Name() string { return SourceFleet }

// Hot returns the boards that all sidecars together are asked for often.
func (f *Fleet) Hot(ctx context.Context) (HotBoards, error) {
	reports, foreign, err := f.read(ctx)
	if err != nil {
		return HotBoards{}, &CallError{"redis", AfterPause, err} // soon again: sidecars end their reports when there is no verdict for some time
	}
	hot, ended := f.add(time.Now(), reports)
	hot.Ignored += foreign
	if len(ended) == 0 {
		return hot, nil
	}
	if err := f.rdb.HDel(ctx, f.key, ended...).Err(); err != nil { // a sidecar that goes on adds its next one again
		f.errLog.Do(func() { f.log.Warn("reports of sidecars that are gone are not deleted", "key", f.key, "err", err) })
	}
	return hot, nil
}

// readScript returns the reports: names and values in turn. It deletes what can be none, and has its name, cut, and its
// length in the place of the value. If there are too many it returns how many, or bytes.
var readScript = redis.NewScript(`
local count, reports, left = redis.call('HLEN', KEYS[1]), {}, tonumber(ARGV[2])
if count > tonumber(ARGV[1]) then
  return { count }
end
for _, id in ipairs(redis.call('HKEYS', KEYS[1])) do
  local length, value = redis.call('HSTRLEN', KEYS[1], id)
  left = left - #id - length
  if #id > tonumber(ARGV[3]) or length > tonumber(ARGV[4]) then
    redis.call('HDEL', KEYS[1], id)
    left, id, value = left + #id + length, string.sub(id, 1, 100), length
  elseif left < 0 then
    return { -1 }
  end
  table.insert(reports, id)
  table.insert(reports, value or redis.call('HGET', KEYS[1], id))
end
return reports`)

// read returns the reports, by sidecar, and how many other values were there, which it has deleted.
func (f *Fleet) read(ctx context.Context) (reports map[string]string, foreign int, err error) {
	all, err := readScript.Run(ctx, f.rdb, []string{f.key}, maxReports, maxReportBytes, maxReporter, wire.MaxReadsLen).Slice()
	switch {
	case err != nil:
		return nil, 0, fmt.Errorf("read the reports in %s: %w", f.key, err)
	case len(all) == 1 && all[0] == int64(-1):
		return nil, 0, fmt.Errorf("the reports in %s have more than %d bytes: check that nothing else uses the key", f.key, maxReportBytes)
	case len(all) == 1:
		return nil, 0, fmt.Errorf("reports of %v sidecars in %s, want at most %d: check that nothing else uses the key", all[0], f.key, maxReports)
	}
	reports = make(map[string]string, len(all)/2)
	for i := 0; i+1 < len(all); i += 2 {
		id, _ := all[i].(string)
		if value, ok := all[i+1].(string); ok {
			reports[id] = value
			continue
		}
		foreign++
		f.errLog.Do(func() {
			f.log.Warn("what is no report of reads is deleted: check that nothing else uses the key", "key", f.key, "sidecar", clip(id), "bytes", all[i+1])
		})
	}
	return reports, foreign, nil
}

// add adds up the reports, and returns the sidecars whose last one is too old.
func (f *Fleet) add(now time.Time, reports map[string]string) (hot HotBoards, ended []string) {
	counts, latest := make(map[rankcache.BoardID]int64), make(map[string]known, len(reports))
	for id, value := range reports {
		r, err := wire.ParseReads(value)
		if err != nil {
			hot.Ignored++
			f.errLog.Do(func() { f.log.Warn("a report of reads is not counted", "key", f.key, "sidecar", clip(id), "err", err) })
		}
		k, ok := f.known[id]
		if !ok || k.at != r.At {
			k = known{r.At, now}
		}
		if now.Sub(k.seen) > reportLives {
			ended = append(ended, id)
			continue
		}
		latest[id] = k
		hot.Ignored += f.count(id, r.Boards, counts)
	}
	f.known = latest
	for b, n := range counts {
		if n >= fleetRate {
			hot.Boards = append(hot.Boards, BoardCount{b, n})
		}
	}
	return hot, ended
}

// count adds a sidecar's report. What can be no board's is ignored, what no sidecar can answer not believed.
func (f *Fleet) count(id string, boards []wire.BoardReads, counts map[rankcache.BoardID]int64) (ignored int) {
	for _, b := range boards {
		if f.names.CheckBoard(b.Board) != nil {
			ignored++
			continue
		}
		if b.Rate > maxReadRate {
			f.capped.Inc()
			f.errLog.Do(func() {
				f.log.Warn("a sidecar reports more reads than it can answer", "sidecar", clip(id), "board", b.Board, "reads_per_s", b.Rate, "counted_as", maxReadRate)
			})
		}
		counts[b.Board] += int64(min(b.Rate, maxReadRate)) // #nosec G115 -- at most maxReadRate
	}
	return ignored
}

// clip shortens a foreign name for the log.
func clip(name string) string { return name[:min(len(name), 100)] }
