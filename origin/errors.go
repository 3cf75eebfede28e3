package origin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/wire"
)

// unavailablePrefixes start the error replies of a Redis that is up but can't
// serve at the moment; it counts as unavailable. While a slot moves, masters of a cluster may name each other for it.
var unavailablePrefixes = []string{"LOADING", "MOVED", "ASK", "CLUSTERDOWN", "MASTERDOWN", "TRYAGAIN", "BUSY ", "max number of clients"}

// explain classifies a client's error: canceled, refused by Redis (with its text), or Redis unreachable or late.
func explain(ctx context.Context, op string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(ctx.Err(), context.Canceled):
		return fmt.Errorf("redis %s: %w", op, context.Cause(ctx))
	case redis.HasErrorPrefix(err, "WRONGTYPE"):
		words, _, _ := strings.Cut(err.Error(), " script:") // what follows is of no use to a caller
		return fmt.Errorf("redis %s: %w: %s: check that nothing else uses the key of the board or of its meta", op, rankcache.ErrUnreadable, words)
	case unreadable(err):
		return fmt.Errorf("redis %s: %w: %w", op, rankcache.ErrUnreadable, err)
	case refused(err):
		return fmt.Errorf("redis %s: %w", op, err)
	}
	return fmt.Errorf("redis %s: %w: %w: check that the address of Redis is right, that it is up and not overloaded, and that the time-out is long enough",
		op, rankcache.ErrUnavailable, err)
}

// refused reports whether Redis replied with an error (WRONGTYPE, NOPERM, …) or with what can't be a board's.
func refused(err error) bool {
	var reply redis.Error
	return unreadable(err) || errors.As(err, &reply) && !slices.ContainsFunc(unavailablePrefixes, func(prefix string) bool {
		return redis.HasErrorPrefix(err, prefix)
	})
}

// unreadable reports whether Redis replied with data that can't be a board's.
func unreadable(err error) bool {
	_, bad := errors.AsType[*badReply](err)
	return bad || errors.Is(err, wire.ErrMeta)
}

// badReply reports a reply that does not fit the kind of its key.
type badReply struct {
	key  string
	what string
}

func (e *badReply) Error() string {
	return fmt.Sprintf("key %q %s: check that the key names are right and that only a writer changes it", e.key, e.what)
}

// firstError returns a transaction's first failure, which err may hide behind a missing key or EXECABORT.
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

// atOnce runs reads in one MULTI. A Redis that is full takes no command in there (since 7.0), but reads outside: then
// boards don't change but by removals, and are read by commands one after the other.
func atOnce(ctx context.Context, client redis.UniversalClient, queue func(redis.Pipeliner) error) ([]redis.Cmder, error) {
	cmds, err := client.TxPipelined(ctx, queue)
	full := func(cmd redis.Cmder) bool { return redis.HasErrorPrefix(cmd.Err(), "OOM") }
	if isAborted(err) && slices.ContainsFunc(cmds, full) {
		return client.Pipelined(ctx, queue)
	}
	return cmds, err
}

func isAborted(err error) bool { return redis.HasErrorPrefix(err, "EXECABORT") }

func isNoScript(err error) bool { return redis.HasErrorPrefix(err, "NOSCRIPT") }
