package roomsync

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// MaxDynamic is the most entries of the shared hash: every sidecar reads all of
// them every second.
const MaxDynamic = 1000

// Shared holds what operators have said of rooms at run time, as fields and
// values that [rooms.Entry] explains. All methods may be called
// concurrently.
type Shared interface {
	// Key names it to operators.
	Key() string
	// Entries returns all fields and values, which are the caller's.
	Entries(ctx context.Context) (map[string]string, error)
	Put(ctx context.Context, field, value string) error
	// Remove reports whether the field was there.
	Remove(ctx context.Context, field string) (bool, error)
}

// Hash is a [Shared] that is one Redis hash.
type Hash struct {
	client  redis.UniversalClient
	key     string
	timeout time.Duration
}

// NewHash returns the hash under key, each call to which is bounded by timeout.
// The client stays the caller's.
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
		return nil, fmt.Errorf("redis hash %s has %d fields, want at most %d: delete what is not needed", h.key, n, MaxDynamic)
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

// Remove deletes one field.
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
