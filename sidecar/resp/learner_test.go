package resp

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
)

// TestGreetingBeforeAnythingIsLearned: a client that connects before Redis was asked what it knows sends commands that only
// some servers have. It has its reads answered here and its writes guarded all the same.
func TestGreetingBeforeAnythingIsLearned(t *testing.T) {
	addr := testkit.StartRedis(t, servers.RedisOptions{}).Addr()
	reached := make(chan struct{})
	e := newEnv(t, addr, func(c *Config) {
		c.Dial = func(ctx context.Context) (net.Conn, error) {
			select {
			case <-reached:
			case <-ctx.Done():
			}
			return dialer(addr)(ctx)
		}
	})
	e.fill(3, func(i int) float64 { return float64(i) })
	client := redis.NewClient(&redis.Options{Addr: e.addr, Protocol: 2})
	t.Cleanup(func() { _ = client.Close() })
	greeted := make(chan error)
	conn := client.Conn()
	defer conn.Close()
	go func() { greeted <- conn.Do(t.Context(), "CLIENT", "MAINT_NOTIFICATIONS", "ON").Err() }()
	testkit.Eventually(t, 10*time.Second, func() error {
		if open, _ := e.Conns(); open == 0 {
			return errors.New("no connection")
		}
		return nil
	})
	close(reached)
	if err := <-greeted; err == nil || !strings.Contains(err.Error(), "unknown subcommand") {
		t.Errorf("CLIENT MAINT_NOTIFICATIONS: %v", err)
	}
	if err := conn.ZAdd(t.Context(), "open", redis.Z{Score: 1, Member: "m9"}).Err(); err == nil || !strings.Contains(err.Error(), "written by the writer") {
		t.Errorf("a write past the writer: %v", err)
	}
}
