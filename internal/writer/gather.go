package writer

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"rankcache"
)

// maxFlights is how many pipelines of posts are under way at the same time: few, so that
// many posts share one, and several, so that a connection that hangs holds up only a
// part of them.
const maxFlights = 4

// gatherer sends posts that arrive at the same time in one pipeline. A post that is
// alone does not wait; those that come while maxFlights pipelines are under way share
// the next one, and those of one board a call of the script. It is safe for concurrent
// use.
type gatherer struct {
	send func(ctx context.Context, jobs []*job) error

	mu     sync.Mutex // nothing is called under it
	groups map[rankcache.BoardID]*postGroup
}

// postGroup is what shares pipelines: in a cluster the posts of one board, so that no
// board waits for the server of another one, otherwise all, under the id "".
type postGroup struct {
	flights int // pipelines under way
	waiting []*post
}

// post has a copy of a job, so that a poster need not wait until it was sent.
type post struct {
	job
	sent chan error
	gone atomic.Bool // nobody waits for it any more
}

// do sends the job and sets its outcome. The error is that of its pipeline if the job is
// not done and needs no preparation, or that ctx has ended.
func (g *gatherer) do(ctx context.Context, group rankcache.BoardID, j *job) error {
	p := &post{job: *j, sent: make(chan error, 1)}
	if g.add(group, p) {
		go g.fly(context.WithoutCancel(ctx), group)
	}
	select {
	case err := <-p.sent:
		*j = p.job
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
	next := posts.waiting[:min(len(posts.waiting), maxBatch)]
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
	jobs := make([]*job, len(posts))
	for i, p := range posts {
		jobs[i] = &p.job
	}
	err := g.send(ctx, jobs)
	for _, p := range posts {
		if p.done || p.need != needNothing {
			p.sent <- nil
		} else {
			p.sent <- err
		}
	}
}
