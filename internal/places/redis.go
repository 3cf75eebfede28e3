package places

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/internal/masters"
	"rankcache/internal/tick"
)

// scanPage is how many keys, or fields of one, Redis is asked for at a time.
const scanPage = 200

type redisFound struct {
	mu  sync.Mutex // servers of a cluster are asked at once
	all map[string]*Found
	// ends is the latest time at which a key expires, zero: one never does.
	ends   map[string]time.Time
	boards map[rankcache.BoardID]bool
}

func (r *redisFound) add(place, key string, n int64, ttl time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f, end := r.all[place], time.Time{}
	if ttl > 0 {
		end = time.Now().Add(ttl)
	}
	if last := r.ends[place]; f.Count == 0 || !last.IsZero() && (end.IsZero() || end.After(last)) {
		r.ends[place] = end
	}
	f.add(key, time.Time{})
	f.Count += n - 1
}

// note notes a board that has the member.
func (r *redisFound) note(board rankcache.BoardID, its bool) {
	if its {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.boards[board] = true
	}
}

// inRedis walks all keys.
func (f *Finder) inRedis(ctx context.Context, member string) (all []Found, boards []rankcache.BoardID) {
	places := []string{boardSets}
	for _, k := range redisKeys {
		places = append(places, k.place)
	}
	found := redisFound{all: make(map[string]*Found), ends: make(map[string]time.Time), boards: make(map[rankcache.BoardID]bool)}
	for _, place := range places {
		found.all[place] = &Found{Place: place}
	}
	kind := kindOf(f.Names)
	err := masters.Each(ctx, f.Redis, func(ctx context.Context, _ string, node redis.Cmdable) error {
		return f.walk(ctx, node, func(key string) error {
			place, board := kind(key)
			return lookAt(ctx, node, &found, place, board, key, member)
		})
	})
	for _, place := range places {
		one := found.all[place]
		if end := found.ends[place]; one.Count > 0 && end.IsZero() {
			one.Stays = "for ever"
		} else if one.Count > 0 {
			one.Stays = "until " + end.UTC().Format(time.RFC3339)
		}
		if place == orderRecords && one.Count > 0 {
			one.Stays = "two order lives while the board changes, else " + one.Stays
		}
		all = append(all, *one)
	}
	if err != nil {
		return fail(all, err), nil
	}
	return all, slices.Sorted(maps.Keys(found.boards))
}

func (f *Finder) walk(ctx context.Context, node redis.Cmdable, fn func(key string) error) error {
	for cursor := uint64(0); ; {
		keys, next, err := node.Scan(ctx, cursor, "", scanPage).Result()
		for i := 0; err == nil && i < len(keys); i++ {
			err = fn(keys[i])
		}
		if cursor = next; err != nil || cursor == 0 {
			return err
		}
		if !tick.Sleep(ctx, f.Pause) {
			return context.Cause(ctx)
		}
	}
}

// lookAt adds what a key of a place has of a member, in its name too.
func lookAt(ctx context.Context, node redis.Cmdable, found *redisFound, place string, board rankcache.BoardID, key, member string) error {
	if place == "" {
		return nil
	}
	n, err := countIn(ctx, node, place == boardSets, key, member)
	if board != "" && n > 0 && err == nil {
		its := place == boardSets
		if !its {
			its, err = node.HExists(ctx, key, member).Result()
		}
		found.note(board, its)
	}
	if strings.Contains(key, member) {
		n++
	}
	if err != nil || n == 0 {
		return err
	}
	ttl, err := node.PTTL(ctx, key).Result()
	if err == nil {
		found.add(place, key, n, ttl)
	}
	return err
}

// countIn counts what the value of a key has of a member: of a board whether it is on it, else each text with it.
func countIn(ctx context.Context, node redis.Cmdable, board bool, key, member string) (n int64, err error) {
	if board {
		switch err := node.ZScore(ctx, key, member).Err(); {
		case err == nil:
			return 1, nil
		case err == redis.Nil || redis.HasErrorPrefix(err, "WRONGTYPE"): // a key of something else
			return 0, nil
		default:
			return 0, err
		}
	}
	kind, err := node.Type(ctx, key).Result()
	switch {
	case err != nil:
		return 0, err
	case kind == "string":
		value, err := node.Get(ctx, key).Result()
		if err == redis.Nil {
			err = nil
		}
		return countOf(value, member), err
	case kind == "stream":
		return countInStream(ctx, node, key, member)
	}
	scan := map[string]func(ctx context.Context, key string, cursor uint64, match string, count int64) *redis.ScanCmd{"hash": node.HScan, "set": node.SScan, "zset": node.ZScan}[kind]
	for cursor := uint64(0); scan != nil; {
		texts, next, err := scan(ctx, key, cursor, "", scanPage).Result()
		for i := 0; err == nil && i < len(texts); i++ {
			if countOf(texts[i], member) > 0 {
				n++
			}
		}
		if cursor = next; err != nil || cursor == 0 {
			return n, err
		}
	}
	return n, nil
}

// countInStream counts the entries with a member.
func countInStream(ctx context.Context, node redis.Cmdable, key, member string) (n int64, err error) {
	for from := "-"; ; {
		entries, err := node.XRangeN(ctx, key, from, "+", scanPage).Result()
		for _, e := range entries {
			if countOf(fmt.Sprint(e.Values), member) > 0 {
				n++
			}
			from = "(" + e.ID
		}
		if err != nil || len(entries) < scanPage {
			return n, err
		}
	}
}
