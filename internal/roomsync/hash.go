package roomsync

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache/rooms"
)

// MaxDynamic is the most entries of the shared hash: every sidecar reads all of
// them every second.
const MaxDynamic = 1000

// Shared stores the rooms that operators set at run time, as the fields and values
// of [rooms.Entry]. All methods may be called concurrently.
type Shared interface {
	// Key is its name for operators.
	Key() string
	// Entries returns all fields and values, which are the caller's.
	Entries(ctx context.Context) (map[string]string, error)
	Put(ctx context.Context, field, value string) error
	// Remove reports whether the field existed.
	Remove(ctx context.Context, field string) (bool, error)
}

// Hash is a [Shared] in one Redis hash.
type Hash struct {
	client  redis.UniversalClient
	key     string
	timeout time.Duration
}

// NewHash returns the hash at key; timeout limits each call. The caller closes the
// client.
func NewHash(client redis.UniversalClient, key string, timeout time.Duration) *Hash {
	return &Hash{client, key, timeout}
}

// Key returns the Redis key.
func (h *Hash) Key() string { return h.key }

// Entries reads the hash, unless it has more than [MaxDynamic] fields.
func (h *Hash) Entries(ctx context.Context) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, h.timeout)
	defer cancel()
	switch n, err := h.client.HLen(ctx, h.key).Result(); {
	case err != nil:
		return nil, h.explain(err)
	case n == 0:
		return nil, nil
	case n > MaxDynamic:
		return nil, fmt.Errorf("redis hash %s has %d fields, want at most %d: delete unused ones", h.key, n, MaxDynamic)
	}
	all, err := h.client.HGetAll(ctx, h.key).Result()
	return all, h.explain(err)
}

// Put sets one field.
func (h *Hash) Put(ctx context.Context, field, value string) error {
	ctx, cancel := context.WithTimeout(ctx, h.timeout)
	defer cancel()
	return h.explain(h.client.HSet(ctx, h.key, field, value).Err())
}

// Remove deletes one field and reports whether it existed.
func (h *Hash) Remove(ctx context.Context, field string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, h.timeout)
	defer cancel()
	n, err := h.client.HDel(ctx, h.key, field).Result()
	return n > 0, h.explain(err)
}

func (h *Hash) explain(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("redis hash %s: %w", h.key, err)
}

// BadEntry is a field of the hash that is ignored.
type BadEntry struct {
	Field  string `json:"field"`
	Reason string `json:"reason"`
}

// parseEntries returns the valid entries by field, and the invalid ones.
func parseEntries(fields map[string]string) (entries map[string]rooms.Entry, bad []BadEntry) {
	entries = make(map[string]rooms.Entry, len(fields))
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		entry, err := parseEntry(field, fields[field])
		if err != nil {
			bad = append(bad, BadEntry{fmt.Sprintf("%.80s", field), err.Error()})
			continue
		}
		entries[field] = entry
	}
	return entries, bad
}

func parseEntry(field, value string) (rooms.Entry, error) {
	entry, err := rooms.ParseEntry([]byte(value))
	if err == nil && entry.Field() != field {
		err = fmt.Errorf("the value belongs to field %.80q", entry.Field())
	}
	return entry, err
}

func sameEntry(a, b rooms.Entry) bool {
	if a.Rule != nil || b.Rule != nil {
		return a.Rule != nil && b.Rule != nil && *a.Rule == *b.Rule
	}
	return a.Room.UID == b.Room.UID && a.Room.Mode == b.Room.Mode &&
		(a.Room.Boards == nil) == (b.Room.Boards == nil) && slices.Equal(a.Room.Boards, b.Room.Boards)
}

// fieldOf returns the hash field of a room or a board pattern; exactly one of both
// must be set.
func fieldOf(uid, match string) (string, error) {
	switch {
	case (uid == "") == (match == ""):
		return "", errors.New("want one of uid and match")
	case uid != "":
		return rooms.RoomField(uid), rooms.CheckUID(uid)
	}
	return rooms.BoardField(match), nil
}
