package servers

import (
	"context"
	"fmt"
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
