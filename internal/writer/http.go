package writer

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"rankcache/wire"
)

// PostTimeout bounds one posted command, Redis and Kafka together.
const PostTimeout = 5 * time.Second

// errNotAcked says that Redis took a command and Kafka did not yet take its
// update.
var errNotAcked = errors.New("the score is changed but Kafka did not acknowledge the update")

// Handler serves POST /v1/scores: one command as JSON, answered with its update
// and whether the order was applied before. For a super-hot board the answer
// comes when Kafka has acknowledged the update. Errors are
// application/problem+json; after a 503 the same command with the same order
// number is to be posted again.
func (w *Writer) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/scores", w.postScore)
	mux.HandleFunc("/v1/scores", func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Allow", http.MethodPost)
		writeProblem(rw, problem{http.StatusMethodNotAllowed, "method_not_allowed", "Method not allowed", "want POST", ""})
	})
	mux.HandleFunc("/", func(rw http.ResponseWriter, _ *http.Request) {
		writeProblem(rw, problem{http.StatusNotFound, "unknown_path", "No such resource", "want POST /v1/scores", ""})
	})
	return mux
}

func (w *Writer) postScore(rw http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), PostTimeout)
	defer cancel()
	body, err := io.ReadAll(http.MaxBytesReader(rw, r.Body, MaxCommandLen))
	if err != nil {
		writeProblem(rw, bodyProblem(err))
		return
	}
	out, err := w.do(ctx, body)
	if err != nil {
		writeProblem(rw, problemOf(err))
		return
	}
	rw.Header().Set("Content-Type", "application/json")
	_, _ = rw.Write(appendAnswer(nil, &out)) // the caller may have gone
}

// do takes one command all the way.
func (w *Writer) do(ctx context.Context, body []byte) (Outcome, error) {
	c, err := DecodeCommand(body, time.Now().UnixMilli())
	if err == nil {
		err = w.admit(c)
	}
	if err != nil {
		w.metrics.countRefusal(asRefusal(err))
		return Outcome{}, err
	}
	j := &job{Command: c}
	if err := w.applier.apply(ctx, []*job{j}); err != nil {
		return Outcome{}, err
	}
	m, publish := w.message(j)
	if j.Refusal != nil {
		return Outcome{}, j.Refusal
	}
	if publish {
		err = w.publishOne(ctx, m)
	}
	return j.Outcome, err
}

func (w *Writer) publishOne(ctx context.Context, m message) error {
	p := w.producer.Load()
	if p == nil {
		return errors.Join(errNotAcked, errClosed)
	}
	if err := w.publish(ctx, p, []message{m}); err != nil {
		return errors.Join(errNotAcked, err)
	}
	return nil
}

// appendAnswer is the update with the one thing that only this caller is told.
func appendAnswer(dst []byte, o *Outcome) []byte {
	dst = wire.AppendUpdate(dst, &o.Update)
	dst = append(dst[:len(dst)-1], `,"duplicate":`...)
	return append(strconv.AppendBool(dst, o.Duplicate), "}\n"...)
}

// problem is the body of an error.
type problem struct {
	Status   int    `json:"status"`
	Code     string `json:"code"` // stable: callers may decide by it
	Title    string `json:"title"`
	Detail   string `json:"detail,omitempty"`
	Argument string `json:"argument,omitempty"` // the field of the command that is wrong
}

func bodyProblem(err error) problem {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return problem{http.StatusRequestEntityTooLarge, "body_too_large", "Body too large", "want at most " + strconv.Itoa(MaxCommandLen) + " bytes", ""}
	}
	return problem{http.StatusBadRequest, "bad_request", "Body could not be read", "", ""}
}

func problemOf(err error) problem {
	r, ok := errors.AsType[*Refusal](err)
	switch {
	case errors.Is(err, errNotAcked):
		return problem{http.StatusServiceUnavailable, "kafka_unavailable", "Kafka did not answer",
			"the score is changed; post the same command with the same order again so that its update is published", ""}
	case !ok:
		return problem{http.StatusServiceUnavailable, "origin_unavailable", "Redis did not answer",
			"post the same command with the same order again", ""}
	case r.Reason == "blocked":
		return problem{http.StatusForbidden, "blocked", "Board is blocked", r.Err.Error(), ""}
	case r.Reason == "overflow":
		return problem{http.StatusUnprocessableEntity, "score_overflow", "Score out of range", r.Err.Error(), ""}
	case r.Reason == "type":
		return problem{http.StatusConflict, "wrong_type", "Key of the board holds something else", "", ""}
	case r.Reason == "json" || r.Reason == "size":
		return problem{http.StatusBadRequest, "bad_request", "Command can't be read", r.Err.Error(), ""}
	}
	return problem{http.StatusBadRequest, "bad_argument", "Bad argument", r.Err.Error(), r.Reason}
}

func writeProblem(rw http.ResponseWriter, p problem) {
	rw.Header().Set("Content-Type", "application/problem+json")
	if p.Status == http.StatusServiceUnavailable {
		rw.Header().Set("Retry-After", "1")
	}
	rw.WriteHeader(p.Status)
	_ = json.NewEncoder(rw).Encode(p) // the caller may have gone
}
