package operate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"rankcache"
	"rankcache/internal/cli"
	"rankcache/origin"
	"rankcache/wire"
)

// verifyOptions are the settings of rankcache verify.
type verifyOptions struct {
	cli.Options
	board   string
	sidecar string
	// required returns whether the caller named the sidecar: then it has to answer.
	required func() bool
}

// NewVerifyCommand returns rankcache verify.
func NewVerifyCommand() *cobra.Command {
	o := &verifyOptions{}
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Add a board up in Redis, and report whether Redis or a sidecar's copy is wrong",
		Long: `Read every member of a board from Redis, add up their checksum, and compare it with
the one that the writer keeps in the board's meta, and with that of a sidecar's copy.
It reports which side is wrong: redis (its members are not those of its checksum,
because they were changed past the writer), copy, both, or none if they agree; and
it shows the meta in words. A split board is named by its own id: each of its shards is added up.
It changes nothing. Redis is read in pieces of 1,000 members; a board of up to 5,000 is
read in one instant, a larger one again, up to 5 times, if it changed meanwhile.

Exit codes: 0 neither is wrong, 1 unknown, 2 bad flag, 3 Redis or the copy is wrong, 4 Redis,
or the sidecar that --sidecar names, could not be asked.`,
		Example: `  rankcache verify --board 1_2_3 --redis redis://redis:6379
  rankcache verify --board 1_2_3 --sidecar http://10.0.0.7:8971 -o json
  kubectl exec app-0 -c rankcache -- rankcache verify --board 1_2_3`,
		Args: cli.NoArgs,
	}
	flags := cmd.Flags()
	flags.StringVar(&o.board, "board", "", "the `board`")
	flags.StringVar(&o.sidecar, "sidecar", cli.DefaultAdmin, "`address` of the admin port of the sidecar whose copy is compared; empty: none")
	o.RegisterRedis(flags)
	o.RegisterNames(flags)
	output := cli.OutputFlag(flags, "text")
	o.required = func() bool { return flags.Changed("sidecar") }
	cmd.RunE = reporting(o.Load, output, o.verify)
	return cmd
}

func (o *verifyOptions) verify(ctx context.Context, progress io.Writer) (*verifyReport, error) {
	board, err := rankcache.ParseBoardID(o.board)
	if err != nil {
		return nil, cli.Usagef("--board: %w", err)
	}
	client, err := o.DialRedis()
	if err != nil {
		return nil, err
	}
	defer client.Close()
	v := &verifier{board: board, origin: origin.New(client, o.Names, origin.WithTimeout(o.RedisTimeout), origin.WithData(func(rankcache.BoardID) bool { return true })), progress: progress}
	if o.sidecar != "" {
		v.sidecar = &cli.AdminClient{Admin: o.sidecar}
		if _, err := cli.ParseAddress("sidecar", o.sidecar); err != nil {
			return nil, err
		}
	}
	report, err := v.runWhole(ctx)
	switch {
	case err != nil && ctx.Err() == nil && !errors.Is(err, rankcache.ErrUnreadable): // away, or it does not tell this user
		return nil, &cli.ExitError{Code: cli.ExitUnasked, Err: fmt.Errorf("board %s can't be verified: %w", board, err)}
	case err == nil && o.required() && v.sidecarErr != nil && report.Wrong == wrongNone:
		report.Wrong, report.Reason = wrongUnknown, fmt.Sprintf("nothing is wrong in Redis, but --sidecar %s could not be asked: %v", o.sidecar, v.sidecarErr)
		report.unasked = true
	}
	return report, err
}

// Which side is wrong; "none" if they agree.
const (
	wrongNone    = "none"
	wrongRedis   = "redis"
	wrongCopy    = "copy"
	wrongBoth    = "both"
	wrongUnknown = "unknown"
)

// verifyReport is the stable JSON of rankcache verify. States are written as [rankcache.State.String] does.
type verifyReport struct {
	Board  rankcache.BoardID `json:"board"`
	Wrong  string            `json:"wrong"` // none, redis, copy, both or unknown
	Reason string            `json:"reason"`
	Redis  redisSide         `json:"redis"`
	Copy   *copySide         `json:"copy,omitempty"` // nil: there is none
	// CopyMissing is why there is none.
	CopyMissing string `json:"copy_missing,omitempty"`
	// Shards are those of a split board, whose state is theirs; Redis has their members then, and no state.
	Shards []*verifyReport `json:"shards,omitempty"`

	unasked bool // it is unknown because the sidecar could not be asked
}

