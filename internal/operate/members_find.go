package operate

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rankcache"
	"rankcache/internal/cli"
	"rankcache/internal/places"
	"rankcache/ledger"
)

type findOptions struct {
	cli.Options
	database *cli.Secret
	member   string
	topics   int64
	rate     int64
}

func newFindCommand() *cobra.Command {
	o := &findOptions{}
	cmd := &cobra.Command{
		Use:   "find",
		Short: "List each place where the id of a member is kept, and until when",
		Long: `Walk all keys of Redis, each table of the ledger once, and with --topics the newest
records of the topics, and list the places that have the id of a member: how many, the oldest,
and until when it stays by itself. It changes nothing. What has the id within a text counts
wherever it occurs, so that a short id may count too often, and never too seldom. Files,
memory, logs and backups are named, and not looked at.
Redis is asked for 200 keys at a time, --rate keys a second. A user with an ACL needs SCAN,
TYPE, ZSCORE, GET, HSCAN, SSCAN, ZSCAN and PTTL on all keys.

Exit codes: 0 listed; 2 bad flag; 3 a server could not be asked: its places are named.`,
		Example: `  rankcache members find --member 1000123 --redis redis://redis:6379
  rankcache members find --member 1000123 --redis redis://redis:6379 --database-file /run/secrets/database --kafka kafka:9092 --topics 100000 -o json`,
		Args: cli.NoArgs,
	}
	o.register(cmd.Flags())
	output := cli.OutputFlag(cmd.Flags(), "text")
	cmd.RunE = reporting(o.Load, output, func(ctx context.Context, _ io.Writer) (r *findReport, err error) {
		err = o.with(func(f *places.Finder) { r = &findReport{o.member, f.Find(ctx, o.member).Places} })
		return r, err
	})
	return cmd
}

func (o *findOptions) register(flags *pflag.FlagSet) {
	flags.StringVar(&o.member, "member", "", "`id` of the member")
	flags.Int64Var(&o.topics, "topics", 0, "how many of the newest `records` of each partition are looked at; 0: no topic is")
	flags.Int64Var(&o.rate, "rate", 20_000, "`keys` a second that are walked at most")
	o.database = cli.SecretVar(flags, "database", "", "`URL` of the ledger's database, as that of rankcache ledger; empty: it is not looked at")
	o.RegisterRedis(flags)
	flags.StringVar(&o.Kafka, "kafka", "", "Kafka `brokers`, with --topics; kafka.<key> passes any librdkafka setting")
	o.RegisterNames(flags)
}

// with calls do with a finder, whose clients end with it. The error is that of a setting.
func (o *findOptions) with(do func(*places.Finder)) error {
	switch err := rankcache.CheckMember(o.member); {
	case err != nil:
		return cli.Usagef("--member: %w", err)
	case o.topics < 0:
		return cli.Usagef("--topics %d: want a number of records, or 0", o.topics)
	case o.rate < 1 || o.rate > maxBigRate:
		return cli.Usagef("--rate %d: want 1 to %d keys a second", o.rate, maxBigRate)
	}
	if o.topics > 0 {
		if err := o.NeedKafka("members find --topics", "it reads the topics"); err != nil {
			return err
		}
	}
	client, err := o.DialRedis()
	if err != nil {
		return err
	}
	defer client.Close()
	f := &places.Finder{Redis: client, Names: o.Names, Kafka: o.KafkaSettings(), Newest: o.topics, Pause: 200 * time.Second / time.Duration(o.rate)}
	if url := o.database.Get(); url != "" {
		if f.DB, err = ledger.OpenSQL(url, o.database.Get, o.DatabaseFiles("database", url)...); err != nil {
			return cli.Usagef("--database: %w", err)
		}
		defer f.DB.Close()
		f.Postgres = strings.HasPrefix(url, "postgres")
	}
	do(f)
	return nil
}

// findReport is the stable JSON of rankcache members find.
type findReport struct {
	Member string         `json:"member"`
	Places []places.Found `json:"places"`
}

func (r *findReport) err() error {
	n, first := 0, ""
	for i := range r.Places {
		if p := &r.Places[i]; p.Failed {
			n, first = n+1, cmp.Or(first, p.Place+": "+p.Unseen)
		}
	}
	if n == 0 {
		return nil
	}
	return &cli.ExitError{Code: cli.ExitDiffers, Err: fmt.Errorf("%d places could not be reached, and may have the member: check the first, %s", n, first)}
}

func (r *findReport) print(to io.Writer) error {
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "PLACE\tFOUND\tOLDEST\tSTAYS\tONE OF THEM")
	for i := range r.Places {
		p := &r.Places[i]
		found, oldest := fmt.Sprint(p.Count), "-"
		switch {
		case p.Failed:
			found = "NOT REACHED: " + p.Unseen
		case p.Unseen != "":
			found = "not looked at: " + p.Unseen
		}
		if p.Oldest != nil {
			oldest = p.Oldest.Format(time.RFC3339)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", p.Place, found, oldest, cmp.Or(p.Stays, "-"), cmp.Or(p.Where, "-"))
	}
	return table.Flush()
}
