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

	"rankcache"
	"rankcache/internal/httpserve"
	"rankcache/wire"
)

// PostTimeout bounds one posted command, Redis and Kafka together: as long, a failover
// or an adoption delays a post instead of failing it.
const PostTimeout = 5 * time.Second

// refusedTimeout bounds how long a refused post waits for Kafka.
const refusedTimeout = time.Second

// errNotAcked reports that Redis took a command and Kafka did not yet take its
// update.
var errNotAcked = errors.New("the score is changed but Kafka did not acknowledge the update")

// errNotRecorded reports that Kafka did not take a command that is to be in the command
// topic before it is applied.
var errNotRecorded = errors.New("Kafka did not acknowledge the command")

// poster answers posted commands.
type poster struct {
	*processor
	time time.Duration // PostTimeout, except in tests
}

func (p *poster) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/scores", p.postScore)
	mux.HandleFunc("POST /v1/scores:batch", p.postBatch)
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

func (p *poster) postScore(rw http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), p.time)
	defer cancel()
	body, ok := readJSON(rw, r, MaxCommandLen)
	if !ok {
		return
	}
	done := p.doAll(ctx, []json.RawMessage{body})[0]
	if done.err != nil {
		problemOf(done.err).Write(rw)
		return
	}
	rw.Header().Set("Content-Type", "application/json")
	_, _ = rw.Write(append(appendAnswer(nil, &done), '\n')) // the caller may have gone
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
	err  error  // why there is no update
	fed  []*job // of the boards that it feeds
}

// doAll takes the commands of one request all the way, those of one board in sequence.
func (p *poster) doAll(ctx context.Context, commands []json.RawMessage) []posted {
	now := p.applier.now()
	posts := make([]posted, len(commands))
	for i, body := range commands {
		j, err := p.accept(body, now.UnixMilli(), now)
		posts[i] = posted{job: j, body: body, err: err}
	}
	p.record(ctx, posts)
	err := p.applyPosts(ctx, posts)
	p.finishPosts(ctx, posts, err)
	p.refusePosts(ctx, posts)
	return posts
}

// record appends the commands that change several boards, or a ledger, to the command
// topic before they are applied: if this writer dies between, the one that reads the topic completes
// them. What comes outside of its period was appended when it was in time, or is refused.
func (p *poster) record(ctx context.Context, posts []posted) {
	var messages []message
	var recorded []*posted
	for i := range posts {
		post := &posts[i]
		kind := post.rules.kind
		if post.err != nil || post.outside != nil || kind == nil || len(kind.Feeds) == 0 && !kind.Ledger {
			continue
		}
		recorded = append(recorded, post)
		messages = append(messages, message{p.opts.Names.Commands, []byte(post.Member), encodeCommand(post.Command)})
	}
	if err := p.publishPosts(ctx, messages); err != nil {
		for _, post := range recorded {
			post.err = errors.Join(errNotRecorded, err)
		}
	}
}

// applyPosts applies the posts without an error, and then what they feed. The error is
// that of Redis: it holds for those that are not done, and for those whose fed ones are not.
func (p *poster) applyPosts(ctx context.Context, posts []posted) error {
	var jobs []*job
	for _, post := range posts {
		if post.err == nil {
			jobs = append(jobs, post.job)
		}
	}
	err := p.retry(ctx, "redis", func() error { return p.applier.applyPosts(ctx, jobs) })
	fed := p.fed(jobs)
	next := 0
	for i := range posts {
		if posts[i].err == nil {
			posts[i].fed, next = fed.of(next), next+1
		}
	}
	if all := fed.all(); err == nil && len(all) > 0 {
		err = p.retry(ctx, "redis", func() error { return p.applier.applyPosts(ctx, all) })
	}
	return err
}

// finishPosts publishes the updates of what was applied, and sets the other errors:
// failed is that of Redis.
func (p *poster) finishPosts(ctx context.Context, posts []posted, failed error) {
	var messages []message
	var published []*posted
	for i := range posts {
		post := &posts[i]
		switch {
		case post.err != nil:
		case !post.done || anyNeed(post.fed):
			post.err = failed
		case post.Refusal != nil:
			post.err = post.Refusal
		default:
			before := len(messages)
			if messages = p.appendMessages(messages, post.job, post.fed); len(messages) > before {
				published = append(published, post)
			}
		}
	}
	if err := p.publishPosts(ctx, messages); err != nil {
		for _, post := range published {
			post.err = errors.Join(errNotAcked, err)
		}
	}
}

// refusePosts counts the refused commands of a request and publishes them, if Kafka takes
// them in time; the caller knows of them anyway.
func (p *poster) refusePosts(ctx context.Context, posts []posted) {
	var messages []message
	for _, post := range posts {
		if r, ok := errors.AsType[*Refusal](post.err); ok {
			p.refuse(r, "source", "http")
			messages = append(messages, p.refusedMessage(r, post.Command, post.body, commandSource{HTTP: true}))
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), refusedTimeout)
	defer cancel()
	if err := p.publishPosts(ctx, messages); err != nil {
		p.metrics.refusedLost.Add(float64(len(messages)))
	}
}

// publishPosts publishes messages of posts.
func (p *poster) publishPosts(ctx context.Context, messages []message) error {
	if len(messages) == 0 {
		return nil
	}
	to := p.producer.Load()
	if to == nil {
		return errClosed
	}
	return p.publish(ctx, to, messages)
}

// appendAnswer is the update with the fields for this caller alone.
func appendAnswer(dst []byte, p *posted) []byte {
	dst = wire.AppendUpdate(dst, &p.Update)
	dst = append(dst[:len(dst)-1], `,"state":"`...)
	dst = append(dst, p.Update.State().String()...)
	dst = append(dst, `","duplicate":`...)
	dst = strconv.AppendBool(dst, p.Duplicate)
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
			answers[i].Score, answers[i].Seq = &f.Update.Score, f.Update.Seq
		}
	}
	text, _ := json.Marshal(answers) // finite numbers and strings
	return append(dst, text...)
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
	"ended":           "Board is closed",
	"guard":           "Beyond the guard of the class",
}

func problemOf(err error) httpserve.Problem {
	r, ok := errors.AsType[*Refusal](err)
	switch {
	case errors.Is(err, errNotAcked):
		return problem(http.StatusServiceUnavailable, "kafka_unavailable", "Kafka did not answer",
			"the score is changed; post the same command with the same order again so that its update is published")
	case errors.Is(err, errNotRecorded):
		return problem(http.StatusServiceUnavailable, "kafka_unavailable", "Kafka did not answer",
			"a command that feeds other boards is appended to the command topic first; post the same command with the same order again")
	case errors.Is(err, errAdopting):
		return problem(http.StatusServiceUnavailable, "adopting", "Board is being adopted",
			"its members are added up, after something else has changed the board; post the same command with the same order again")
	case !ok:
		return problem(http.StatusServiceUnavailable, "origin_unavailable", "Redis did not answer",
			"post the same command with the same order again")
	case r.Reason == "blocked":
		return problem(http.StatusForbidden, "blocked", "Board is blocked", r.Err.Error())
	case r.Reason == "score_range":
		return problem(http.StatusUnprocessableEntity, r.Reason, "Score out of range", r.Err.Error())
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
