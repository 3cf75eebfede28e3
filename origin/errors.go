package origin

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/redis/go-redis/v9"

	"rankcache"
)

// notNow begins the answers of a Redis that is up but can't serve at the
// moment; it is as unavailable as one that can't be reached.
var notNow = []string{"LOADING", "CLUSTERDOWN", "MASTERDOWN", "TRYAGAIN", "BUSY ", "max number of clients"}

// explain says what an error of the client means: the caller went away, Redis
// refused (its text is kept), or it could not be asked in time.
func explain(ctx context.Context, op string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(ctx.Err(), context.Canceled):
		return fmt.Errorf("redis %s: %w", op, context.Cause(ctx))
	case refused(err):
		return fmt.Errorf("redis %s: %w", op, err)
	}
	return fmt.Errorf("redis %s: %w: %w: check that the address of Redis is right, that it is up, not overloaded, and the time-out long enough",
		op, rankcache.ErrUnavailable, err)
}

// refused reports whether Redis itself answered the error (WRONGTYPE, NOPERM,
// NOAUTH, ...), or what it answered is not what a board looks like.
func refused(err error) bool {
	var bad *badReply
	if errors.As(err, &bad) {
		return true
	}
	var answer redis.Error
	return errors.As(err, &answer) && !slices.ContainsFunc(notNow, func(prefix string) bool {
		return redis.HasErrorPrefix(err, prefix)
	})
}

// badReply is an answer that can't be what the key is supposed to hold.
type badReply struct {
	key  string
	what string
}

func (e *badReply) Error() string {
	return fmt.Sprintf("key %q %s: check that the key names are right and that only a writer changes it", e.key, e.what)
}

// firstError returns what went wrong first in a transaction. What its client
// returns as a whole, err, may hide that: "no such key" is no error here but may
// come before one, and a refused command shows as "the transaction was aborted".
func firstError(cmds []redis.Cmder, err error) error {
	if err == nil || !errors.Is(err, redis.Nil) && !isAborted(err) {
		return err
	}
	for _, cmd := range cmds {
		if e := cmd.Err(); e != nil && !errors.Is(e, redis.Nil) && !isAborted(e) {
			return e
		}
	}
	if isAborted(err) {
		return err
	}
	return nil
}

func isAborted(err error) bool { return redis.HasErrorPrefix(err, "EXECABORT") }

// isNoScript reports whether Redis has lost, or never had, a script.
func isNoScript(err error) bool { return redis.HasErrorPrefix(err, "NOSCRIPT") }
