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

// Limits of the shared hash: every sidecar reads all of it every second.
const (
	MaxDynamic  = 1000                       // rooms and boards
	MaxBypasses = 100                        // boards that are bypassed by name
	maxFields   = MaxDynamic + 3*MaxBypasses // more than both: bypasses that have ended stay until the next one is set
)

// Shared stores the rooms set at run time, as fields and values of [rooms.Entry]. Safe for concurrent use.
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

// NewHash returns the hash at key; timeout limits each call. The caller closes the client.
func NewHash(client redis.UniversalClient, key string, timeout time.Duration) *Hash {
	return &Hash{client, key, timeout}
}

func (h *Hash) Key() string { return h.key }

// Entries reads the hash, unless it has more fields than the limits allow.
func (h *Hash) Entries(ctx context.Context) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, h.timeout)
	defer cancel()
	switch n, err := h.client.HLen(ctx, h.key).Result(); {
	case err != nil:
		return nil, h.explain(err)
	case n == 0:
		return nil, nil
	case n > maxFields:
		return nil, fmt.Errorf("redis hash %s has %d fields, want at most %d: delete unused ones", h.key, n, maxFields)
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

// ErrNoHash reports that the key has another type, so that nothing is set at run time.
var ErrNoHash = errors.New("its key holds no hash, so nothing is set at run time: delete the key and set the rooms again")

func (h *Hash) explain(err error) error {
	switch {
	case err == nil:
		return nil
	case redis.HasErrorPrefix(err, "WRONGTYPE"):
		return fmt.Errorf("redis hash %s: %w: %w", h.key, ErrNoHash, err)
	case redis.HasErrorPrefix(err, "READONLY"):
		return fmt.Errorf("redis hash %s: this Redis is a replica: set it in the writing region: %w", h.key, err)
	}
	return fmt.Errorf("redis hash %s: %w", h.key, err)
}

// BadEntry is a field of the hash that is ignored.
type BadEntry struct {
	Field  string `json:"field"`
	Reason string `json:"reason"`
}

// dynamic is what is set at run time, by field of the hash. It is replaced, never changed.
type dynamic struct {
	entries  map[string]rooms.Entry
	bypasses map[string]rooms.Bypass // those that have ended, too
}

// clone returns a copy that may be changed.
func (d dynamic) clone() dynamic {
	c := dynamic{make(map[string]rooms.Entry, len(d.entries)+1), make(map[string]rooms.Bypass, len(d.bypasses)+1)}
	maps.Copy(c.entries, d.entries)
	maps.Copy(c.bypasses, d.bypasses)
	return c
}

// parse returns what is valid in the hash, and what is not.
func (s *files) parse(fields map[string]string) (d dynamic, bad []BadEntry) {
	d = dynamic{make(map[string]rooms.Entry, len(fields)), make(map[string]rooms.Bypass)}
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		err := d.parse(field, fields[field])
		if e, ok := d.entries[field]; ok {
			if err = s.checkEntry(e); err != nil {
				delete(d.entries, field)
			}
		}
		if err != nil {
			bad = append(bad, BadEntry{fmt.Sprintf("%.80s", field), err.Error()})
		}
	}
	return d, bad
}

// checkEntry returns why the entry can't be in force here.
func (s *files) checkEntry(e rooms.Entry) error {
	var f rooms.File
	if e.Room != nil {
		f.Rooms = []rooms.Room{*e.Room}
	} else {
		f.Rules = []rooms.Rule{*e.Rule}
	}
	return s.check(&f)
}

func (d *dynamic) parse(field, value string) error {
	if !rooms.IsBypassField(field) {
		entry, err := parseEntry(field, value)
		if err == nil {
			d.entries[field] = entry
		}
		return err
	}
	b, err := rooms.ParseBypass([]byte(value))
	if err == nil && b.Field() != field {
		err = fmt.Errorf("the value belongs to field %.80q", b.Field())
	}
	if err == nil {
		d.bypasses[field] = b
	}
	return err
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

// fieldOf returns the hash field of a room or a board pattern; exactly one of both must be set.
func fieldOf(uid, match string) (string, error) {
	switch {
	case (uid == "") == (match == ""):
		return "", errors.New("want one of uid and match")
	case uid != "":
		return rooms.RoomField(uid), rooms.CheckUID(uid)
	}
	return rooms.BoardField(match), nil
}