// redisSide is the board in Redis.
type redisSide struct {
	State   string     `json:"state"`    // of its meta
	AddedUp string     `json:"added_up"` // the state with the sum of the members that were read
	Members int        `json:"members"`  // that were read
	Walks   int        `json:"walks"`
	TookMs  int64      `json:"took_ms"`
	Changed bool       `json:"changed"` // during each walk, so that they can't be compared
	Meta    *metaWords `json:"meta,omitempty"`
}

// copySide is a sidecar's copy of it.
type copySide struct {
	Sidecar string `json:"sidecar"`
	State   string `json:"state"`
	Proved  string `json:"proved_state,omitempty"` // the latest that it found equal to Redis's
	Redis   string `json:"redis_state"`            // Redis's at the sidecar's last read
}

// metaWords is a board's meta in words.
type metaWords struct {
	Life      string     `json:"life"`
	Adopting  bool       `json:"adopting"`
	Began     time.Time  `json:"run_began"`
	Members   uint64     `json:"members"`
	LastNow   time.Time  `json:"last_writer_time"`
	End       *time.Time `json:"period_end,omitempty"`
	Expires   *time.Time `json:"expires,omitempty"`
	Turn      uint64     `json:"order_turn"`
	OrderLife string     `json:"order_life"`
	Buckets   uint16     `json:"order_hashes"`
}

func inWords(m *wire.Meta) *metaWords {
	at := func(ms uint64) *time.Time {
		t := time.UnixMilli(int64(ms)).UTC()
		return &t
	}
	w := &metaWords{Life: m.Life.String(), Adopting: m.Adopting, Began: *at(m.Run >> runRandomBits), Members: m.Members, LastNow: *at(m.Now),
		Turn: m.Turn, OrderLife: (time.Duration(m.OrderLife) * time.Second).String(), Buckets: m.Buckets}
	if m.End > 0 {
		w.End = at(m.End)
	}
	if m.Expires > 0 {
		w.Expires = at(m.Expires)
	}
	return w
}

// runRandomBits are the lowest bits of a run; the others are its beginning in Unix milliseconds.
const runRandomBits = 10

// err returns the exit code as an error.
func (r *verifyReport) err() error {
	unknown := fmt.Errorf("board %s can't be verified: %s", r.Board, r.Reason)
	switch {
	case r.Wrong == wrongNone:
		return nil
	case r.unasked:
		return &cli.ExitError{Code: cli.ExitUnasked, Err: unknown}
	case r.Wrong == wrongUnknown:
		return unknown
	}
	return &cli.ExitError{Code: cli.ExitDiffers, Err: fmt.Errorf("board %s is wrong (%s): %s", r.Board, r.Wrong, r.Reason)}
}

func (r *verifyReport) print(to io.Writer) error {
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) {
		fmt.Fprintf(table, "%s\t%s\n", name, fmt.Sprintf(format, args...))
	}
	row("board", "%s", r.Board)
	row("wrong", "%s: %s", r.Wrong, r.Reason)
	for _, s := range r.Shards {
		row("", "%s: %s, state %s, %d members: %s", s.Board, s.Wrong, cmp.Or(s.Redis.State, "-"), s.Redis.Members, s.Reason)
	}
	if r.Shards != nil {
		row("redis", "%d members in %d ms", r.Redis.Members, r.Redis.TookMs)
		return table.Flush()
	}
	row("redis", "state %s", r.Redis.State)
	if m := r.Redis.Meta; m != nil {
		row("", "added up %s: %d members in %d ms, walk %d", r.Redis.AddedUp, r.Redis.Members, r.Redis.TookMs, r.Redis.Walks)
		row("", "meta: %s, %d members, being added up: %t, run began %s, last writer's time %s", m.Life, m.Members, m.Adopting, m.Began.Format(time.RFC3339), m.LastNow.Format(time.RFC3339))
		row("", "meta: period ends %s, keys expire %s, orders known for %s in %d hashes a turn, turn %d", timeOrNever(m.End), timeOrNever(m.Expires), m.OrderLife, m.Buckets, m.Turn)
	}
	switch c := r.Copy; {
	case c != nil:
		row("copy", "state %s at %s; Redis had %s then; last proved %s", c.State, c.Sidecar, c.Redis, c.Proved)
	case r.CopyMissing != "":
		row("copy", "%s", r.CopyMissing)
	}
	return table.Flush()
}

func timeOrNever(t *time.Time) string {
	if t == nil {
		return "never"
	}
	return t.Format(time.RFC3339)
}
