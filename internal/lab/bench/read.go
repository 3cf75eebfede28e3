package bench

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"rankcache/internal/cli"
	"rankcache/internal/lab/load"
)

// bench read loads real servers on loopback in turn:
//
//	read.go           the command, the rounds, one measurement
//	read_servers.go   starting and filling the servers
//	read_rivals.go    nginx and Varnish
//	read_question.go  requests, and whether the first reply is right
//	read_report.go    the rows; medians, ratios, JSON and table
//	target*.go        the servers that are programs of ours
//
// Of those, fixed body is what is left without a board, sortedset and plain are what people would write instead, and
// redcon and relay are what a page over RESP costs at least: no package has them.

// readBench is one run.
type readBench struct {
	rounds      int
	duration    time.Duration
	connections int
	members     int
	profiles    int
	only        string
	pprof       string // folder; "": no profiles
	progress    io.Writer

	servers *benchServers
	pinned  bool // the servers have a core of their own
	cases   []*readCase
}

// readCase is one row that is being measured.
type readCase struct {
	row       readSpec
	transport string
	target    load.Target
	question  load.Question
	server    *benchServer
	samples   []readSample
}

// readSample is what one round showed of one row.
type readSample struct {
	closed, paced *load.Result
}

// Defaults of bench read.
const (
	benchRounds   = 5
	benchDuration = time.Second // of the closed and of the paced run, each
	benchConns    = 64
	benchProfiles = 500_000
	pacedRate     = 5000 // requests a second at which latencies are measured
)

func newBenchReadCommand() *cobra.Command {
	b := &readBench{}
	cmd := &cobra.Command{
		Use:   "read",
		Short: "Measure reads beside a fixed body, nginx, Redis and what people would write instead",
		Long: `Start real servers on loopback, fill them with the same board, and load them in
turn, round after round. A round loads each server as fast as it answers (requests/s, CPU
time of the server's processes for each) and then at 5,000 requests/s, or half of what it
answers if that is less (p50, p99, p99.9, over HTTP only). With two cores or more the
servers run on the first and the load on the second. The load is h2load, and
redis-benchmark for Redis: where a server is busy for less than 0.9 of a core, the load was
the limit of requests/s.

Our own rows run with GOMAXPROCS=2, Go's own choice in a container that is limited
to one core. Updates are applied to the board in the same process, as replay does it
but without Kafka and decoding. Needs Linux and h2load (Debian's package nghttp2-client);
redis-server, valkey-server, nginx and varnishd are looked for in PATH, and what is missing is listed.`,
		Example: `  rankcache-lab bench read
  rankcache-lab bench read -o json > read.json
  rankcache-lab bench read --only 'top50 super-hot|fixed' --rounds 3`,
	}
	flags := cmd.Flags()
	flags.IntVar(&b.rounds, "rounds", benchRounds, "rounds; the figures are medians over them")
	flags.DurationVar(&b.duration, "duration", benchDuration, "of each of the two runs of a row in a round")
	flags.IntVar(&b.connections, "connections", benchConns, "connections at once")
	flags.IntVar(&b.members, "board-members", benchMembers, "members of the board")
	flags.IntVar(&b.profiles, "profiles", benchProfiles, "profiles cached in the busy rows")
	flags.StringVar(&b.only, "only", "", "measure rows whose name and transport match this regular `expression`")
	flags.StringVar(&b.pprof, "pprof", "", "`folder` to put a CPU profile of each of our own servers into, taken row by row after the last round")
	return reporting(cmd, &b.progress, b.run, (*readReport).print)
}

func (b *readBench) run(ctx context.Context) (report *readReport, err error) {
	only, err := regexp.Compile(b.only)
	if err != nil || b.rounds < 1 || b.duration <= 0 || b.connections < 1 || b.members < 1000 || b.profiles < b.members {
		return nil, cli.Usagef("want --rounds and --connections of 1 or more, a --duration, 1000 or more --board-members, no fewer --profiles, and --only a regular expression (%v)", err)
	}
	if err := load.Installed("h2load"); err != nil {
		return nil, err
	}
	if b.servers, err = newBenchServers(ctx, b); err != nil {
		return nil, err
	}
	defer b.servers.close()
	if err := b.prepare(only); err != nil {
		return nil, err
	}
	undo, err := b.pin()
	if err != nil {
		return nil, err
	}
	defer undo()
	if err := b.measureAll(ctx); err != nil {
		return nil, err
	}
	return b.report(), nil
}

