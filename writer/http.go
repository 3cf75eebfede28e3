package writer

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"
	"golang.org/x/sync/semaphore"

	"rankcache"
	"rankcache/internal/httpserve"
	"rankcache/internal/kafka"
	"rankcache/internal/redisclock"
	"rankcache/wire"
)

// PostTimeout bounds one posted command, Redis and Kafka together: as long, a failover
// or an adoption delays a post instead of failing it.
const PostTimeout = 5 * time.Second

// refusedTimeout bounds how long Kafka may take to take the refused posts of a request, and maxRefusing for how many
// requests it may be waited for at once.
const refusedTimeout, maxRefusing = time.Second, 64

// poster answers posted commands.
type poster struct {
	*processor
	time     time.Duration // PostTimeout, except in tests
	refusing *semaphore.Weighted
}

func newPoster(p *processor) *poster {
	return &poster{p, PostTimeout, semaphore.NewWeighted(maxRefusing)}
}

func (p *poster) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/scores", p.postScore)
	mux.HandleFunc("POST /v1/scores:batch", p.postBatch)
	mux.HandleFunc("POST /v1/scores:delete", p.postDelete)
	mux.HandleFunc("POST /v1/members:hide", p.postMove(wire.OpHide))
	mux.HandleFunc("POST /v1/members:restore", p.postMove(wire.OpRestore))
	mux.HandleFunc("POST "+ForgetPath, p.postForget)
	mux.Handle("GET /v1/status", statusPage{p.processor})
	for path, method := range map[string]string{"/v1/scores": http.MethodPost, "/v1/scores:batch": http.MethodPost, "/v1/scores:delete": http.MethodPost, "/v1/members:hide": http.MethodPost, "/v1/members:restore": http.MethodPost,
		ForgetPath: http.MethodPost, "/v1/status": http.MethodGet} {
		mux.HandleFunc(path, func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Allow", method)
			problem(http.StatusMethodNotAllowed, "method_not_allowed", "Method not allowed", "want "+method).Write(rw)
		})
	}
	mux.HandleFunc("/", func(rw http.ResponseWriter, _ *http.Request) {
		problem(http.StatusNotFound, "unknown_path", "No such resource", "want POST /v1/scores, /v1/scores:batch, /v1/scores:delete, /v1/members:hide, /v1/members:restore, /v1/members:forget or GET /v1/status").Write(rw)
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

type allowedKey struct{}

// AllowClasses returns a context for a request to the handler whose commands may change
// boards of the classes only; what these feed they may change too.
func AllowClasses(ctx context.Context, classes []string) context.Context {
	return context.WithValue(ctx, allowedKey{}, classes)
}

// AllowedClasses returns what [AllowClasses] has set, and false if the request may change all boards.
func AllowedClasses(ctx context.Context) (classes []string, limited bool) {
	classes, limited = ctx.Value(allowedKey{}).([]string)
	return classes, limited
}

// mayChange returns a [*Refusal] if the caller may not change boards of the job's class.
func mayChange(ctx context.Context, j *job) error {
	classes, limited := AllowedClasses(ctx)
	switch {
	case !limited || j.rules.kind != nil && slices.Contains(classes, j.rules.kind.Name()):
		return nil
	case j.rules.kind == nil:
		return &Refusal{"class_not_allowed", fmt.Errorf("board %s has no class, and the token is for boards of %s only", j.Board, strings.Join(classes, ", "))}
	}
	return &Refusal{"class_not_allowed", fmt.Errorf("the token is not for boards of class %s, but of %s only", j.rules.kind.Name(), strings.Join(classes, ", "))}
}

// posted is a command of a request and what became of it.
type posted struct {
	*job
	body []byte
	err  error  // why there is no update
	fed  []*job // of the boards that it feeds
	// spread tells that its order id is made of the one that it came with and the member.
	spread   bool
	appended bool     // to the command topic
	waits    bool     // for the reader of its partition; else it is applied at once
	wait     *waiting // of those that were appended
	at       kafka.TopicPartition
}

// doAll takes the commands of one request all the way, those of one board in sequence.
func (p *poster) doAll(ctx context.Context, commands []json.RawMessage) []posted {
	unknown := p.retry(ctx, "redis", func() error { return p.applier.clock.Compare(ctx, redisclock.Good) })
	now := p.applier.now()
	posts := make([]posted, len(commands))
	for i, body := range commands {
		j, err := p.accept(body, now.UnixMilli(), now)
		switch {
		case err != nil:
		case j.Prime:
			err = errPosted
		case j.Op != wire.OpForget:
			err = mayChange(ctx, j)
		case ctx.Value(forgetKey{}) == nil:
			err = errForgets
		}
		if err == nil {
			err = cmp.Or(unknown, p.applier.clock.Check(j.clockLimit))
		}
		posts[i] = posted{job: j, body: body, err: err}
	}
	if len(posts) > 1 {
		spreadOrders(posts)
	}
	p.limitRates(ctx, posts, now)
	p.record(ctx, posts, now)
	err := p.applyPosts(ctx, posts)
	p.finishPosts(ctx, posts, err)
	p.refusePosts(posts)
	p.await(ctx, posts)
	p.metrics.countPosts(posts)
	return posts
}

// record appends the commands of durable classes to the command topic before they are applied: if this
// writer dies between, or Redis loses what it did, the one that reads the topic completes them.
//
// What is outside of its time by the clock of this writer, or of Kafka, is decided by the reader at its own place in
// the topic: behind an earlier post of the order, which a writer that hangs or has died may have appended.
func (p *poster) record(ctx context.Context, posts []posted, now time.Time) {
	recorded := p.toRecord(ctx, posts)
	messages := make([]message, len(recorded))
	for i, post := range recorded {
		post.appended, post.wait = true, p.waits.add(post.job)
		messages[i] = message{topic: p.opts.Names.Commands, key: []byte(commandKey(post.Command, post.rules.kind)), value: encodeCommand(post.Command),
			post: post.wait.name, tooLarge: func(err error) { post.err = &Refusal{"size", err} }, appended: func(at kafka.TopicPartition) {
				if post.at = at; post.waits || isClose(post.job, now, p.applier.now()) {
					p.leaveToReader(post)
				}
			}}
	}
	if err := p.publishPosts(ctx, messages); err != nil {
		for _, post := range recorded {
			post.err = cmp.Or(post.err, errors.Join(errNotRecorded, err))
		}
	}
}

// leaveToReader has the reader decide what becomes of a post that was appended.
func (p *poster) leaveToReader(post *posted) {
	post.waits = true
	p.waits.begin(post.wait, post.at)
}

// toRecord returns the posts of durable classes that are to be appended.
func (p *poster) toRecord(ctx context.Context, posts []posted) (recorded []*posted) {
	var waits []*posted
	for i := range posts {
		post := &posts[i]
		kind := post.rules.kind
		if post.err != nil || kind == nil || !kind.Durable {
			continue
		}
		if post.err = p.logFits(ctx, kind); post.err != nil {
			continue
		}
		post.waits = p.waitsFor(kind) || post.outside != nil || post.Op == wire.OpForget // behind what is in the topic of the member
		if recorded = append(recorded, post); post.waits {
			waits = append(waits, post)
		}
	}
	err := p.retry(ctx, "redis", func() error { return p.lookUp(ctx, waits) })
	for _, post := range waits {
		post.err = cmp.Or(post.err, err)
	}
	return slices.DeleteFunc(recorded, func(post *posted) bool { return post.err != nil || post.done })
}

// applyPosts applies the posts without an error that don't wait, and then what they feed. The error is
// that of Redis: it holds for those that are not done, and for those whose fed ones are not.
func (p *poster) applyPosts(ctx context.Context, posts []posted) error {
	var jobs []*job
	for _, post := range posts {
		if post.err == nil && !post.waits {
			jobs = append(jobs, post.job)
		}
	}
	err := p.change(ctx, func() error {
		if err := p.rolling.settle(ctx); err != nil {
			return unavailable(err)
		}
		return p.applier.applyPosts(ctx, jobs)
	})
	p.rooms.add(ctx, jobs)
	fed := p.fed(jobs)
	if all := fed.all(); err == nil && len(all) > 0 {
		err = p.change(ctx, func() error { return p.applier.applyPosts(ctx, all) })
	}
	fed, rolled := p.rolled(jobs, fed)
	next := 0
	for i := range posts {
		if posts[i].err == nil && !posts[i].waits {
			posts[i].fed, next = fed.of(next), next+1
		}
	}
	if err == nil && len(rolled) > 0 {
		err = p.change(ctx, func() error { return p.applier.applyPosts(ctx, rolled) })
	}
	return err
}

// change repeats an attempt to change Redis until it succeeds or ctx ends; not where Redis answers that it takes no
// writes.
func (p *poster) change(ctx context.Context, attempt func() error) error {
	return p.retry(ctx, "redis", func() error {
		err := attempt()
		if refusesWrites(err) != nil {
			err = backoff.Permanent(err)
		}
		return err
	})
}

// finishPosts publishes the updates of what was applied, and sets the other errors: failed is that of Redis. A refusal
// of what was appended is left to the reader, which may find that it fits when its turn comes.
func (p *poster) finishPosts(ctx context.Context, posts []posted, failed error) {
	var messages []message
	var published []*posted
	for i := range posts {
		post := &posts[i]
		switch {
		case post.err != nil || post.waits:
		case !post.done || anyNeed(post.fed):
			post.err = failed
		case post.Refusal != nil && post.wait != nil:
			p.leaveToReader(post)
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

// refusePosts counts the refused commands of a request, and has them published, if Kafka takes
// them in time; the caller, who knows of them anyway, does not wait for that.
func (p *poster) refusePosts(posts []posted) {
	var messages []message
	for _, post := range posts {
		if r, ok := errors.AsType[*Refusal](post.err); ok && !post.toldByRecord() {
			p.refuse(r, "source", "http")
			messages = append(messages, p.refusedMessage(r, post.Command, post.body, commandSource{HTTP: true}))
		}
	}
	if len(messages) == 0 {
		return
	}
	if !p.refusing.TryAcquire(1) {
		p.metrics.refusedLost.Add(float64(len(messages)))
		return
	}
	go func() {
		defer p.refusing.Release(1)
		ctx, cancel := context.WithTimeout(context.Background(), refusedTimeout)
		defer cancel()
		if p.publishPosts(ctx, messages) != nil {
			p.metrics.refusedLost.Add(float64(len(messages)))
		}
	}()
}

// awaitRefused returns once none is being published.
func (p *poster) awaitRefused() {
	_ = p.refusing.Acquire(context.Background(), maxRefusing) // each gives its place back in time
	p.refusing.Release(maxRefusing)
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
