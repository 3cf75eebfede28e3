package servers

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// port returns the port of a server that listens on one.
func (r *Redis) port() string {
	_, port, _ := strings.Cut(r.Addr(), ":")
	return port
}

// Client returns a client of this server alone, which the caller closes. It makes no second try.
func (r *Redis) Client() *redis.Client {
	return redis.NewClient(&redis.Options{Addr: r.Addr(), Protocol: 2, DisableIdentity: true, MaxRetries: -1, DialerRetries: 1, ReadTimeout: time.Minute})
}

// Do sends one command, which must not answer an error.
func (r *Redis) Do(ctx context.Context, args ...any) error {
	_, err := r.answer(ctx, args)
	return err
}

// text is Do with its answer.
func (r *Redis) text(ctx context.Context, args ...any) (string, error) {
	v, err := r.answer(ctx, args)
	return fmt.Sprint(v), err
}

func (r *Redis) answer(ctx context.Context, args []any) (any, error) {
	c := r.Client()
	defer c.Close()
	v, err := c.Do(ctx, args...).Result()
	if err != nil {
		return nil, fmt.Errorf("%v on %s: %w", args, r.Addr(), err)
	}
	return v, nil
}

// inSync reports whether a server has its master's data, if it is a replica at all.
func (r *Redis) inSync(ctx context.Context) error {
	info, err := r.text(ctx, "info", "replication")
	if err == nil && strings.Contains(info, "master_link_status:down") {
		err = fmt.Errorf("the replica %s has no link to its master", r.Addr())
	}
	return err
}

// offsets are the positions in the stream of a master's writes: its own and those of its replicas.
var offsets = regexp.MustCompile(`(?:master_repl_offset:|,offset=)(\d+)`)

// Replicated waits until every connected replica of a master, at least one, has all its writes. There must be no writes
// meanwhile.
func (r *Redis) Replicated(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	return pollUntil(ctx, func() error {
		info, err := r.text(ctx, "info", "replication")
		if err != nil {
			return err
		}
		at := offsets.FindAllStringSubmatch(info, -1)
		same := len(at) > 1
		for _, o := range at {
			same = same && o[1] == at[0][1]
		}
		if !same {
			return fmt.Errorf("a replica of %s lags:\n%s", r.Addr(), info)
		}
		return nil
	})
}

// pollUntil calls cond until it returns nil or ctx ends.
func pollUntil(ctx context.Context, cond func() error) error {
	for {
		err := cond()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w; at last: %w", ctx.Err(), err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// outputs returns what servers printed last, each under its address.
func outputs(nodes []*Redis) string {
	var b strings.Builder
	for _, n := range nodes {
		b.WriteString("--- " + strconv.Quote(n.name) + " on " + n.Addr() + "\n" + n.Output())
	}
	return b.String()
}