// measureAll measures the rounds. A row that fails is not measured again: what it had before is kept.
func (b *readBench) measureAll(ctx context.Context) error {
	for round := range b.rounds {
		for _, c := range b.cases {
			if len(c.samples) < round {
				continue
			}
			if err := b.measure(ctx, c); ctx.Err() != nil {
				return err
			} else if err != nil {
				_ = c.setUpdates(0) // other rows may be of its server
				why := fmt.Sprintf("%s over %s from round %d on: %v", c.row.name, c.transport, len(c.samples)+1, err)
				b.servers.missing = append(b.servers.missing, why)
				fmt.Fprintln(b.progress, "LEFT OUT:", why)
			}
		}
		fmt.Fprintf(b.progress, "round %d of %d done\n", round+1, b.rounds)
	}
	b.cases = slices.DeleteFunc(b.cases, func(c *readCase) bool { return len(c.samples) == 0 })
	if len(b.cases) == 0 {
		return fmt.Errorf("nothing could be measured: %s", strings.Join(b.servers.missing, "; "))
	}
	return nil
}

// prepare makes the cases: it starts their servers and looks whether the first
// reply of each is right.
func (b *readBench) prepare(only *regexp.Regexp) error {
	for _, row := range readRows {
		for _, transport := range []string{"tcp", "unix"} {
			if !only.MatchString(row.name + " " + transport) {
				continue
			}
			c, err := b.newCase(row, transport)
			if err != nil {
				return fmt.Errorf("%s over %s: %w", row.name, transport, err)
			}
			if c != nil {
				b.cases = append(b.cases, c)
			}
		}
	}
	if len(b.cases) == 0 {
		return cli.Usagef("--only %q leaves no row", b.only)
	}
	return nil
}

// newCase returns nil if the row's server is not installed here.
func (b *readBench) newCase(row readSpec, transport string) (*readCase, error) {
	server, err := b.servers.get(row.server)
	if server == nil || err != nil {
		return nil, err
	}
	c := &readCase{row: row, transport: transport, server: server, target: server.target(transport)}
	if c.question, err = row.ask(b, c.target); err == nil && row.source != "" {
		if err := awaitSource(c.target, &c.question, row.source); err != nil {
			return nil, err
		}
		c.question, err = row.ask(b, c.target) // a hot board's first answer came from Redis
	}
	if row.updates > 0 {
		c.question.Length = 0 // scores grow, and pages with them
	}
	return c, err
}

// pin parts the servers from the load, and returns how to undo that for this
// process. With one core they have to share it.
func (b *readBench) pin() (undo func(), err error) {
	cores, err := load.Cores()
	if err != nil {
		return nil, err
	}
	if len(cores) < 2 {
		fmt.Fprintln(b.progress, "one core: the servers and the load share it, so that the rates are too low")
		return func() {}, nil
	}
	if err := b.servers.pin(cores[0]); err != nil {
		return nil, err
	}
	b.pinned = true
	return func() { _ = load.Pin(os.Getpid(), cores...) }, load.Pin(os.Getpid(), cores[1])
}

// measure adds one round of one row.
func (b *readBench) measure(ctx context.Context, c *readCase) error {
	if err := awaitSource(c.target, &c.question, c.row.source); err != nil {
		return err
	}
	if err := c.setUpdates(c.row.updates); err != nil {
		return err
	}
	cfg := load.Config{Target: c.target, Question: c.question, Connections: b.connections, Window: b.duration, Pids: c.server.pids}
	closed, err := load.Run(ctx, cfg)
	if err != nil {
		return err
	}
	paced := &load.Result{}
	if cfg.Rate = min(closed.Rate()/2, pacedRate, 100*float64(b.connections)); cfg.Rate > 0 && c.question.Command == nil {
		if paced, err = load.Run(ctx, cfg); err != nil {
			return err
		}
	}
	c.samples = append(c.samples, readSample{closed, paced})
	if b.pprof != "" && len(c.samples) == b.rounds && c.server.order != nil {
		cfg.Rate = 0
		if err := b.profileOne(ctx, c, cfg); err != nil {
			return err
		}
	}
	return c.setUpdates(0)
}

func (c *readCase) setUpdates(perSecond int) error {
	if c.row.updates == 0 {
		return nil
	}
	return c.server.order(fmt.Sprint("updates ", perSecond))
}

// profileOne runs a row once more, for its CPU profile alone.
func (b *readBench) profileOne(ctx context.Context, c *readCase, cfg load.Config) error {
	dir, err := filepath.Abs(b.pprof)
	if err != nil {
		return err
	}
	name := strings.NewReplacer(" ", "-", "/", "-").Replace(c.row.name + " " + c.transport)
	if err := c.server.order("profile " + filepath.Join(dir, name+".pprof")); err != nil {
		return err
	}
	if _, err := load.Run(ctx, cfg); err != nil {
		return err
	}
	return c.server.order("profile")
}

// lineWriter lets the servers' errors and our own progress go to one place.
type lineWriter struct {
	mu sync.Mutex
	to io.Writer
}

func (w *lineWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.to.Write(p)
}
