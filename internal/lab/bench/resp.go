package bench

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"rankcache/internal/cli"
	"rankcache/internal/lab/load"
)

// respTop50 is the command of the rows that read a page.
var respTop50 = []string{"ZREVRANGE", string(benchBoardID), "0", "49", "WITHSCORES"}

// respPassed is one that only Redis answers, by a few bytes.
var respPassed = []string{"STRLEN", "rankcache:none"}

// respRows are the servers and the commands that they are sent.
var respRows = []struct {
	name, server string
	command      []string
}{
	{"ours zrevrange50", "resp", respTop50},
	{"redis zrevrange50", "redis", respTop50},
	{"redcon get", "redcon", respTop50},
	{"ours pass", "resp", respPassed},
	{"bare relay", "relay", respPassed},
}

// respRatios are the goals: of's CPU by to's.
var respRatios = []struct {
	name, of, to string
	pipeline     int
	goal         float64
}{
	{"local_by_redcon", "ours zrevrange50", "redcon get", 1, 1.1},
	{"local_by_redcon_pipelined", "ours zrevrange50", "redcon get", 16, 1.3},
	{"passed_by_relay", "ours pass", "bare relay", 1, 1.3},
	{"passed_by_relay_pipelined", "ours pass", "bare relay", 16, 1.3},
}

// respReport is the stable JSON of bench resp. Figures are medians over the rounds.
type respReport struct {
	Machine  readMachine              `json:"machine"`
	Settings readSettings             `json:"settings"`
	Rows     []respRow                `json:"rows"`
	Ratios   map[string]readRatioLine `json:"ratios"`
}

type respRow struct {
	Name      string  `json:"name"`
	Pipeline  int     `json:"pipeline"`
	Transport string  `json:"transport"`
	RPS       float64 `json:"rps"`    // replies a second
	CPU       float64 `json:"cpu_us"` // of the server's process, for each reply
	Busy      float64 `json:"server_busy"`

	command []string
	server  *benchServer
	rounds  []*load.Result
}

// respBench is one run of bench resp, which has the servers and settings of bench read.
type respBench struct{ readBench }

func newBenchRESPCommand() *cobra.Command {
	b := &respBench{}
	cmd := &cobra.Command{
		Use:   "resp",
		Short: "Measure reads and passed commands over RESP beside Redis and bare servers",
		Long: `Start servers on loopback and load them in turn, round after round, as fast as they
answer: the listener for clients of Redis with a super-hot board, redis-server with the same
board, a bare server of the library redcon that writes the same bytes, and a relay that copies
bytes to Redis. CPU time is that of the server's own process. Needs Linux and redis-server.`,
		Example: `  rankcache-lab bench resp
  rankcache-lab bench resp -o json --rounds 3`,
	}
	flags := cmd.Flags()
	flags.IntVar(&b.rounds, "rounds", benchRounds, "rounds; the figures are medians over them")
	flags.DurationVar(&b.duration, "duration", benchDuration, "of each run")
	flags.IntVar(&b.connections, "connections", benchConns, "connections at once")
	flags.IntVar(&b.members, "board-members", benchMembers, "members of the board")
	return reporting(cmd, &b.progress, b.run, (*respReport).print)
}

