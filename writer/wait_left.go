package writer

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/redis/go-redis/v9"
)

// leftRefusal is a refusal that the reader of one writer leaves in Redis for a post that waits in another.
type leftRefusal struct {
	Reason string `json:"reason"`
	Detail string `json:"detail"`
}

// leaveRefusals leaves the reasons of refused commands. Without one the post is answered by the position.
func (p *processor) leaveRefusals(ctx context.Context, all []heard) {
	if len(all) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, lookEvery)
	defer cancel()
	_, _ = p.applier.client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for _, h := range all {
			text, _ := json.Marshal(leftRefusal{h.Refusal.Reason, h.Refusal.Err.Error()}) // strings only
			pipe.Set(ctx, p.opts.Names.AppliedKey(h.post), text, PostTimeout)
		}
		return nil
	})
}

// takeRefusals answers the posts whose refusals other readers have left.
func (l *looker) takeRefusals(ctx context.Context, posts []*waiting) error {
	left := make([]*redis.StringCmd, len(posts))
	_, err := l.applier.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, one := range posts {
			left[i] = p.Get(ctx, l.opts.Names.AppliedKey(one.name))
		}
		return nil
	})
	for i, one := range posts {
		var r leftRefusal
		if json.Unmarshal([]byte(left[i].Val()), &r) == nil {
			l.waits.tell(one.name, verdict{Outcome: Outcome{Refusal: &Refusal{r.Reason, errors.New(r.Detail)}}})
		}
	}
	if errors.Is(err, redis.Nil) {
		return nil
	}
	return err
}
