package bench

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"rankcache/internal/cli"
	"rankcache/internal/lab/load"
	v1 "rankcache/proto/rankcache/v1"
)

// rpcTop is the path of the method that is measured.
const rpcTop = "/rankcache.v1.Boards/GetTop"

// rpcGoal is the most that a call may cost, in calls of the bare handler.
const rpcGoal = 1.35

// rpcProtocol is one way to call the method.
type rpcProtocol struct {
	name, contentType string
	json, framed      bool
}

var rpcProtocols = []rpcProtocol{
	{"connect", "application/proto", false, false},
	{"connect JSON", "application/json", true, false},
	{"grpc", "application/grpc", false, true},
}

func (p rpcProtocol) request() (body []byte) {
	m := &v1.GetTopRequest{Address: &v1.Address{Board: string(benchBoardID)}, Limit: 50}
	if p.json {
		body, _ = protojson.Marshal(m) // strings and numbers
		return body
	}
	body, _ = proto.Marshal(m)
	if p.framed {
		body = append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(body))), body...)
	}
	return body
}

func (p rpcProtocol) question() load.Question {
	q := get(rpcTop, "Content-Type: "+p.contentType)
	if q.Body, q.HTTP2 = p.request(), p.framed; p.framed {
		q.Fields = append(q.Fields, "Te: trailers")
	}
	return q
}

// rpcReport is the stable JSON of bench rpc. Figures are medians over the rounds.
type rpcReport struct {
	Machine readMachine              `json:"machine"`
	Rounds  int                      `json:"rounds"`
	Rows    []rpcRow                 `json:"rows"`
	Ratios  map[string]readRatioLine `json:"ratios"`
}

type rpcRow struct {
	Protocol string  `json:"protocol"`
	CPU      float64 `json:"cpu_us"`      // of the sidecar, for each call
	BareCPU  float64 `json:"bare_cpu_us"` // of a bare handler that returns the same message
	Bytes    int     `json:"bytes"`       // of the body of an answer
}

type rpcBench struct {
	readBench
	calls int
}

func newBenchRPCCommand() *cobra.Command {
	b := &rpcBench{}
	cmd := &cobra.Command{
		Use:   "rpc",
		Short: "Measure GetTop over Connect and gRPC beside a bare handler with the same message",
		Long: `Start the listener for Connect and gRPC with a super-hot board, and the same HTTP server with
a handler of connect-go that returns the same message, and call them in turn. CPU time is that of the server's
own process. Needs Linux and h2load (Debian's package nghttp2-client) in PATH.`,
		Example: "  rankcache-lab bench rpc\n  rankcache-lab bench rpc -o json --rounds 3",
		Args:    cli.NoArgs,
	}
	flags := cmd.Flags()
	flags.IntVar(&b.rounds, "rounds", benchRounds, "rounds; the figures are medians over them")
	flags.IntVar(&b.calls, "calls", 20_000, "calls of each run")
	flags.IntVar(&b.connections, "connections", 16, "calls at once")
	flags.IntVar(&b.members, "board-members", benchMembers, "members of the board")
	output := cli.OutputFlag(flags, "text")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		b.progress = &lineWriter{to: cmd.ErrOrStderr()}
		report, err := b.run(cmd.Context())
		if err != nil {
			return err
		}
		return cli.PrintAs(cmd.OutOrStdout(), *output, report, report.print)
	}
	return cmd
}

func (b *rpcBench) run(ctx context.Context) (*rpcReport, error) {
	if b.rounds < 1 || b.calls < 1 || b.connections < 1 || b.members < 1000 {
		return nil, cli.Usagef("want --rounds, --calls and --connections of 1 or more, 1000 or more --board-members")
	}
	if err := load.Installed("h2load"); err != nil {
		return nil, err
	}
	all, err := newBenchServers(ctx, &b.readBench)
	if err != nil {
		return nil, err
	}
	defer all.close()
	report := &rpcReport{Machine: thisMachine(false), Rounds: b.rounds, Ratios: make(map[string]readRatioLine)}
	for _, p := range rpcProtocols {
		row, ratios := rpcRow{Protocol: p.name}, []float64(nil)
		var full, bare []float64
		for range b.rounds {
			for _, kind := range []string{"rpc", "bare rpc"} {
				server, err := all.get(kind)
				if err != nil {
					return nil, err
				}
				cpu, n, err := b.measureCalls(ctx, server, p)
				if err != nil {
					return nil, fmt.Errorf("%s of %s: %w", p.name, kind, err)
				}
				if row.Bytes = n; kind == "rpc" {
					full = append(full, cpu)
				} else {
					bare = append(bare, cpu)
				}
			}
			ratios = append(ratios, full[len(full)-1]/bare[len(bare)-1])
		}
		row.CPU, row.BareCPU = median(full), median(bare)
		value := median(ratios)
		report.Rows = append(report.Rows, row)
		report.Ratios[p.name] = readRatioLine{value, rpcGoal, "at_most", value <= rpcGoal}
	}
	return report, nil
}

// measureCalls returns the server's CPU time for each call, in microseconds, and the length of
// an answer.
func (b *rpcBench) measureCalls(ctx context.Context, server *benchServer, p rpcProtocol) (cpu float64, n int, err error) {
	cfg := load.Config{Target: server.target("tcp"), Question: p.question(), Connections: b.connections, Pids: server.pids}
	if p.framed { // all callers share a connection
		cfg.Connections, cfg.Streams = 1, b.connections
	}
	res, body, err := load.Ask(cfg.Target, &cfg.Question)
	if err == nil && (res.StatusCode != http.StatusOK || p.framed && res.Trailer.Get("Grpc-Status") != "0") {
		err = fmt.Errorf("answered %s, %v: %.200q", res.Status, res.Trailer, body)
	}
	for _, cfg.Calls = range []int{b.calls/10 + 1, b.calls} { // the first warm the server up
		if err != nil {
			return 0, 0, err
		}
		var got *load.Result
		if got, err = load.Run(ctx, cfg); err == nil {
			cpu, err = micros(got.CPUPerRequest()), got.Error
		}
	}
	return cpu, len(body), err
}

func (r *rpcReport) print(to io.Writer) error {
	fmt.Fprintf(to, "%-14s %8s %10s %8s %7s\n", "protocol", "cpu us", "bare us", "ratio", "bytes")
	for _, row := range r.Rows {
		if _, err := fmt.Fprintf(to, "%-14s %8.1f %10.1f %8.2f %7d\n", row.Protocol, row.CPU, row.BareCPU, r.Ratios[row.Protocol].Value, row.Bytes); err != nil {
			return err
		}
	}
	return nil
}
