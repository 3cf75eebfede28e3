package writer

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"rankcache"
)

// maxFlights is how many pipelines of posts are under way: few, so that posts share them, several, as one may hang.
const maxFlights = 4

// gatherer sends posts that arrive at the same time in one pipeline. A post that is alone does not wait; those that
// come while maxFlights pipelines are under way share the next one, and those of one board a call of the script. It is
// safe for concurrent use.
type gatherer struct {
	send func(ctx context.Context, jobs []*job) error

	mu     sync.Mutex // nothing is called under it
	groups map[rankcache.BoardID]*postGroup
}

// postGroup shares pipelines: in a cluster one board's posts, as no board waits for another's server; else all.
type postGroup struct {
	flights int // pipelines under way
	waiting []*post
}

// post has copies of a request's jobs, so that its poster need not wait. One pipeline keeps their sequence.
type post struct {
	jobs []job
	sent chan error
	gone atomic.Bool // the poster's time is over
}

// do sends the jobs and sets their outcomes. The error is the pipeline's if one is undone and ready, or ctx's.
func (g *gatherer) do(ctx context.Context, group rankcache.BoardID, jobs ...*job) error {
	p := &post{jobs: make([]job, len(jobs)), sent: make(chan error, 1)}
	for i, j := range jobs {
		p.jobs[i] = *j
	}
	if g.add(group, p) {
		go g.fly(context.WithoutCancel(ctx), group)
	}
	select {
	case err := <-p.sent:
		for i, j := range jobs {
			*j = p.jobs[i]
		}
		return err
	case <-ctx.Done():
		p.gone.Store(true)
		return context.Cause(ctx)
	}
}

// add has the post wait and reports whether the caller is to start a flight.
func (g *gatherer) add(group rankcache.BoardID, p *post) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	posts := g.groups[group]
	if posts == nil {
		posts = new(postGroup)
		g.groups[group] = posts
	}
	posts.waiting = append(posts.waiting, p)
	if posts.flights == maxFlights {
		return false
	}
	posts.flights++
	return true
}

// fly sends the waiting posts of the group until none is left.
func (g *gatherer) fly(ctx context.Context, group rankcache.BoardID) {
	for posts := g.take(group); len(posts) > 0; posts = g.take(group) {
		g.flight(ctx, posts)
	}
}

// take returns the posts of the next flight, or none and ends the caller's.
func (g *gatherer) take(group rankcache.BoardID) []*post {
	g.mu.Lock()
	defer g.mu.Unlock()
	posts := g.groups[group]
	posts.waiting = slices.DeleteFunc(posts.waiting, func(p *post) bool { return p.gone.Load() })
	n := 0
	for jobs := 0; n < len(posts.waiting) && jobs < maxBatch; n++ {
		jobs += len(posts.waiting[n].jobs)
	}
	next := posts.waiting[:n]
	posts.waiting = posts.waiting[len(next):]
	if len(next) == 0 {
		if posts.flights--; posts.flights == 0 {
			delete(g.groups, group)
		}
	}
	return next
}

func (g *gatherer) flight(ctx context.Context, posts []*post) {
	ctx, cancel := context.WithTimeout(ctx, PostTimeout)
	defer cancel()
	var jobs []*job
	for _, p := range posts {
		for i := range p.jobs {
			jobs = append(jobs, &p.jobs[i])
		}
	}
	err := g.send(ctx, jobs)
	for _, p := range posts {
		if slices.ContainsFunc(p.jobs, func(j job) bool { return !j.done && j.need == needNothing }) {
			p.sent <- err
		} else {
			p.sent <- nil
		}
	}
}
