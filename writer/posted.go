package writer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"

	"rankcache"
	"rankcache/internal/kafka"
	"rankcache/wire"
)

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

// toldByRecord reports whether the reader of the command topic refuses the command as well, and counts and tells it:
// it was appended before Redis has refused it.
func (p *posted) toldByRecord() bool { return p.Refusal != nil && p.appended }

// orderOf is the order id of one member's part of a change of several.
func orderOf(id, member string) string { return id + "/" + member }

// spreadOrders gives members' commands order ids of their own: an order is one member's change.
func spreadOrders(posts []posted) {
	type order struct {
		board rankcache.BoardID
		id    string
	}
	first, spread := make(map[order]string, len(posts)), make(map[order]bool)
	for _, p := range posts {
		if p.err != nil {
			continue
		}
		o := order{p.Board, p.OrderID}
		if member, ok := first[o]; !ok {
			first[o] = p.Member
		} else if member != p.Member {
			spread[o] = true
		}
	}
	for i := range posts {
		p := &posts[i]
		if p.err != nil || !spread[order{p.Board, p.OrderID}] {
			continue
		}
		p.OrderID, p.spread = orderOf(p.OrderID, p.Member), true
		if err := wire.CheckOrderID(p.OrderID); err != nil {
			p.err = &Refusal{"order", err}
		}
	}
}

// publishPosts publishes messages of posts, if there is Kafka.
func (p *poster) publishPosts(ctx context.Context, messages []message) error {
	if len(messages) == 0 || !p.opts.hasKafka() {
		return nil
	}
	to := p.producer.Load()
	if to == nil {
		return errClosed
	}
	return p.publish(ctx, to, messages)
}

// awaitRefused returns once none is being published.
func (p *poster) awaitRefused() {
	_ = p.refusing.Acquire(context.Background(), maxRefusing) // each gives its place back in time
	p.refusing.Release(maxRefusing)
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

// ForgetPath has members forgotten, and [ForgetRight] among the classes of a token is the right to it.
const (
	ForgetPath  = "/v1/members:forget"
	ForgetRight = "members:forget"
)

// forgetKey is of contexts of requests that may forget.
type forgetKey struct{}

var errForgets = &Refusal{"op", errors.New("a member is forgotten by POST " + ForgetPath + ", or a record of the command topic")}
