package writer

import (
	"context"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"rankcache"
	"rankcache/internal/httpserve"
	"rankcache/wire"
)

// Limits of POST /v1/scores:batch and :delete.
const (
	maxPosts    = 100       // commands
	maxBatchLen = 256 << 10 // bytes
)

// readJSON returns the body of a request, or answers it with a problem.
func readJSON(rw http.ResponseWriter, r *http.Request, limit int64) (body []byte, ok bool) {
	if !isJSON(r.Header.Get("Content-Type")) {
		problem(http.StatusUnsupportedMediaType, "unsupported_media_type", "Unsupported media type", "want Content-Type: application/json").Write(rw)
		return nil, false
	}
	body, err := io.ReadAll(http.MaxBytesReader(rw, r.Body, limit))
	if err != nil {
		httpserve.BodyProblem(err).Write(rw)
	}
	return body, err == nil
}

// isJSON reports whether a Content-Type is application/json. Other types a page of
// another site may send without asking first.
func isJSON(contentType string) bool {
	media, params, err := mime.ParseMediaType(contentType)
	charset, ok := params["charset"]
	return err == nil && media == "application/json" && (!ok || strings.EqualFold(charset, "utf-8"))
}

// reply answers a request, with the problem of an error if there is one.
func reply(rw http.ResponseWriter, answer []byte, err error) {
	if err != nil {
		problemOf(err).Write(rw)
		return
	}
	rw.Header().Set("Content-Type", "application/json")
	_, _ = rw.Write(append(answer, '\n')) // the caller may have gone
}

// doOne takes a command all the way.
func (p *poster) doOne(ctx context.Context, command []byte) ([]byte, error) {
	done := p.doAll(ctx, []json.RawMessage{command})[0]
	if done.err != nil {
		return nil, done.err
	}
	return appendAnswer(nil, &done), nil
}

// postSeveral answers {"results":[…]}: for each command {"result":…} as POST /v1/scores, or {"problem":…}.
func (p *poster) postSeveral(rw http.ResponseWriter, r *http.Request, decode func([]byte) ([]json.RawMessage, error)) {
	ctx, cancel := context.WithTimeout(r.Context(), p.time)
	defer cancel()
	if body, ok := readJSON(rw, r, maxBatchLen); ok {
		answer, err := p.doSeveral(ctx, body, decode)
		reply(rw, answer, err)
	}
}

// doSeveral takes the commands of a body all the way. The error is a [*Refusal] of all of them.
func (p *poster) doSeveral(ctx context.Context, body []byte, decode func([]byte) ([]json.RawMessage, error)) ([]byte, error) {
	commands, err := decode(body)
	if err != nil {
		return nil, err
	}
	return appendResults(nil, p.doAll(ctx, commands)), nil
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

// appendAnswer is the update, with the score that is shown, and the fields for this caller alone.
func appendAnswer(dst []byte, p *posted) []byte {
	dst = wire.AppendShownUpdate(dst, &p.Update)
	dst = append(dst[:len(dst)-1], `,"state":"`...)
	dst = append(dst, p.Update.State().String()...)
	dst = append(dst, `","duplicate":`...)
	dst = strconv.AppendBool(dst, p.toPost().Duplicate)
	if len(p.fed) > 0 {
		dst = appendFed(append(dst, `,"fed":`...), p.fed)
	}
	return append(dst, '}')
}

// appendFed appends what became of the boards that a command feeds.
func appendFed(dst []byte, fed []*job) []byte {
	type answer struct {
		Board   rankcache.BoardID `json:"board"`
		Score   *float64          `json:"score,omitempty"`
		Seq     uint64            `json:"seq,omitempty"`
		Refused string            `json:"refused,omitempty"`
	}
	answers := make([]answer, len(fed))
	for i, f := range fed {
		if answers[i].Board = f.Board; f.Refusal != nil {
			answers[i].Refused = problemOf(f.Refusal).Code
		} else {
			score := f.Update.Form.Shown(f.Update.Score)
			answers[i].Score, answers[i].Seq = &score, f.Update.Seq
		}
	}
	text, _ := json.Marshal(answers) // finite numbers and strings
	return append(dst, text...)
}
