package testkit

import (
	"errors"
	"net"
	"testing"

	"rankcache/internal/lab/servers"
)

func TestWithoutKafkaTestsRunOnKfakeAndSaySo(t *testing.T) {
	t.Setenv(EnvKafka, "")
	t.Setenv(EnvRequireReal, "")
	t.Setenv(servers.EnvKafkaLibs, t.TempDir())
	h, err := startShared()
	if err != nil {
		t.Fatal(err)
	}
	defer h.close()
	if !h.fake || !errors.Is(h.why, servers.ErrNotInstalled) {
		t.Errorf("got %+v, want a fake and why", h)
	}
	CreateTopic(t, h.addr, Name(t), 2, nil)

	f := (&fakeTB{}).do(func(t testing.TB) { kafka(t, sharedAs(h)) })
	wantIn(t, "log", f.logs, "kfake", "scripts/setup.sh")
	f = (&fakeTB{}).do(func(t testing.TB) { realKafka(t, sharedAs(h)) })
	wantIn(t, "skip", f.skip, "scripts/setup.sh")
}

func TestWithoutKafkaNothingRunsWhereItIsRequired(t *testing.T) {
	t.Setenv(EnvRequireReal, "1")
	t.Setenv(servers.EnvKafkaLibs, t.TempDir())
	if _, err := startShared(); !errors.Is(err, servers.ErrNotInstalled) {
		t.Errorf("got %v, want ErrNotInstalled", err)
	}
}

func sharedAs(h handle) *sharedServer {
	return &sharedServer{env: "RANKCACHE_TEST_NOTHING", start: func() (handle, error) { return h, nil }}
}

func TestTheEnvironmentNamesAServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	const env = "RANKCACHE_TEST_SOMETHING"
	t.Setenv(env, l.Addr().String())
	if h, err := (&sharedServer{env: env}).get(t); err != nil || h.addr != l.Addr().String() {
		t.Errorf("got %+v, %v", h, err)
	}
	l.Close()
	_, err = (&sharedServer{env: env}).get(t)
	if err == nil {
		t.Fatal("a server that is not there was handed out")
	}
	wantIn(t, "error", err.Error(), env, "unset")
}

func TestAFailedTestShowsTheServersOutputOnce(t *testing.T) {
	s := sharedAs(handle{output: func() string { return "said by the server" }})
	f := (&fakeTB{}).do(func(t testing.TB) {
		s.get(t)
		s.get(t)
		t.Fatal("wrong")
	})
	if f.logs != "output of the server (RANKCACHE_TEST_NOTHING):\nsaid by the server\n" {
		t.Errorf("logged %q", f.logs)
	}
}
