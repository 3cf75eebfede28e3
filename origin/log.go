package origin

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/wire"
)

// logGrace is how much later than it is to wait Redis may answer, besides the time-out of a round trip.
const logGrace = time.Second

// Log reads the log of changes that writers keep in a master ([wire.LogKey]). Only one goroutine may call Read.
type Log struct {
	*link
	client *redis.Client
	conn   *redis.Conn // of Read, its own: a command there holds up what comes behind it; nil before the first
}

// Log returns the log of the master that has the boards. A client of several servers has none.
func (o *Origin) Log() (*Log, error) {
	client, ok := o.reader.client.(*redis.Client)
	if !ok {
		return nil, errors.New("the log in Redis is one master's, and here are several: want --redis-mode single or sentinel, or Kafka")
	}
	return &Log{link: o.reader.link, client: client}, nil
}

// Read returns up to so many entries behind a place; it waits for one, and returns none if none comes. After an
// error the next call has another connection: what is there may be another log.
func (l *Log) Read(ctx context.Context, after int64, most int, wait time.Duration) (entries []wire.LogEntry, err error) {
	if l.conn == nil {
		l.conn = l.client.Conn()
	}
	bounded, cancel := context.WithTimeout(with(ctx, caller{kind: waits}), wait+logGrace+l.timeout)
	defer cancel()
	streams, err := l.conn.XRead(bounded, &redis.XReadArgs{Streams: []string{wire.LogKey}, ID: wire.LogID(after), Count: int64(most), Block: wait}).Result()
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	if err == nil {
		entries, err = logEntriesOf(streams[0].Messages)
	}
	if err != nil {
		_ = l.conn.Close() // it is of no more use
		l.conn = nil
	}
	return entries, l.explain(ctx, err)
}

// logEntriesOf reads entries. One that no writer has made has no board.
func logEntriesOf(messages []redis.XMessage) ([]wire.LogEntry, error) {
	entries := make([]wire.LogEntry, len(messages))
	for i, m := range messages {
		place, err := wire.LogPlace(m.ID)
		if err != nil {
			return nil, err
		}
		board, _ := m.Values[wire.LogBoard].(string)
		changes, _ := m.Values[wire.LogChanges].(string)
		entries[i] = wire.LogEntry{Place: place, Board: rankcache.BoardID(board), Changes: changes}
	}
	return entries, nil
}

// Ends returns the place of the first entry, and one behind that of the last that there ever was: the same place twice
// if none is left, 1 without a log. Any goroutine may call it.
func (l *Log) Ends(ctx context.Context) (first, end int64, err error) {
	ctx, cancel := context.WithTimeout(with(ctx, caller{}), l.timeout) // of no background: what waits for this reads nothing
	defer cancel()
	info, err := l.client.XInfoStream(ctx, wire.LogKey).Result()
	if redis.HasErrorPrefix(err, "no such key") {
		return 1, 1, nil
	}
	if err == nil {
		end, err = wire.LogPlace(info.LastGeneratedID)
		end++
	}
	if first = end; err == nil && info.FirstEntry.ID != "" {
		first, err = wire.LogPlace(info.FirstEntry.ID)
	}
	return first, end, l.explain(ctx, err)
}

// explain tells what to check where the log can't be read.
func (l *Log) explain(ctx context.Context, err error) error {
	if redis.HasErrorPrefix(err, "WRONGTYPE") {
		return fmt.Errorf("redis log: key %s is no stream: check that nothing else uses it, and delete it", wire.LogKey)
	}
	return explain(ctx, "log", err)
}
