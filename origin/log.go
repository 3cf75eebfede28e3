package origin

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// logEvery is the least time between two lines of the client library: it writes
// one per failed connection, which are thousands a second while Redis is away.
const logEvery = time.Second

// LogTo makes the client library write to log, at most a line a second, instead
// of to standard error. It is for the whole process: only main calls it.
func LogTo(log *slog.Logger) { redis.SetLogger(&libraryLog{log: log}) }

type libraryLog struct {
	log  *slog.Logger
	last atomic.Int64 // Unix nanoseconds of the latest line
}

// Printf is what the library calls, from any goroutine.
func (l *libraryLog) Printf(ctx context.Context, format string, v ...any) {
	now, last := time.Now().UnixNano(), l.last.Load()
	if now-last >= int64(logEvery) && l.last.CompareAndSwap(last, now) {
		l.log.WarnContext(ctx, fmt.Sprintf(format, v...), "of", "redis client")
	}
}
