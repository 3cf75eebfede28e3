package writer

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"rankcache"
	"rankcache/wire"
)

// Limits of POST /v1/scores:batch and :delete.
const (
	maxPosts    = 100       // commands
	maxBatchLen = 256 << 10 // bytes
)

// postBatch answers {"results":[…]}: for each command {"result":…} as POST /v1/scores, or {"problem":…}.
func (p *poster) postBatch(rw http.ResponseWriter, r *http.Request) {
	p.postSeveral(rw, r, decodeBatch)
}

// postDelete does the same for the members of {"order":…,"board":…,"members":[…]}.
func (p *poster) postDelete(rw http.ResponseWriter, r *http.Request) {
	p.postSeveral(rw, r, decodeDelete)
}

func (p *poster) postSeveral(rw http.ResponseWriter, r *http.Request, decode func([]byte) ([]json.RawMessage, error)) {
	ctx, cancel := context.WithTimeout(r.Context(), p.time)
	defer cancel()
	body, ok := readJSON(rw, r, maxBatchLen)
	if !ok {
		return
	}
	answer, err := p.doSeveral(ctx, body, decode)
	if err != nil {
		problemOf(err).Write(rw)
		return
	}
	rw.Header().Set("Content-Type", "application/json")
	_, _ = rw.Write(append(answer, '\n')) // the caller may have gone
}

// doSeveral takes the commands of a body all the way. The error is a [*Refusal] of all of them.
func (p *poster) doSeveral(ctx context.Context, body []byte, decode func([]byte) ([]json.RawMessage, error)) ([]byte, error) {
	commands, err := decode(body)
	if err != nil {
		return nil, err
	}
	return appendResults(nil, p.doAll(ctx, commands)), nil
}

// decodeBatch returns the commands of a body, undecoded. The error is a [*Refusal].
func decodeBatch(body []byte) ([]json.RawMessage, error) {
	var batch struct {
		Commands []json.RawMessage `json:"commands"`
	}
	if err := wire.DecodeStrict(body, &batch); err != nil {
		return nil, badJSON(err)
	}
	if n := len(batch.Commands); n == 0 || n > maxPosts {
		return nil, &Refusal{"commands", fmt.Errorf("%d commands, want 1 to %d", n, maxPosts)}
	}
	return batch.Commands, nil
}

// decodeDelete returns commands that delete a body's members, each with its order id. The error is a [*Refusal].
func decodeDelete(body []byte) ([]json.RawMessage, error) {
	var all struct {
		Board   string            `json:"board"`
		Class   string            `json:"class"`
		Dims    map[string]string `json:"dims"`
		Room    string            `json:"room"`
		Members []string          `json:"members"`
		Order   string            `json:"order"`
		At      int64             `json:"at"`
	}
	if err := wire.DecodeStrict(body, &all); err != nil {
		return nil, badJSON(err)
	}
	if n := len(all.Members); n == 0 || n > maxPosts {
		return nil, &Refusal{"members", fmt.Errorf("%d members, want 1 to %d", n, maxPosts)}
	}
	if err := wire.CheckOrderID(all.Order); err != nil {
		return nil, &Refusal{"order", err}
	}
	commands := make([]json.RawMessage, len(all.Members))
	for i, member := range all.Members {
		commands[i], _ = json.Marshal(&wire.Command{Board: all.Board, Class: all.Class, Dims: all.Dims, Room: all.Room, // numbers and strings
			Member: member, Op: wire.OpDelete.String(), Order: orderOf(all.Order, member), At: all.At})
	}
	return commands, nil
}

// orderOf is the order id of one member's part of a change of several.
func orderOf(id, member string) string { return id + "/" + member }

// spreadOrders gives members' commands order ids of their own: an order is one member's change.
func spreadOrders(posts []posted) {
	type order struct {
		board rankcache.BoardID
		id    string
	}
	first, spread := make(map[order]string, len(posts)), make(map[order]bool)
	for _, p := range posts {
		if p.err != nil {
			continue
		}
		o := order{p.Board, p.OrderID}
		if member, ok := first[o]; !ok {
			first[o] = p.Member
		} else if member != p.Member {
			spread[o] = true
		}
	}
	for i := range posts {
		p := &posts[i]
		if p.err != nil || !spread[order{p.Board, p.OrderID}] {
			continue
		}
		p.OrderID, p.spread = orderOf(p.OrderID, p.Member), true
		if err := wire.CheckOrderID(p.OrderID); err != nil {
			p.err = &Refusal{"order", err}
		}
	}
}

func appendResults(dst []byte, posts []posted) []byte {
	dst = append(dst, `{"results":[`...)
	for i := range posts {
		post := &posts[i]
		if i > 0 {
			dst = append(dst, ',')
		}
		if post.err == nil {
			dst = appendAnswer(append(dst, `{"result":`...), post)
		} else {
			dst = append(dst, '{')
			if post.spread { // to be posted again with it
				text, _ := json.Marshal(post.OrderID)
				dst = append(append(append(dst, `"order":`...), text...), ',')
			}
			text, _ := json.Marshal(problemOf(post.err)) // strings and a number only
			dst = append(append(dst, `"problem":`...), text...)
		}
		dst = append(dst, '}')
	}
	return append(dst, "]}"...)
}
