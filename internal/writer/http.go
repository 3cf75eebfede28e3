package writer

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"rankcache/internal/httpserve"
	"rankcache/wire"
)

// PostTimeout bounds one posted command, Redis and Kafka together: as long, a failover
// or an adoption delays a post instead of failing it.
const PostTimeout = 5 * time.Second

// errNotAcked reports that Redis took a command and Kafka did not yet take its
// update.
var errNotAcked = errors.New("the score is changed but Kafka did not acknowledge the update")

// Handler serves POST /v1/scores: one command as JSON, answered with its update
// and whether the order was applied before. For a super-hot board the answer
// comes when Kafka has acknowledged the update. POST /v1/scores:batch does the same for
// several commands, with a result or problem for each. Errors are
// application/problem+json; after a 503 the same command with the same order
// number is to be posted again. Requests that a browser sends for another site's page are
// refused.
func (w *Writer) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/scores", w.postScore)
	mux.HandleFunc("POST /v1/scores:batch", w.postBatch)
	for _, path := range []string{"/v1/scores", "/v1/scores:batch"} {
		mux.HandleFunc(path, func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Allow", http.MethodPost)
			problem(http.StatusMethodNotAllowed, "method_not_allowed", "Method not allowed", "want POST").Write(rw)
		})
	}
	mux.HandleFunc("/", func(rw http.ResponseWriter, _ *http.Request) {
		problem(http.StatusNotFound, "unknown_path", "No such resource", "want POST /v1/scores or /v1/scores:batch").Write(rw)
	})
	return httpserve.CheckOrigin(mux)
}

func (w *Writer) postScore(rw http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), w.postTime)
	defer cancel()
	body, ok := readJSON(rw, r, MaxCommandLen)
	if !ok {
		return
	}
	out, err := w.do(ctx, body)
	if err != nil {
		problemOf(err).Write(rw)
		return
	}
	rw.Header().Set("Content-Type", "application/json")
	_, _ = rw.Write(append(appendAnswer(nil, &out), '\n')) // the caller may have gone
}

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

// posted is a command of a request and what became of it.
type posted struct {
	*job
	body []byte
	err  error // why there is no update
}

// do takes one command all the way.
func (w *Writer) do(ctx context.Context, body []byte) (Outcome, error) {
	p := w.doAll(ctx, []json.RawMessage{body})[0]
	return p.Outcome, p.err
}

// doAll takes the commands of one request all the way, those of one board in sequence.
func (w *Writer) doAll(ctx context.Context, commands []json.RawMessage) []posted {
	now := w.applier.now()
	posts := make([]posted, len(commands))
	var jobs []*job
	for i, body := range commands {
		j, err := w.accept(body, now.UnixMilli(), now)
		posts[i] = posted{j, body, err}
		if err == nil {
			jobs = append(jobs, j)
		}
	}
	err := w.retry(ctx, "redis", func() error { return w.applier.applyPosts(ctx, jobs) })
	w.finishPosts(ctx, posts, err)
	w.refusePosts(ctx, posts)
	return posts
}

// finishPosts publishes the updates of what was applied, and sets the other errors:
// failed is that of Redis.
func (w *Writer) finishPosts(ctx context.Context, posts []posted, failed error) {
	var messages []message
	var published []*posted
	for i := range posts {
		p := &posts[i]
		switch {
		case p.err != nil:
		case !p.done:
			p.err = failed
		case p.Refusal != nil:
			p.err = p.Refusal
		default:
			before := len(messages)
			if m, publish := w.message(p.job); publish {
				messages = append(messages, m)
			}
			if messages = w.ledger.append(messages, &p.Update); len(messages) > before {
				published = append(published, p)
			}
		}
	}
	if err := w.publishPosts(ctx, messages); err != nil {
		for _, p := range published {
			p.err = err
		}
	}
}

// publishPosts publishes messages of posts.
func (w *Writer) publishPosts(ctx context.Context, messages []message) error {
	if len(messages) == 0 {
		return nil
	}
	p := w.producer.Load()
	if p == nil {
		return errors.Join(errNotAcked, errClosed)
	}
	if err := w.publish(ctx, p, messages); err != nil {
		return errors.Join(errNotAcked, err)
	}
	return nil
}

// appendAnswer is the update with the fields for this caller alone.
func appendAnswer(dst []byte, o *Outcome) []byte {
	dst = wire.AppendUpdate(dst, &o.Update)
	dst = append(dst[:len(dst)-1], `,"state":"`...)
	dst = append(dst, o.Update.State().String()...)
	dst = append(dst, `","duplicate":`...)
	return append(strconv.AppendBool(dst, o.Duplicate), '}')
}

func problem(status int, code, title, detail string) httpserve.Problem {
	return httpserve.Problem{Status: status, Code: code, Title: title, Detail: detail}
}

// classProblems are the titles of problems with classes, by code.
var classProblems = map[string]string{
	"unknown_class":   "No such class",
	"bad_dims":        "Dimensions are not those of the class",
	"board_and_class": "Board and class named",
	"op_not_allowed":  "The class does not allow the operation",
	"late":            "Command came after its period had ended",
}

func problemOf(err error) httpserve.Problem {
	r, ok := errors.AsType[*Refusal](err)
	switch {
	case errors.Is(err, errNotAcked):
		return problem(http.StatusServiceUnavailable, "kafka_unavailable", "Kafka did not answer",
			"the score is changed; post the same command with the same order again so that its update is published")
	case errors.Is(err, errAdopting):
		return problem(http.StatusServiceUnavailable, "adopting", "Board is being adopted",
			"its members are added up, after something else has changed the board; post the same command with the same order again")
	case !ok:
		return problem(http.StatusServiceUnavailable, "origin_unavailable", "Redis did not answer",
			"post the same command with the same order again")
	case r.Reason == "blocked":
		return problem(http.StatusForbidden, "blocked", "Board is blocked", r.Err.Error())
	case r.Reason == "overflow":
		return problem(http.StatusUnprocessableEntity, "score_overflow", "Score out of range", r.Err.Error())
	case r.Reason == "order_conflict":
		return problem(http.StatusConflict, r.Reason, "Order id was used for another change", r.Err.Error())
	case r.Reason == "too_old":
		return problem(http.StatusUnprocessableEntity, r.Reason, "Command is too old", r.Err.Error())
	case r.Reason == "early":
		return problem(http.StatusUnprocessableEntity, r.Reason, "Command is ahead of time", r.Err.Error())
	case classProblems[r.Reason] != "":
		return problem(http.StatusUnprocessableEntity, r.Reason, classProblems[r.Reason], r.Err.Error())
	case r.Reason == "clock":
		return problem(http.StatusServiceUnavailable, "wrong_clock", "The writer's clock is wrong", r.Err.Error())
	case r.Reason == "type":
		return problem(http.StatusConflict, "wrong_type", "Key of the board holds something else", "")
	case r.Reason == "json" || r.Reason == "size":
		return problem(http.StatusBadRequest, "bad_request", "Command can't be read", r.Err.Error())
	}
	return httpserve.Problem{Status: http.StatusBadRequest, Code: "bad_argument", Title: "Bad argument", Argument: r.Reason, Detail: r.Err.Error()}
}
