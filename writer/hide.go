package writer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/class"
	"rankcache/rooms"
	"rankcache/wire"
)

// A hidden member is out of the sorted set; its score is in the hash of hidden members, where it goes on counting. Of
// the commands that hide and restore a member the one with the highest serial stands, in whatever sequence they come.

// maxReasonLen is the longest reason, in bytes.
const maxReasonLen = 200

func isOwn(name string) bool {
	op, err := wire.ParseUpdateOp(name)
	return err == nil && op.Own()
}

// own returns the command to hide, restore or forget a member.
func (w *foreignCommand) own() (*Command, error) {
	op, serial, ok := wire.ParseHide(w.Op, w.Order, w.Member)
	if w.Op == wire.OpForget.String() {
		op, ok = wire.OpForget, true
	}
	switch {
	case !isOwn(w.Op):
		return nil, &Refusal{"field", errors.New("reason is of hide, restore and forget alone: leave it out")}
	case w.Prime:
		return nil, &Refusal{"op", fmt.Errorf("%s of a prime", w.Op)}
	case !rankcache.PlainText(w.Reason, maxReasonLen):
		return nil, &Refusal{"reason", fmt.Errorf("reason: want why, in 1 to %d bytes of UTF-8 without control characters", maxReasonLen)}
	}
	c := &Command{Board: rankcache.BoardID(w.Board), Class: w.Class, Dims: w.Dims, Room: w.Room, Member: w.Member, Op: op, Number: float64(serial), OrderID: w.Order, At: w.At, Reason: w.Reason}
	if err := c.check(); err != nil {
		return nil, err
	}
	if !ok {
		return nil, &Refusal{"order", errors.New("want hide/<serial>/<member>, as POST /v1/members:hide makes it")}
	}
	return c, nil
}

// resolveOwn returns the rules of a board, of a class or of none (nil), for a command to hide, restore or forget a
// member. It is never late or early: a closed board refuses it.
func resolveOwn(c *Command, board class.Board, kind *rooms.Class) (r rules, late *Refusal, err error) {
	if kind == nil {
		return r, nil, nil
	}
	if err := mayHide(kind); err != nil && c.Op.Moves() {
		return r, nil, err
	}
	c.Form, c.HasData = kind.Form, kind.Data
	return rulesOf(board, kind), nil, nil
}

// mayHide returns why nobody can be hidden on boards of a class, or nil.
func mayHide(kind *rooms.Class) error {
	if kind.Data {
		return &Refusal{"hide", fmt.Errorf("members of boards of class %s have data: nobody is hidden there", kind.Name())}
	}
	if kind.Trim > 0 {
		return &Refusal{"hide", fmt.Errorf("boards of class %s keep their best %d members only: nobody is hidden there", kind.Name(), kind.Trim)}
	}
	return nil
}

// mayBeHidden reports whether boards of these features can hide members. One that does, and was given others, is not
// changed: [errHides].
func (f features) mayBeHidden() bool { return !f.Trim && !f.Data }

var errHides = &Refusal{"hide", errors.New("the board hides members, which boards that are trimmed or have data can't: take that out of the class, restore the members, and set it again")}

// audit logs who was hidden or restored, once.
func (p *processor) audit(j *job) {
	if !j.Op.Own() || j.Duplicate {
		return
	}
	done := "member hidden"
	switch {
	case j.Op == wire.OpForget: // nor does the log have who
		p.log.Info("member forgotten", "board", j.Board, "reason", j.Reason, "order", j.OrderID, "seq", j.Update.Seq)
		return
	case uint64(j.Number) != j.Update.Hiding.Serial:
		done = "member stays as it is: a later command stands"
	case j.Op == wire.OpRestore:
		done = "member restored"
	}
	p.log.Info(done, "board", j.Board, "member", j.Member, "reason", j.Reason, "serial", uint64(j.Number), "seq", j.Update.Seq)
}

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
		body, ok := readJSON(rw, r, MaxCommandLen)
		if !ok {
			return
		}
		answer, err := p.doMove(r.Context(), op, body)
		if err != nil {
			problemOf(err).Write(rw)
			return
		}
		rw.Header().Set("Content-Type", "application/json")
		_, _ = rw.Write(append(answer, '\n')) // the caller may have gone
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
	done := p.doAll(ctx, []json.RawMessage{ask.command(op, ask.Serial)})[0]
	if done.err != nil {
		return nil, done.err
	}
	return appendAnswer(nil, &done), nil
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

// serialOf returns the serial of the command that stands for a member; 0: it was never hidden there.
func (a *adopter) serialOf(ctx context.Context, b rankcache.BoardID, member string) (uint64, error) {
	value, err := a.client.HGet(ctx, a.names.CompanionKey(b, wire.Hidden), member).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return 0, unavailable(err)
	}
	v, _, _ := wire.ParseHidden(value)
	return v.Serial, nil
}

// hidingBoards are boards that have, or had, hidden members; they are forgotten beyond some number. It is safe for
// concurrent use.
type hidingBoards struct {
	mu     sync.Mutex // nothing is called under it
	boards map[rankcache.BoardID]bool
}

func (h *hidingBoards) has(b rankcache.BoardID) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.boards[b]
}

func (h *hidingBoards) note(b rankcache.BoardID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.boards == nil || len(h.boards) >= maxBucketCounts {
		h.boards = make(map[rankcache.BoardID]bool)
	}
	h.boards[b] = true
}
