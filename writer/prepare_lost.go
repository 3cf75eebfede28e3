package writer

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/internal/masters"
	"rankcache/wire"
	"rankcache/writer/internal/rewind"
)

//go:embed ask.lua
var askSource string

var askScript = redis.NewScript(askSource)

var (
	// errLost tells that commands of a board wait, as Redis may have lost it.
	errLost = errors.New("the board may be lost: its commands wait until rankcache ledger has rebuilt it (check that it runs with --rebuild-lost)")
	// errNotJudged tells that a board can't begin, as it is not known what Redis has lost.
	errNotJudged = errors.New("it is not known yet whether Redis has lost boards: the positions of the command topic are being read")
)

// lostBoards are those that wait for the ledger. It is safe for concurrent use.
type lostBoards struct {
	client redis.UniversalClient
	names  wire.Names
	judged *atomic.Pointer[round] // the rewinder's; nil: there is none

	mu    sync.Mutex // nothing is called under it
	round *round     // in which they were asked for
	on    map[rankcache.BoardID]string
}

// note has a board of a master wait, or not any more.
func (l *lostBoards) note(of *round, b rankcache.BoardID, tag string, waits bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.round != of {
		l.round, l.on = of, make(map[rankcache.BoardID]string)
	}
	if delete(l.on, b); waits {
		l.on[b] = tag
	}
}

func (l *lostBoards) among(of *round, jobs []*job) map[string][]rankcache.BoardID {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.round != of || len(l.on) == 0 {
		return nil
	}
	found, seen := make(map[string][]rankcache.BoardID), make(map[rankcache.BoardID]bool)
	for _, j := range jobs {
		if tag, ok := l.on[j.Board]; ok && !seen[j.Board] {
			seen[j.Board] = true
			found[tag] = append(found[tag], j.Board)
		}
	}
	return found
}

func (l *lostBoards) count(of *round) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.round != of {
		return 0
	}
	return len(l.on)
}

func (l *lostBoards) present() *round {
	if l.judged == nil {
		return noRewinds
	}
	return l.judged.Load()
}

// mayBegin returns nil if a board that Redis lacks may begin: the positions are those that were judged, and its master
// is undamaged or the ledger has answered. Else it is errLost, a [*Refusal], or Redis's error.
func (l *lostBoards) mayBegin(ctx context.Context, b rankcache.BoardID, now *round) error {
	tag, err := masters.Of(ctx, l.client, l.names.MetaKey(b))
	if err != nil {
		return err
	}
	return l.ask(ctx, now, tag, b)[0]
}

// ask asks for boards of one master, and notes which wait. It returns an error for each.
func (l *lostBoards) ask(ctx context.Context, now *round, tag string, boards ...rankcache.BoardID) []error {
	args := []any{now.hashes[rewind.Master(tag)].Life}
	for _, b := range boards {
		args = append(args, string(b))
	}
	reply, err := askScript.Run(ctx, l.client, []string{l.names.AppliedKey(tag), l.names.WantedKey(tag), l.names.AnswersKey(tag)}, args...).Result()
	answers, isList := reply.([]any)
	switch {
	case err == nil && reply == "gone":
		err = errNotJudged
	case err == nil && reply != "whole" && (!isList || len(answers) != len(boards)):
		err = badReply(fmt.Sprint(reply))
	}
	errs := make([]error, len(boards))
	for i, b := range boards {
		if errs[i] = err; err == nil && isList {
			errs[i] = answered(answers[i])
		}
		l.note(now, b, tag, errors.Is(errs[i], errLost))
	}
	return errs
}

// answered returns what an answer of the ledger means.
func answered(answer any) error {
	switch answer {
	case "?":
		return errLost
	case wire.AnswerEnded:
		return refusals["ended"]
	}
	return nil
}

// await marks the jobs of boards that still wait, after one question for all of them on a master.
func (l *lostBoards) await(ctx context.Context, jobs []*job) {
	for _, j := range jobs {
		j.waits = false
	}
	now, waits := l.present(), make(map[rankcache.BoardID]bool)
	for tag, boards := range l.among(now, jobs) {
		for part := range slices.Chunk(boards, maxBatch) {
			for i, err := range l.ask(ctx, now, tag, part...) {
				waits[part[i]] = errors.Is(err, errLost)
			}
		}
	}
	for _, j := range jobs {
		j.waits = !j.done && waits[j.Board]
	}
}

// mayBeLost reports whether a board that has no record of an order id may get one from the ledger.
func (l *lostBoards) mayBeLost(ctx context.Context, j *job) (bool, error) {
	now := l.present()
	if !j.rules.asksLedger() || !now.sawDamage() {
		return false, nil
	}
	err := l.mayBegin(ctx, j.Board, now)
	if errors.Is(err, errLost) {
		return true, nil
	}
	if asRefusal(err) != nil {
		err = nil
	}
	return false, err
}
