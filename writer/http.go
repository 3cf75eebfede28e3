package writer

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"rankcache/internal/httpserve"
	"rankcache/wire"
)

func (p *poster) handler() http.Handler {
	mux := http.NewServeMux()
	handle := func(route string, answer http.HandlerFunc) {
		mux.HandleFunc(route, answer)
		method, path, _ := strings.Cut(route, " ")
		mux.HandleFunc(path, func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Allow", method)
			problem(http.StatusMethodNotAllowed, "method_not_allowed", "Method not allowed", "want "+method).Write(rw)
		})
	}
	several := func(decode func([]byte) ([]json.RawMessage, error)) http.HandlerFunc {
		return func(rw http.ResponseWriter, r *http.Request) { p.postSeveral(rw, r, decode) }
	}
	handle("POST /v1/scores", p.postScore)
	handle("POST /v1/scores:batch", several(decodeBatch))
	handle("POST /v1/scores:delete", several(decodeDelete))
	handle("POST /v1/members:hide", p.postMove(wire.OpHide))
	handle("POST /v1/members:restore", p.postMove(wire.OpRestore))
	handle("POST "+ForgetPath, p.postForget)
	handle("GET /v1/status", statusPage{p.processor}.ServeHTTP)
	mux.HandleFunc("/", func(rw http.ResponseWriter, _ *http.Request) {
		problem(http.StatusNotFound, "unknown_path", "No such resource", "want POST /v1/scores, /v1/scores:batch, /v1/scores:delete, /v1/members:hide, /v1/members:restore, /v1/members:forget or GET /v1/status").Write(rw)
	})
	return httpserve.CheckOrigin(mux)
}

func (p *poster) postScore(rw http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), p.time)
	defer cancel()
	if body, ok := readJSON(rw, r, MaxCommandLen); ok {
		answer, err := p.doOne(ctx, body)
		reply(rw, answer, err)
	}
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
