package operate

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"rankcache/class"
	"rankcache/controller"
	"rankcache/hotkey"
	"rankcache/internal/cli"
	"rankcache/internal/plan"
	"rankcache/keeper"
	"rankcache/profile"
	"rankcache/replay"
)

func NewPlanCommand() *cobra.Command {
	q, log, primes, members, lingering := plan.Question{}, "", "", []string(nil), []string(nil)
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "Compute the cost of a fleet of sidecars, and whether it pays",
		Long: `Compute memory and CPU of a pod, the time to open, Kafka's traffic and the load of
Redis with and without sidecars, CPU and memory of live streams and the growth of the ledger's
database, from the figures in docs/BENCHMARKS.md: good for orders of magnitude. Without
--pods it computes how many pods the reads need, at half a core for each sidecar. It
tells you when you do not need sidecars. It calls no server.`,
		Example: `  rankcache plan --members 57000,210000 --updates 500 --requests 200000 --pods 40
  rankcache plan --requests 2000000
  rankcache plan --requests 3000 --pods 4 -o json`,
		Args: cli.NoArgs,
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&members, "members", nil, "`members` of each super-hot board; 16000000/16 for one that is split into 16 shards")
	flags.StringSliceVar(&lingering, "lingering", nil, "`members` of each board of an ended period that is in memory beside them: see linger of classes")
	flags.IntVar(&q.IDBytes, "id-bytes", 10, "length of a member's id, in `bytes`")
	flags.Float64Var(&q.Updates, "updates", 0, "`updates/s` of all super-hot boards together")
	flags.DurationVar(&q.History, "history", 3*time.Hour, "`length` of the log that a starting sidecar replays")
	flags.Float64Var(&q.Requests, "requests", 0, "`reads/s` of the whole fleet")
	flags.Float64Var(&q.Small, "small", 0.05, "`share` of the reads, 0 to 1, that are of small boards and answered by Redis")
	flags.Float64Var(&q.Hot, "hot-reads", 0, "`share` of the reads, 0 to 1, that are of hot boards, of which pages alone are in memory (default all that are not of small boards, but none with --members)")
	flags.Float64Var(&q.Own, "own", 0, "`share` of the reads, 0 to 1, that ask for a member's own rank, alone or beside a page")
	flags.Float64Var(&q.Around, "around", 0, "`share` of the reads, 0 to 1, that ask for a member's neighbours")
	flags.IntVar(&q.HotBoards, "hot-boards", 10, "`boards` that are hot at the same time")
	flags.DurationVar(&q.Refresh, "hot-refresh", hotkey.DefaultRefresh, "interval of reading a hot page from Redis")
	flags.IntVar(&q.Pods, "pods", 0, "`pods` with a sidecar; without it, as many as the reads need")
	flags.IntVar(&q.ProfileMiB, "profile-budget-mib", profile.DefaultBudget>>20, "heap of the profile cache, in `MiB`; 0: none")
	flags.DurationVar(&q.PollEvery, "poll-every", hotkey.DefaultPollEvery, "interval of the fleet's calls to the cloud's API; 0: none")
	flags.IntVar(&q.UpdateBytes, "update-bytes", 0, "`bytes` of one update; 0: as the writer encodes it")
	flags.IntVar(&q.Streams, "streams", 0, "live `streams` of one pod")
	flags.IntVar(&q.HTTP2, "streams-http2", 0, "how many of the `streams` are over HTTP/2, as those of gRPC: they take more memory, and more CPU than is counted")
	flags.Float64Var(&q.StreamRate, "stream-events", 1, "`events/s` of one live stream")
	flags.Float64Var(&q.Rolling, "rolling-updates", 0, "how many of the `updates/s` change boards that a rolling class sums up")
	flags.StringVar(&primes, "primes", "", "`members/period` of the boards of rolling classes together, such as 210000/24h")
	flags.IntVar(&q.PodsPerNode, "pods-per-node", 0, "`pods` that share the sidecar of their node; 0: each has its own")
	flags.IntVar(&q.Keepers, "keepers", 0, "`processes` of rankcache keep; 0: each sidecar looks at Redis itself")
	flags.DurationVar(&q.StatesEvery, "states-every", keeper.DefaultEvery, "the keepers' `interval`")
	flags.IntVar(&q.AuditRows, "audit-rows", replay.DefaultAuditRows, "`rows` a second that the keeper, or each sidecar without one, compares with Redis")
	flags.DurationVar(&q.SnapshotEvery, "snapshot-every", 0, "how often keepers save boards for sidecars that start; 0: these read the log")
	flags.IntVar(&q.Topics, "topics", 0, "`topics` of the updates; 0: one for each super-hot board")
	flags.IntVar(&q.PrimeRate, "prime-rate", controller.DefaultPrimeRate, "primes/s of the controller")
	flags.Float64Var(&q.LedgerRows, "ledger-rows", 0, "`changes/s` that the ledger keeps; 0: no ledger")
	flags.DurationVar(&q.LedgerKeep, "ledger-keep", 0, "how long the ledger keeps changes; 0 for ever")
	cli.ChoiceVar(flags, &log, "log", "", cli.LogKafka, "where the updates are: kafka, or redis, without Kafka", cli.LogKafka, cli.LogRedis)
	output := cli.OutputFlag(flags, "text")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if flags.Changed("pods") && q.Pods < 1 {
			return cli.Usagef("--pods %d: want 1 or more", q.Pods)
		}
		if err := errors.Join(parseMembers(&q.Members, "members", members), parseMembers(&q.Lingering, "lingering", lingering), parsePrimes(&q, primes)); err != nil {
			return err
		}
		if q.LogInRedis = log == cli.LogRedis; len(q.Members) == 0 && !flags.Changed("hot-reads") {
			q.Hot = max(1-q.Small, 0)
		}
		if wrong := q.Check(); wrong != "" {
			return cli.Usagef("--%s", wrong)
		}
		a := plan.Make(q)
		return cli.PrintAs(cmd.OutOrStdout(), *output, a, func(to io.Writer) error { return printPlan(to, &a) })
	}
	return cmd
}

