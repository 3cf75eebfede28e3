package keeper

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache/wire"
)

// Value is the states in Redis. Its methods may be called concurrently.
type Value struct {
	Redis    redis.UniversalClient
	Key      string
	Written  string // key of the time at which it was published
	Instance string
	Timeout  time.Duration // of a request
}

var errNone = errors.New("no keeper has published states") // reports that there is no value

// States returns the newest value. It reads no more than the longest value has: another program's may be of any length.
func (v *Value) States(ctx context.Context) (wire.States, error) {
	ctx, cancel := context.WithTimeout(ctx, v.Timeout)
	defer cancel()
	text, err := v.Redis.GetRange(ctx, v.Key, 0, wire.MaxStatesLen).Result()
	if err != nil {
		return wire.States{}, fmt.Errorf("read the keeper's states %s: %w", v.Key, err)
	}
	if text == "" {
		return wire.States{}, errNone
	}
	return wire.ParseStates(text, v.Instance)
}

// publishScript replaces the value if its serial is still ARGV[1], "" for none, and returns the serial found. The time
// beside it has no expiry: replicas elsewhere tell by it how old they are.
var publishScript = redis.NewScript(fmt.Sprintf(`
local serial = redis.call('GETRANGE', KEYS[1], %d, %d)
if serial == ARGV[1] then
	local now = redis.call('TIME')
	redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
	redis.call('SET', KEYS[2], string.format('%%d%%06d', now[1], now[2]))
end
return serial`, wire.SerialFirst, wire.SerialLast))

const ValueLives = time.Minute // for how long a value is kept that no keeper replaces

func (v *Value) serial(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, v.Timeout)
	defer cancel()
	return v.Redis.GetRange(ctx, v.Key, wire.SerialFirst, wire.SerialLast).Result()
}

// replace publishes a value if the serial is still the one before, and returns the one that it found.
func (v *Value) replace(ctx context.Context, before string, value []byte) (found string, err error) {
	ctx, cancel := context.WithTimeout(ctx, v.Timeout)
	defer cancel()
	return publishScript.Run(ctx, v.Redis, []string{v.Key, v.Written}, before, value, ValueLives.Milliseconds()).Text()
}

// written returns when the value was published last, by the clock of its Redis. The error is errNone if it never was.
func (v *Value) written(ctx context.Context) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, v.Timeout)
	defer cancel()
	text, err := v.Redis.GetRange(ctx, v.Written, 0, wire.MaxWrittenLen).Result()
	switch {
	case err != nil:
		return time.Time{}, fmt.Errorf("read the keeper's time %s: %w", v.Written, err)
	case text == "":
		return time.Time{}, errNone
	}
	return wire.ParseWritten(text)
}
