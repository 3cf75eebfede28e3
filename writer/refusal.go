package writer

import (
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/wire"
)

// Refusal is the reason why a command is not applied. Reason is one of a few fixed words, usable as a metric label;
// those from "board" to "at" name a field of the command, "field" is one that should not be there.
type Refusal struct {
	Reason string // size, json, field, board, class, dims, room, member, op, delta, score, order, at, data; blocked, score_range, unknown_class and more
	Err    error
}

func (r *Refusal) Error() string { return "command refused (" + r.Reason + "): " + r.Err.Error() }

// Unwrap returns the cause.
func (r *Refusal) Unwrap() error { return r.Err }

// refusals are those that the scripts give.
var refusals = map[string]*Refusal{
	"score_range":    {"score_range", errScoreRange},
	"C":              {"guard", errors.New("the member was changed more often than the guard of the board's class allows; nothing was changed")},
	"G":              {"guard", errors.New("the member would gain more than the guard of the board's class allows; nothing was changed")},
	"S":              {"guard", errors.New("it was refused when it was read before, and may not be accepted when it is read again")},
	"M":              {"guard", errors.New("the board has as many members as the guard of its class allows; nothing was changed")},
	"order_conflict": {"order_conflict", errors.New("the order id was used for another op, member, number, group or data: use a new one for each change")},
	"too_old":        {"too_old", errors.New("at is so long ago that the order id may be forgotten; it is not known whether the command was applied: read the score before you repeat it with a new order id")},
	"primed":         {"prime", errors.New("the board has all of its primes, or was begun after its sources and gets none")},
	"hidden_full":    {"hidden_full", fmt.Errorf("the board hides %d members, or %d have been hidden; nothing was changed", wire.MaxHidden, wire.MaxHidings)},
	"ended":          {"ended", errors.New("the board's period has ended and its result stands; nothing was changed")},
	"early":          {"early", errors.New("at is more than a minute ahead of the clock of the writer, or of Kafka: check that of the sender")},
}

// errScoreRange refuses what a double would round, or has no room beside for a tie-break.
var errScoreRange = fmt.Errorf("the score would be beyond %d, or beyond %d where ties are ranked by first or last; nothing was changed", int64(maxScore), int64(wire.MaxTieScore))

// maxScore is the highest score, and its negative the lowest: a double has all whole
// numbers up to it, so that none is rounded.
const maxScore = 1<<53 - 1

// errMeta refuses commands of a board whose meta another version has written.
var errMeta = &Refusal{"type", errors.New("the board's meta can't be read: check that nothing else uses the key, and that all writers are of one version")}

var errBlocked = &Refusal{"blocked", errors.New("the operator has blocked this board or its room")}

var errHides = &Refusal{"hide", errors.New("the board hides members, which boards that are trimmed or have data can't: take that out of the class, restore the members, and set it again")}

func badReply(reply string) error {
	return &Refusal{"type", fmt.Errorf("%.80q is no record of an order: check that nothing else uses the key names", reply)}
}

// asRefusal returns the refusal in err, or one for errors that no retry can mend: a
// key of the board has another type. So one board is refused, and others are not held up.
func asRefusal(err error) *Refusal {
	if r, ok := errors.AsType[*Refusal](err); ok {
		return r
	}
	if _, ok := errors.AsType[redis.Error](err); ok && strings.Contains(err.Error(), "WRONGTYPE") {
		return &Refusal{"type", fmt.Errorf("a key of another type is where one of the board is expected: %w", err)}
	}
	return nil
}

// refusesWrites returns the reply by which Redis tells that it takes no writes now: it can't save, has too few
// replicas, is full, or does not let this user.
func refusesWrites(err error) error {
	reply, _ := errors.AsType[redis.Error](err)
	for _, prefix := range []string{"MISCONF", "NOREPLICAS", "OOM", "NOPERM"} {
		if reply != nil && strings.HasPrefix(reply.Error(), prefix) {
			return reply
		}
	}
	return nil
}

func unavailable(err error) error {
	return fmt.Errorf("%w: changing scores: %w: check that Redis is up, writable and not full", rankcache.ErrUnavailable, err)
}

// errNotAcked reports that Redis took a command and Kafka did not yet take its update.
var errNotAcked = errors.New("the score is changed but Kafka did not acknowledge the update")

// errNotRecorded reports that Kafka did not take a command that is to be in the command topic before it is applied.
var errNotRecorded = errors.New("the command is not applied, as Kafka did not acknowledge it")

var errClosed = errors.New("the writer is stopping")

// errUnfit reports that the command topic does not keep what durable classes need.
var errUnfit = errors.New("posts of durable classes are refused")