// parseMembers reads the members of boards, each a number or that of its shards, which are boards in memory.
func parseMembers(to *[]int, flag string, boards []string) error {
	for _, text := range boards {
		members, shards, split := strings.Cut(text, "/")
		n, err := strconv.Atoi(members)
		parts := 1
		if split && err == nil {
			parts, err = strconv.Atoi(shards)
		}
		if err != nil || parts < 1 || parts > class.MaxShards {
			return cli.Usagef("--%s %.40q: want members, or members/shards with up to %d shards, such as 16000000/16", flag, text, class.MaxShards)
		}
		for i := range parts {
			*to = append(*to, (n+i)/parts)
		}
	}
	return nil
}

func parsePrimes(q *plan.Question, text string) (err error) {
	if text == "" {
		return nil
	}
	members, period, _ := strings.Cut(text, "/")
	q.Primes, err = strconv.Atoi(members)
	if err == nil {
		q.PrimePeriod, err = time.ParseDuration(period)
	}
	if err != nil {
		return cli.Usagef("--primes %.40q: want members and period, such as 210000/24h", text)
	}
	return nil
}

func printPlan(to io.Writer, a *plan.Answer) error {
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	pods := "%d"
	if a.PodsComputed {
		pods = fmt.Sprintf("%%d, so that each sidecar takes at most %g cores", plan.MaxPodCPU)
	}
	type line struct {
		what, format string
		values       []any
	}
	var kinds []line
	for _, k := range a.Reads {
		if k.PerSecond > 0 {
			kinds = append(kinds, line{k.Kind, "%.0f/s, %.0f %% from memory at %.1f µs of a pod each, else %.1f µs of Redis in %.0f calls each", []any{k.PerSecond, k.FromMemory * 100, k.PodMicros, k.RedisUs, k.RedisCalls}})
		}
	}
	for _, row := range append(kinds, []line{
		{"pods", pods, []any{a.Pods}},
		{"sidecars", "%d", []any{a.Sidecars}},
		{"memory of a pod", "%.0f MiB live, %.0f MiB as the lowest limit", []any{a.PodHeapMiB, a.PodMemoryMiB}},
		{"CPU of a pod", "%.2f cores for %.0f reads/s and %.0f updates/s", []any{a.PodCPU, a.PodReads, a.PodUpdates}},
		{"open after", "%.1f s: %.0f updates, %.0f MiB of log, %.0f MiB of snapshots", []any{a.OpenSeconds, a.LogUpdates, a.LogMiB, a.SnapshotMiB}},
		{"Kafka", "%.2f MB/s in, %.2f MB/s out to the fleet, %.0f MB when all pods start (%d B for each update, uncompressed)",
			[]any{a.KafkaIngressMB, a.KafkaEgressMB, a.RolloutMB, a.UpdateBytes}},
		{"Kafka, fetches", "%.0f/s of a sidecar, %.2f MB/s of the fleet beside the updates", []any{a.Fetches, a.KafkaFetchMB}},
		{"Redis without", "%.0f calls/s, %.2f cores", []any{a.RedisBefore, a.RedisBeforeCPU}},
		{"Redis with", "%.0f calls/s, %.2f cores", []any{a.RedisAfter, a.RedisAfterCPU}},
		{"Redis, of that at rest", "%.0f calls/s, %.0f commands/s, %.2f cores, %.2f MB/s", []any{a.RestTrips, a.RestCommands, a.RestCPU, a.RestRedisMB}},
		{"Redis, the log in it", "%.2f cores; at most %.0f MiB of order ids", []any{a.LogCPU, a.OrdersMiB}},
		{"one sidecar at rest", "%.3f cores and %.0f MiB of its own without a limit; %.1f commands/s and %.5f cores of Redis; %.0f KB/s of Kafka's fetches", []any{a.PodRestCPU, a.PodRestMiB, a.PodRestCommands, a.PodRestRedis, a.PodFetchKB}},
		{"writers", "%.2f cores", []any{a.WriterCPU}},
		{"cloud API", "%.0f calls/h of the whole fleet", []any{a.APICallsPerHour}},
		{"live streams", "%.0f events/s, %.3f cores and %.0f MiB of a pod, which are in its CPU and memory", []any{a.LiveEvents, a.LiveCPU, a.LiveMiB}},
		{"ledger", "%.0f MiB of the database a day, %s", []any{a.LedgerDayMiB, ledgerSize(a)}},
		{"rolling boards", "%.0f changes/s more, %.0f of them primes, which take %.0f s of a period", []any{a.RollingChanges, a.PrimesPerSecond, a.PrimeSeconds}},
		{"verdict", "%s: %s", []any{a.Verdict, strings.Join(a.Reasons, "; ")}},
	}...) {
		fmt.Fprintf(table, "%s\t%s\n", row.what, fmt.Sprintf(row.format, row.values...))
	}
	return table.Flush()
}

func ledgerSize(a *plan.Answer) string {
	if a.LedgerMiB == 0 {
		return "without end"
	}
	return fmt.Sprintf("%.0f MiB with the retention", a.LedgerMiB)
}