func (b *respBench) run(ctx context.Context) (report *respReport, err error) {
	if b.rounds < 1 || b.duration <= 0 || b.connections < 1 || b.members < 1000 {
		return nil, cli.Usagef("want --rounds and --connections of 1 or more, a --duration, 1000 or more --board-members")
	}
	if err := load.Installed("redis-benchmark"); err != nil {
		return nil, err
	}
	if b.servers, err = newBenchServers(ctx, &b.readBench); err != nil {
		return nil, err
	}
	defer b.servers.close()
	report = &respReport{Settings: readSettings{b.rounds, b.duration.Seconds(), b.connections, b.members, 0}}
	for _, row := range respRows {
		server, err := b.servers.get(row.server)
		if err != nil {
			return nil, err
		}
		if server == nil {
			return nil, fmt.Errorf("bench resp needs %v", b.servers.missing)
		}
		for _, transport := range []string{"tcp", "unix"} {
			for _, pipeline := range []int{1, 16} {
				report.Rows = append(report.Rows, respRow{Name: row.name, Pipeline: pipeline, Transport: transport, command: row.command, server: server})
			}
		}
	}
	if err := report.agree(); err != nil {
		return nil, err
	}
	undo, err := b.pin()
	if err != nil {
		return nil, err
	}
	defer undo()
	report.Machine = thisMachine(b.pinned)
	for range b.rounds {
		for i := range report.Rows {
			if err := b.measure(ctx, &report.Rows[i]); err != nil {
				return nil, err
			}
		}
	}
	report.finish()
	return report, nil
}

// agree checks that all servers give the same reply to the same command.
func (r *respReport) agree() error {
	replies := make(map[string][]byte)
	for _, row := range r.Rows {
		got, err := load.AskRedis(row.server.target(row.Transport), row.command...)
		if err != nil {
			return fmt.Errorf("%s over %s: %w", row.Name, row.Transport, err)
		}
		if want := replies[row.command[0]]; want != nil && !bytes.Equal(got, want) {
			return fmt.Errorf("%s over %s answers %.80q, others %.80q", row.Name, row.Transport, got, want)
		}
		replies[row.command[0]] = got
	}
	return nil
}

func (b *respBench) measure(ctx context.Context, row *respRow) error {
	got, err := load.Run(ctx, load.Config{Target: row.server.target(row.Transport), Question: load.Question{Command: row.command, Pipeline: row.Pipeline},
		Connections: b.connections, Window: b.duration, Pids: row.server.pids})
	if err != nil {
		return fmt.Errorf("%s over %s: %w", row.Name, row.Transport, err)
	}
	row.rounds = append(row.rounds, got)
	return nil
}

func (r *respReport) finish() {
	for i := range r.Rows {
		row := &r.Rows[i]
		var rps, cpu, busy []float64
		for _, round := range row.rounds {
			rps, busy = append(rps, round.Rate()), append(busy, round.Busy())
			cpu = append(cpu, micros(round.CPUPerRequest()))
		}
		row.RPS, row.CPU, row.Busy = median(rps), median(cpu), median(busy)
	}
	r.Ratios = make(map[string]readRatioLine)
	for _, ratio := range respRatios {
		for _, transport := range []string{"tcp", "unix"} {
			of, to := r.find(ratio.of, transport, ratio.pipeline), r.find(ratio.to, transport, ratio.pipeline)
			var values []float64
			for i := range of.rounds {
				values = append(values, micros(of.rounds[i].CPUPerRequest())/micros(to.rounds[i].CPUPerRequest()))
			}
			value := median(values)
			r.Ratios[ratio.name+"_"+transport] = readRatioLine{value, ratio.goal, "at_most", value <= ratio.goal}
		}
	}
}

func (r *respReport) find(name, transport string, pipeline int) *respRow {
	for i := range r.Rows {
		if row := &r.Rows[i]; row.Name == name && row.Transport == transport && row.Pipeline == pipeline {
			return row
		}
	}
	return nil
}

func (r *respReport) print(w io.Writer) error {
	for _, row := range r.Rows {
		if _, err := fmt.Fprintf(w, "%-18s %-4s x%-2d %9.0f replies/s %6.2f us CPU, busy %.2f\n", row.Name, row.Transport, row.Pipeline, row.RPS, row.CPU, row.Busy); err != nil {
			return err
		}
	}
	for _, ratio := range respRatios {
		for _, transport := range []string{"tcp", "unix"} {
			line := r.Ratios[ratio.name+"_"+transport]
			if _, err := fmt.Fprintf(w, "%-32s %.2f, want at most %.2f\n", ratio.name+" "+transport, line.Value, line.Goal); err != nil {
				return err
			}
		}
	}
	return nil
}
