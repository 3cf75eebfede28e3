package writer

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"rankcache"
	"rankcache/rooms"
	"rankcache/wire"
)

// moveRequest is the body of a hide or restore.
type moveRequest struct {
	Board  string            `json:"board"`
	Class  string            `json:"class"`
	Dims   map[string]string `json:"dims"`
	All    bool              `json:"all"` // boards of the class
	Room   string            `json:"room"`
	Member string            `json:"member"`
	Reason string            `json:"reason"`
	Serial uint64            `json:"serial"`
	At     int64             `json:"at"`
}

// command returns the command with a serial.
func (r *moveRequest) command(op wire.Op, serial uint64) []byte {
	text, _ := json.Marshal(&wire.Command{Board: r.Board, Class: r.Class, Dims: r.Dims, Room: r.Room, Member: r.Member, // strings and numbers
		Reason: r.Reason, Op: op.String(), Order: wire.HideOrder(serial, r.Member), At: r.At})
	return text
}

// postMove answers POST /v1/members:hide or :restore.
func (p *poster) postMove(op wire.Op) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		if body, ok := readJSON(rw, r, MaxCommandLen); ok {
			answer, err := p.doMove(r.Context(), op, body)
			reply(rw, answer, err)
		}
	}
}

func (p *poster) doMove(ctx context.Context, op wire.Op, body []byte) ([]byte, error) {
	var ask moveRequest
	if err := wire.DecodeStrict(body, &ask); err != nil {
		return nil, badJSON(err)
	}
	if most := wire.NewSerial(p.applier.now().Add(24 * time.Hour)); ask.Serial > most {
		return nil, &Refusal{"order", fmt.Errorf("serial %d is more than a day ahead, and nothing could come after it: leave it out, or make it of the time in Unix milliseconds times 1024", ask.Serial)}
	}
	if ask.All {
		return p.moveAll(ctx, op, &ask)
	}
	ctx, cancel := context.WithTimeout(ctx, p.time)
	defer cancel()
	if ask.Serial == 0 {
		if err := p.choose(ctx, op, &ask); err != nil {
			return nil, err
		}
	}
	return p.doOne(ctx, ask.command(op, ask.Serial))
}

// choose gives the request a serial above that which stands.
func (p *poster) choose(ctx context.Context, op wire.Op, ask *moveRequest) error {
	now := p.applier.now()
	first := wire.NewSerial(now)
	j, err := p.accept(ask.command(op, first), now.UnixMilli(), now)
	if err != nil {
		return err
	}
	return p.retry(ctx, "redis", func() error {
		stands, err := p.applier.serialOf(ctx, j.Board, j.Member)
		ask.Serial = max(first, stands+1)
		return err
	})
}

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
	if err := p.retry(ctx, "redis", func() (err error) { full, err = p.applier.list(ctx, op, ask.Class, ask.Member, ask.Serial); return err }); err != nil {
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

// A member is forgotten by a command of each board that has something of it: a delete that every class takes, that
// guards don't count, and with which all goes that the board's keys have by member. On durable boards its reader applies
// it, behind what the topic has of the member: whoever reads the topic again forgets again. The records of orders stay
// for their life: without them a repeat of an earlier command would bring the member back.

// forgetRequest is the body of POST /v1/members:forget.
type forgetRequest struct {
	Member string   `json:"member"`
	Reason string   `json:"reason"`
	Boards []string `json:"boards"`
	Lists  bool     `json:"lists"` // of whom classes hide: take the member out
}

// postForget answers as a batch does, with one element for each board.
func (p *poster) postForget(rw http.ResponseWriter, r *http.Request) {
	if classes, limited := AllowedClasses(r.Context()); limited && !slices.Contains(classes, ForgetRight) {
		problemOf(&Refusal{"class_not_allowed", fmt.Errorf("the token has no right to forget members: want one of the class tokens with %s among its classes", ForgetRight)}).Write(rw)
		return
	}
	ctx, cancel := context.WithTimeout(context.WithValue(r.Context(), forgetKey{}, true), p.time)
	defer cancel()
	var ask forgetRequest
	p.postSeveral(rw, r.WithContext(ctx), func(body []byte) ([]json.RawMessage, error) {
		commands, err := ask.decode(body)
		if err == nil && ask.Lists {
			err = p.retry(ctx, "redis", func() error { return p.applier.unlist(ctx, ask.Member, p.opts.Tiers) })
		}
		return commands, err
	})
}

// decode returns the commands of a body. The error is a [*Refusal].
func (ask *forgetRequest) decode(body []byte) ([]json.RawMessage, error) {
	if err := wire.DecodeStrict(body, ask); err != nil {
		return nil, badJSON(err)
	}
	if n := len(ask.Boards); n > maxPosts || n == 0 && !ask.Lists {
		return nil, &Refusal{"boards", fmt.Errorf("%d boards, want 1 to %d", n, maxPosts)}
	}
	if err := rankcache.CheckMember(ask.Member); err != nil {
		return nil, &Refusal{"member", err}
	}
	order := "forget/" + rand.Text()
	commands := make([]json.RawMessage, len(ask.Boards))
	for i, board := range ask.Boards {
		commands[i], _ = json.Marshal(&wire.Command{Board: board, Member: ask.Member, Op: wire.OpForget.String(), Order: order, Reason: ask.Reason}) // strings
	}
	return commands, nil
}
