package writer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"rankcache"
	"rankcache/rooms"
	"rankcache/wire"
)

// Members hidden on all boards of a class are in its list, with which each of its boards is born; boards that are there
// get a command each. A writer that makes a board indexes it and then reads the list, a hide changes the list and then
// reads the index: one of them sees it.

const moveAllTimeout = time.Minute // bounds what the boards of a class take

// movedAll is the answer: on how many boards the member is hidden or restored by now, and on which it is not.
type movedAll struct {
	Class   string     `json:"class"`
	Member  string     `json:"member"`
	Serial  uint64     `json:"serial"`
	Hidden  bool       `json:"hidden"`
	Boards  int        `json:"boards"`
	Refused []notMoved `json:"refused,omitempty"`
}

// notMoved is a board that did not take the command; a closed one is not told.
type notMoved struct {
	Board  rankcache.BoardID `json:"board"`
	Code   string            `json:"code"`
	Detail string            `json:"detail"`
}

// moveAll hides or restores a member on all boards of a class.
func (p *poster) moveAll(ctx context.Context, op wire.Op, ask *moveRequest) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, moveAllTimeout)
	defer cancel()
	kind, err := p.mayMoveAll(ctx, op, ask)
	if err != nil {
		return nil, err
	}
	if ask.Serial == 0 {
		ask.Serial = wire.NewSerial(p.applier.now())
	}
	var full *Refusal
	if err := p.retry(ctx, "redis", func() (err error) { full, err = p.applier.list(ctx, op, ask); return err }); err != nil {
		return nil, unavailable(err)
	} else if full != nil {
		return nil, full
	}
	p.log.Info("members of a class: "+op.String(), "class", ask.Class, "member", ask.Member, "reason", ask.Reason, "serial", ask.Serial)
	var boards []rankcache.BoardID
	if err := p.retry(ctx, "redis", func() (err error) { boards, err = p.applier.boardsOf(ctx, kind, ask.Member); return err }); err != nil {
		return nil, unavailable(err)
	}
	answer := movedAll{Class: ask.Class, Member: ask.Member, Serial: ask.Serial, Hidden: op == wire.OpHide}
	for len(boards) > 0 {
		n := min(maxPosts, len(boards))
		if err := p.moveOn(ctx, op, ask, boards[:n], &answer); err != nil {
			return nil, err
		}
		boards = boards[n:]
	}
	text, _ := json.Marshal(&answer) // numbers and strings
	return text, nil
}

// mayMoveAll returns the class, or why its members are not hidden, or not by this caller.
func (p *poster) mayMoveAll(ctx context.Context, op wire.Op, ask *moveRequest) (*rooms.Class, error) {
	kind := p.opts.Tiers.File().Class(ask.Class)
	switch {
	case ask.Board != "" || len(ask.Dims) > 0 || ask.At != 0:
		return nil, &Refusal{"all", errors.New("want class alone beside all")}
	case kind == nil:
		return nil, &Refusal{"unknown_class", fmt.Errorf("class %.60q is neither in the writer's rooms file nor set at run time", ask.Class)}
	case !kind.Calendar().Periodic():
		return nil, &Refusal{"hide", fmt.Errorf("boards of class %s have no period, so that no list has them: hide the member on each", kind.Name())}
	}
	alike := *ask
	alike.Board, alike.Class = "any", ""
	if _, err := DecodeCommand(alike.command(op, max(ask.Serial, 1)), 1); err != nil {
		return nil, err
	}
	if err := mayHide(kind); err != nil {
		return nil, err
	}
	return kind, mayChange(ctx, &job{rules: rules{kind: kind}})
}

// list notes in a class's list that a member is hidden, or restored, unless a later command did. Full: a refusal.
func (a *adopter) list(ctx context.Context, op wire.Op, ask *moveRequest) (*Refusal, error) {
	key := a.names.HiddenListKey(ask.Class)
	have, err := a.client.HGetAll(ctx, key).Result()
	if err != nil {
		return nil, err
	}
	there, hidden := have[ask.Member], 0
	for _, value := range have {
		if !restored(value) {
			hidden++
		}
	}
	switch v, _, _ := wire.ParseHidden(there); {
	case v.Serial > ask.Serial:
		return nil, nil
	case op == wire.OpRestore:
		return nil, a.client.HSet(ctx, key, ask.Member, fmt.Sprintf("%d -", ask.Serial)).Err()
	case there == "" && len(have) >= wire.MaxHidings, (there == "" || restored(there)) && hidden >= wire.MaxHidden:
		return refusals["hidden_full"], nil
	}
	return nil, a.client.HSet(ctx, key, ask.Member, ask.Serial).Err()
}

// restored reports whether a value of the list is that of a member that was restored, "<serial> -".
func restored(value string) bool { return strings.HasSuffix(value, " -") }

// hiddenOf returns the list of a board's class as prepare.lua takes it, of a shard that of its own members.
func (a *adopter) hiddenOf(ctx context.Context, id rankcache.BoardID, r *rules) (pairs []any, err error) {
	if r.kind == nil || r.end == 0 {
		return nil, nil
	}
	board, _ := r.kind.Parse(id)
	if err := mayHide(r.kind); err != nil {
		return nil, nil
	}
	list, err := a.client.HGetAll(ctx, a.names.HiddenListKey(r.kind.Name())).Result()
	for member, serial := range list {
		_, its := board.For(member)
		if _, _, ok := wire.ParseHidden(serial); ok && its && !restored(serial) && rankcache.CheckMember(member) == nil {
			pairs = append(pairs, member, serial)
		}
	}
	return pairs, err
}

// boardsOf returns the boards of a class that are not closed, of split ones the member's shards.
func (a *adopter) boardsOf(ctx context.Context, kind *rooms.Class, member string) (boards []rankcache.BoardID, err error) {
	all, err := a.client.ZRange(ctx, a.names.Ends, 0, -1).Result()
	for _, id := range all {
		b, ok := kind.Parse(rankcache.BoardID(id))
		if _, its := b.For(member); ok && its {
			boards = append(boards, rankcache.BoardID(id))
		}
	}
	return boards, err
}

// moveOn sends the command to some boards.
func (p *poster) moveOn(ctx context.Context, op wire.Op, ask *moveRequest, boards []rankcache.BoardID, answer *movedAll) error {
	commands := make([]json.RawMessage, len(boards))
	for i, b := range boards {
		one := *ask
		one.Board, one.Class = string(b), ""
		commands[i] = one.command(op, ask.Serial)
	}
	for i, done := range p.doAll(ctx, commands) {
		refusal, stands := asRefusal(done.err), ask.Serial
		if done.err == nil && done.Duplicate { // its update is that of then
			var err error
			if stands, err = p.applier.serialOf(ctx, boards[i], ask.Member); err != nil {
				return err
			}
		}
		switch {
		case done.err != nil && refusal == nil:
			return done.err
		case refusal != nil && refusal.Reason != "ended":
			problem := problemOf(refusal)
			answer.Refused = append(answer.Refused, notMoved{boards[i], problem.Code, problem.Detail})
		case refusal != nil:
		case stands != ask.Serial, done.Update.Hiding.Hidden != answer.Hidden:
			answer.Refused = append(answer.Refused, notMoved{boards[i], "later", "a later command stands there"})
		default:
			answer.Boards++
		}
	}
	return nil
}
