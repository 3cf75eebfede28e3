package profile

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"rankcache/wire"
)

// Types of keys that hold profiles.
const (
	RedisString = "string" // the JSON object
	RedisHash   = "hash"   // field and value; the profile is an object of strings
)

// RedisOptions configures where profiles are stored in Redis.
type RedisOptions struct {
	Key        string // a pattern with <member> in it once, such as "profile:<member>"
	Type       string // [RedisString] (also "") or [RedisHash]
	MaxProfile int    // bounds one profile, in bytes, 65,535 at most. 0: [DefaultMaxProfile].
}

// Pipeliner is what [Redis] uses of a go-redis client, which must have ContextTimeoutEnabled.
type Pipeliner interface {
	Pipeline() redis.Pipeliner
}

// Redis is a [Source] that reads one key per member, pipelined.
type Redis struct {
	client        Pipeliner
	before, after string // the key, around the member
	hash          bool
	maxProfile    int
}

// NewRedis returns a source that reads through client, which the caller closes.
func NewRedis(client Pipeliner, opts RedisOptions) (*Redis, error) {
	before, after, ok := strings.Cut(opts.Key, "<member>")
	if !ok || strings.Contains(after, "<member>") {
		return nil, fmt.Errorf("profile key pattern %q: want <member> in it once", opts.Key)
	}
	if opts.Type != "" && opts.Type != RedisString && opts.Type != RedisHash {
		return nil, fmt.Errorf("profile key type %q: want %s or %s", opts.Type, RedisString, RedisHash)
	}
	return &Redis{client, before, after, opts.Type == RedisHash, cmp.Or(opts.MaxProfile, DefaultMaxProfile)}, nil
}

// Load implements [Source].
func (r *Redis) Load(ctx context.Context, members []string, answers []Answer) error {
	pipe := r.client.Pipeline()
	read := make([]func() Answer, len(members))
	for i, member := range members {
		key := r.before + member + r.after
		if r.hash {
			read[i] = r.object(pipe.HGetAll(ctx, key))
		} else {
			read[i] = r.text(pipe.GetRange(ctx, key, 0, int64(r.maxProfile))) // at most one byte more than allowed
		}
	}
	cmds, _ := pipe.Exec(ctx) // the first command's error; each command has its own
	for _, cmd := range cmds {
		if err := cmd.Err(); err != nil && !ofOneKey(err) {
			return fmt.Errorf("profile Redis: %w", err)
		}
	}
	for i := range answers {
		answers[i] = read[i]()
	}
	return nil
}

// ofOneKey reports whether the error concerns one key, as WRONGTYPE does, and not the whole call.
func ofOneKey(err error) bool {
	if _, ok := errors.AsType[redis.Error](err); !ok {
		return false
	}
	return strings.HasPrefix(err.Error(), "WRONGTYPE")
}

func (r *Redis) text(cmd *redis.StringCmd) func() Answer {
	return func() Answer {
		value, err := cmd.Bytes()
		switch {
		case err != nil:
			return Answer{Err: bad(KindValue, "%w", err)}
		case len(value) == 0:
			return Answer{} // GETRANGE of an absent key
		case len(value) <= r.maxProfile && !json.Valid(value):
			return Answer{Err: bad(KindJSON, "value is not JSON")}
		}
		return r.checked(bytes.TrimSpace(value))
	}
}

func (r *Redis) object(cmd *redis.MapStringStringCmd) func() Answer {
	return func() Answer {
		fields, err := cmd.Result()
		switch {
		case err != nil:
			return Answer{Err: bad(KindValue, "%w", err)}
		case len(fields) == 0:
			return Answer{} // HGETALL of an absent key
		}
		object := []byte{'{'}
		for i, name := range slices.Sorted(maps.Keys(fields)) { // the same bytes for the same fields
			if i > 0 {
				object = append(object, ',')
			}
			object = append(wire.AppendString(object, name), ':')
			object = wire.AppendString(object, fields[name])
		}
		return r.checked(append(object, '}'))
	}
}

func (r *Redis) checked(object []byte) Answer {
	if err := checkProfile(object, r.maxProfile); err != nil {
		return Answer{Err: err}
	}
	return Answer{JSON: object}
}
