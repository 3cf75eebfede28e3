package operate

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"rankcache/internal/cli"
	"rankcache/internal/try"
	"rankcache/sidecar/resp"
)

// tried is what rankcache try prints.
type tried struct{ *try.Report }

func (t tried) print(to io.Writer) error { return t.Print(to) }
func (tried) err() error                 { return nil }

// NewTryCommand returns rankcache try.
func NewTryCommand() *cobra.Command {
	o, length, yes := &cli.Options{}, 10*time.Second, false
	cmd := &cobra.Command{
		Use:   "try",
		Short: "Watch a Redis for some seconds, and tell what rankcache would spare it",
		Long: `Watch a Redis: which sorted sets are read most, which commands would be answered from
memory, and what Redis would be spared. It changes nothing, and needs neither Kafka nor a
rooms file. Which commands Redis is given it tells by INFO commandstats; which keys are
read only MONITOR tells, which can cost a busy Redis half of its throughput while it
runs: for that it asks first, and it ends after --for, or half a million commands.

Exit codes: 0 watched; 1 failed; 2 bad flag.`,
		Example: `  rankcache try --redis redis://redis:6379
  rankcache try --redis redis://redis:6379 --for 30s --yes -o json`,
		Args: cli.NoArgs,
	}
	cmd.Flags().DurationVar(&length, "for", length, "how long to watch, up to 1m")
	cmd.Flags().BoolVar(&yes, "yes", false, "MONITOR may be used: do not ask")
	o.RegisterRedis(cmd.Flags())
	o.RegisterNames(cmd.Flags())
	output := cli.OutputFlag(cmd.Flags(), "text")
	cmd.RunE = reporting(o.Load, output, func(ctx context.Context, progress io.Writer) (tried, error) {
		if length <= 0 || length > time.Minute {
			return tried{}, cli.Usagef("--for %v: want more than 0, up to 1m", length)
		}
		client, err := o.DialRedis()
		if err != nil {
			return tried{}, err
		}
		defer client.Close()
		one, ok := client.(*redis.Client)
		if !ok {
			return tried{}, cli.Usagef("--redis-mode %s: one server is watched: give a master's address, and --redis-mode single", o.RedisMode)
		}
		var local []string
		for _, c := range resp.Commands() {
			if strings.HasPrefix(c.What, "answered here") {
				local = append(local, c.Name)
			}
		}
		report, err := try.Watch(ctx, one, length, local, yes || consent(progress, cmd.InOrStdin()))
		return tried{report}, err
	})
	return cmd
}

// consent asks whether MONITOR may be used; an end of input is a no.
func consent(to io.Writer, from io.Reader) bool {
	fmt.Fprint(to, "Use MONITOR, which can cost a busy Redis half of its throughput meanwhile? Without it no key is named. [y/N] ")
	line, _ := bufio.NewReader(from).ReadString('\n')
	return strings.EqualFold(strings.TrimSpace(line), "y")
}
