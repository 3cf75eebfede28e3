package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sync/errgroup"

	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
)

// shownOutput is how many bytes of a server's output are shown: the command's own last lines should stay in sight.
const shownOutput = 2 << 10

// fleet is the servers that we started, and those that we could not.
type fleet []*member

// member is one server, known to the tests by an environment variable.
type member struct {
	env     string
	start   func(context.Context) (*servers.Server, error)
	server  *servers.Server // nil when it runs already or is missing
	missing error           // why there is none
}

// newFleet returns what tests share. Those in full size have MariaDB, too.
func newFleet() fleet {
	f := fleet{{env: testkit.EnvRedis, start: startRedis}, {env: testkit.EnvKafka, start: startKafka}, {env: testkit.EnvPostgres, start: startSQL(servers.StartPostgres)}}
	if testkit.Full() {
		f = append(f, &member{env: testkit.EnvMariaDB, start: startSQL(servers.StartMariaDB)})
	}
	return f
}

// startFleet starts the servers side by side. The fleet it returns is to be closed even when there is an error.
func startFleet(ctx context.Context) (fleet, error) {
	f := newFleet()
	var g errgroup.Group
	for _, m := range f {
		g.Go(func() error { return m.begin(ctx) })
	}
	return f, g.Wait()
}

func startRedis(ctx context.Context) (*servers.Server, error) {
	r, err := servers.StartRedis(ctx, servers.RedisOptions{})
	if err != nil {
		return nil, err
	}
	return r.Server, nil
}

func startKafka(ctx context.Context) (*servers.Server, error) {
	k, err := servers.StartKafka(ctx, servers.KafkaOptions{})
	if err != nil {
		return nil, err
	}
	return k.Server, nil
}

func startSQL(start func(context.Context, servers.SQLOptions) (*servers.SQL, error)) func(context.Context) (*servers.Server, error) {
	return func(ctx context.Context) (*servers.Server, error) {
		s, err := start(ctx, servers.SQLOptions{})
		if err != nil {
			return nil, err
		}
		return s.Server, nil
	}
}

// begin starts a server unless the environment names one. A server that is not installed is an error only where the
// real one is required.
func (m *member) begin(ctx context.Context) error {
	if os.Getenv(m.env) != "" {
		return nil
	}
	s, err := m.start(ctx)
	if errors.Is(err, servers.ErrNotInstalled) && !testkit.RequireReal() {
		m.missing, err = err, nil
	}
	m.server = s
	return err
}

// env returns the environment that tells the tests of the servers.
func (f fleet) env() []string {
	var env []string
	for _, m := range f {
		if m.server != nil {
			env = append(env, m.env+"="+m.server.Addr())
		}
	}
	return env
}

// sayMissing reports which servers the tests do without. go test shows what a package printed only when it fails, so it
// would not be seen there.
func (f fleet) sayMissing() {
	for _, m := range f {
		if m.missing != nil {
			fmt.Fprintf(os.Stderr, "\n*** NOT ALL TESTS RUN ON REAL SERVERS: %v\n*** Set %s=1 to make this a failure.\n\n", m.missing, testkit.EnvRequireReal)
		}
	}
}

// sayOutput shows the end of what the servers printed, for a command that failed.
func (f fleet) sayOutput() {
	for _, m := range f {
		if m.server == nil {
			continue
		}
		out := m.server.Output()
		fmt.Fprintf(os.Stderr, "\n*** The server named by %s printed at last:\n%s\n", m.env, out[max(0, len(out)-shownOutput):])
	}
}

// close ends the servers.
func (f fleet) close() error {
	var errs []error
	for _, m := range f {
		if m.server != nil {
			errs = append(errs, m.server.Close())
		}
	}
	return errors.Join(errs...)
}
