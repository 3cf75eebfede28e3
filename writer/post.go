package writer

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"github.com/cenkalti/backoff/v5"

	"rankcache/internal/redisclock"
	"rankcache/wire"
)

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
	p.count(posts)
	p.tell(posts)
	return posts
}

// errPosted refuses primes that are posted.
var errPosted = &Refusal{"prime", errors.New("primes are the controller's, in the command topic: leave prime out")}

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

// await waits for the posts that the reader decides. The others don't hear of it any more.
func (p *poster) await(ctx context.Context, posts []posted) {
	for i := range posts {
		post := &posts[i]
		if post.wait == nil {
			continue
		}
		if !post.waits || post.err != nil {
			p.waits.drop(post.wait)
			continue
		}
		select {
		case v := <-post.wait.told:
			post.Outcome, post.fed, post.done = v.Outcome, v.fed, true
			if v.Refusal != nil {
				post.err = v.Refusal
			}
		case <-ctx.Done():
			p.waits.drop(post.wait)
			post.err = &notYet{post.OrderID}
		}
	}
}

// tell tells of the posts that have succeeded.
func (p *poster) tell(posts []posted) {
	for i := range posts {
		if post := &posts[i]; post.err == nil && p.opts.Posted != nil {
			p.opts.Posted(post.Board, post.Member, post.Update.State())
		}
	}
}

// count counts what became of posts.
func (p *poster) count(posts []posted) {
	for _, post := range posts {
		status, reason := http.StatusOK, ""
		if post.err == nil {
			reason = post.result()
		} else {
			problem := problemOf(post.err)
			status, reason = problem.Status, problem.Code
		}
		p.metrics.posts.WithLabelValues(strconv.Itoa(status), reason).Inc()
	}
}
