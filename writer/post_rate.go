package writer

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache/wire"
)

const (
	// rateTime is the stretch of time in which a member's changes are counted.
	rateTime = time.Minute
	// rateWait bounds how long a post waits for the counters: a slow Redis limits nobody.
	rateWait = 50 * time.Millisecond
)

// overRate reports that a member was changed more often than one may be: the post is not recorded.
type overRate struct {
	member string
	limit  int
	until  time.Duration // the next minute
}

func (e *overRate) Error() string {
	return fmt.Sprintf("member %.130q has had more than the %d changes a minute (--member-changes) on all boards together; post the same command with the same order again in %v",
		e.member, e.limit, e.until.Round(time.Second))
}

// limitRates refuses posts of members that were changed too often in this minute of the clock, by one counter a member
// in Redis. While Redis does not count, nobody is refused; nor is a repeat of an order that is known.
func (p *poster) limitRates(ctx context.Context, posts []posted, now time.Time) {
	if p.opts.MemberChanges == 0 {
		return
	}
	counted := make(map[string][]*posted)
	for i := range posts {
		if post := &posts[i]; post.err == nil && !post.Op.Own() {
			counted[post.Member] = append(counted[post.Member], post)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, rateWait)
	defer cancel()
	over := p.countRates(ctx, counted, now)
	jobs := make([]*job, len(over))
	for i, post := range over {
		jobs[i] = post.job
	}
	for i, reply := range p.applier.askRecords(ctx, jobs) {
		switch record, _, err := reply(); {
		case err != nil:
			p.metrics.rates.WithLabelValues("uncounted").Inc()
		case record == "":
			p.metrics.rates.WithLabelValues("refused").Inc()
			over[i].err = &overRate{over[i].Member, p.opts.MemberChanges, now.Truncate(rateTime).Add(rateTime).Sub(now)}
		}
	}
}

// countRates counts the posts of members, and returns those beyond the limit.
func (p *poster) countRates(ctx context.Context, counted map[string][]*posted, now time.Time) (over []*posted) {
	sums := make(map[string]*redis.IntCmd, len(counted))
	minute := strconv.FormatInt(now.Unix()/int64(rateTime/time.Second), 10)
	_, _ = p.opts.Redis.Pipelined(ctx, func(pipe redis.Pipeliner) error { // each reply has its own error
		for member, posts := range counted {
			key := wire.MemberChangesKey(minute, member)
			sums[member] = pipe.IncrBy(ctx, key, int64(len(posts)))
			pipe.PExpire(ctx, key, 2*rateTime)
		}
		return nil
	})
	for member, posts := range counted {
		sum, err := sums[member].Result()
		if err != nil {
			p.metrics.rates.WithLabelValues("uncounted").Add(float64(len(posts)))
			continue
		}
		if beyond := int(sum) - p.opts.MemberChanges; beyond > 0 {
			over = append(over, posts[max(len(posts)-beyond, 0):]...)
		}
	}
	return over
}
