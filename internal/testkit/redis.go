package testkit

import (
	"context"
	"testing"

	"rankcache/internal/lab/servers"
)

var sharedRedis = sharedServer{env: EnvRedis, start: func() (handle, error) {
	r, err := servers.StartRedis(context.Background(), servers.RedisOptions{})
	if err != nil {
		return handle{}, err
	}
	return handle{addr: r.Addr(), output: r.Output, close: r.Close}, nil
}}

// Redis returns the host:port of the redis-server that all tests share. Use keys made with Name, flush nothing and
// don't stop it.
func Redis(t testing.TB) string {
	t.Helper()
	h, err := sharedRedis.get(t)
	orSkip(t, err)
	return h.addr
}

// StartRedis starts a redis-server for this test alone, about 20 ms, and ends it with the test.
func StartRedis(t testing.TB, o servers.RedisOptions) *servers.Redis {
	t.Helper()
	r, err := servers.StartRedis(t.Context(), o)
	orSkip(t, err)
	endWith(t, "redis-server", r)
	return r
}

// endWith closes servers at the end of the test, after their output was shown if the test failed.
func endWith(t testing.TB, name string, s interface {
	Close() error
	Output() string
}) {
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("end %s: %v", name, err)
		}
	})
	showOutput(t, name, s.Output)
}
