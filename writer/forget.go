package writer

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"rankcache"
	"rankcache/wire"
)

// A member is forgotten by a command of each board that has something of it: a delete that every class takes, that
// guards don't count, and with which all goes that the board's keys have by member. On durable boards its reader applies
// it, behind what the topic has of the member: whoever reads the topic again forgets again. The records of orders stay
// for their life: without them a repeat of an earlier command would bring the member back.

// ForgetPath has members forgotten, and [ForgetRight] among the classes of a token is the right to it.
const (
	ForgetPath  = "/v1/members:forget"
	ForgetRight = "members:forget"
)

// forgetKey is of contexts of requests that may forget.
type forgetKey struct{}

var errForgets = &Refusal{"op", errors.New("a member is forgotten by POST " + ForgetPath + ", or a record of the command topic")}

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

// unlist takes a member out of the lists of whom classes hide.
func (a *adopter) unlist(ctx context.Context, member string, tiers Tiers) error {
	for _, kind := range tiers.File().Classes {
		if err := a.client.HDel(ctx, a.names.HiddenListKey(kind.Name()), member).Err(); err != nil {
			return unavailable(err)
		}
	}
	return nil
}
