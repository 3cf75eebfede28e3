package writer

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
)

// Limits of POST /v1/scores:batch.
const (
	maxPosts    = 100       // commands
	maxBatchLen = 256 << 10 // bytes
)

// postBatch answers {"results":[…]} with one element for each command, in their order:
// {"result":…} as POST /v1/scores answers it, or {"problem":…}.
func (p *poster) postBatch(rw http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), p.time)
	defer cancel()
	body, ok := readJSON(rw, r, maxBatchLen)
	if !ok {
		return
	}
	commands, err := decodeBatch(body)
	if err != nil {
		problemOf(err).Write(rw)
		return
	}
	answer := appendResults(nil, p.doAll(ctx, commands))
	rw.Header().Set("Content-Type", "application/json")
	_, _ = rw.Write(append(answer, '\n')) // the caller may have gone
}

// decodeBatch returns the commands of a body, undecoded. The error is a [*Refusal].
func decodeBatch(body []byte) ([]json.RawMessage, error) {
	var batch struct {
		Commands []json.RawMessage `json:"commands"`
	}
	if err := json.Unmarshal(body, &batch); err != nil {
		return nil, badJSON(err)
	}
	if n := len(batch.Commands); n == 0 || n > maxPosts {
		return nil, &Refusal{"commands", fmt.Errorf("%d commands, want 1 to %d", n, maxPosts)}
	}
	return batch.Commands, nil
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
			text, _ := json.Marshal(problemOf(post.err)) // strings and a number only
			dst = append(append(dst, `{"problem":`...), text...)
		}
		dst = append(dst, '}')
	}
	return append(dst, "]}"...)
}
