package operate

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"rankcache"
	"rankcache/internal/cli"
	"rankcache/origin"
)

// Limits of rankcache big.
const (
	maxBigTop  = 1000
	maxBigRate = 1_000_000
)

type bigOptions struct {
	cli.Options
	top   int
	limit int64
	rate  int64
}

func NewBigCommand() *cobra.Command {
	o := &bigOptions{}
	cmd := &cobra.Command{
		Use:   "big",
		Short: "List the largest boards, and other sorted sets, in Redis",
		Long: `Walk all keys of Redis and list the largest sorted sets: boards, which are those that
the writer keeps a meta of, and others, which belong to no writer. For each it shows
members, memory, order ids with the memory of their hashes, and when it expires. The shards
of a split board are one line, with how many there are and the members of the largest.
The walk ends after --limit keys; then there may be larger sorted sets.
It changes nothing. Redis is asked for some 200 keys at a time, --rate keys a second,
with a pause after each; in a cluster one master after the other. Memory is Redis's
estimate from 20 members (MEMORY USAGE), 0 if the server or the user lacks the command.
Redis must be 6 or later. A user with an ACL needs SCAN, ZCARD, GET, PTTL and HLEN on all
keys, better MEMORY|USAGE and DBSIZE too.

Exit codes: 0 listed, also if --limit ended the walk; 1 failed; 2 bad flag.`,
		Example: `  rankcache big --redis redis://redis:6379
  rankcache big --redis redis://redis:6379 --top 5 --limit 100000 -o json
  rankcache big --redis redis://redis:6379 --redis-mode cluster --rate 5000`,
		Args: cli.NoArgs,
	}
	flags := cmd.Flags()
	flags.IntVar(&o.top, "top", 20, "how many of the largest sorted sets are listed")
	flags.Int64Var(&o.limit, "limit", 10_000_000, "about how many `keys` are walked at most; 0: all")
	flags.Int64Var(&o.rate, "rate", 20_000, "`keys` a second that are walked at most")
	o.RegisterRedis(flags)
	o.RegisterNames(flags)
	output := cli.OutputFlag(flags, "text")
	cmd.RunE = reporting(o.Load, output, o.find)
	return cmd
}

func (o *bigOptions) check() error {
	switch {
	case o.top < 1 || o.top > maxBigTop:
		return cli.Usagef("--top %d: want 1 to %d", o.top, maxBigTop)
	case o.limit < 0:
		return cli.Usagef("--limit %d: want a number of keys, or 0 for all", o.limit)
	case o.rate < 1 || o.rate > maxBigRate:
		return cli.Usagef("--rate %d: want 1 to %d keys a second", o.rate, maxBigRate)
	}
	return nil
}

func (o *bigOptions) find(ctx context.Context, progress io.Writer) (*bigReport, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	client, err := o.DialRedis()
	if err != nil {
		return nil, err
	}
	defer client.Close()
	from := origin.New(client, o.Names, origin.WithTimeout(o.RedisTimeout))
	w := &bigWalk{origin: from, sizesOf: from.SizesOf, top: o.top, limit: o.limit,
		pause: time.Duration(origin.SizesPage) * time.Second / time.Duration(o.rate), progress: progress}
	// Only progress needs the number of keys: without it the walk is done all the same.
	if keys, err := client.DBSize(ctx).Result(); err == nil {
		w.report.Keys = &keys
	}
	report, err := w.run(ctx)
	for i := 0; report != nil && i < len(report.Largest); i++ {
		item := &report.Largest[i]
		_, can := o.Names.BoardOfKey(item.Key)
		item.Foreign = can && item.Board == ""
	}
	return report, err
}

// bigReport is the stable JSON of rankcache big.
type bigReport struct {
	Complete   bool      `json:"complete"`       // all keys were walked
	Walked     int64     `json:"walked_keys"`    // about
	Keys       *int64    `json:"keys,omitempty"` // of Redis, of all kinds; nil: unknown
	SortedSets int64     `json:"sorted_sets"`    // that were seen; one may count twice while Redis resizes its table
	Boards     int64     `json:"boards"`         // of them
	Largest    []bigItem `json:"largest"`        // by members
}

// notWritten is what is said of boards of which Redis has no meta.
const notWritten = "not written through rankcache: hot works; whole in memory needs changes through a writer (rankcache write), and Kafka"

type bigItem struct {
	Key         string            `json:"key"`
	Board       rankcache.BoardID `json:"board,omitempty"`   // "": no writer keeps a meta of it
	Foreign     bool              `json:"foreign,omitempty"` // its key can be a board's, and it is not written through rankcache
	Members     int               `json:"members"`
	Bytes       int64             `json:"bytes"` // estimate; 0: unknown
	Orders      int64             `json:"orders"`
	OrdersBytes int64             `json:"orders_bytes"`      // estimate; 0: unknown, or there are none
	Expires     *time.Time        `json:"expires,omitempty"` // nil: never
	// Shards is how many sets a split board has, LargestShard the members of the largest; 0: it is one set.
	Shards       int `json:"shards,omitempty"`
	LargestShard int `json:"largest_shard,omitempty"`
}

// add adds what was measured of a shard.
func (i *bigItem) add(s *origin.Size) {
	part := newBigItem(s)
	i.Members += part.Members
	i.Bytes += part.Bytes
	i.Orders += part.Orders
	i.OrdersBytes += part.OrdersBytes
	i.Shards++
	if i.LargestShard = max(i.LargestShard, part.Members); part.Expires != nil && (i.Expires == nil || part.Expires.After(*i.Expires)) {
		i.Expires = part.Expires
	}
}

func newBigItem(s *origin.Size) bigItem {
	item := bigItem{Key: s.Key, Board: s.Board, Members: s.Members, Bytes: s.Bytes, Orders: s.Orders, OrdersBytes: s.OrdersBytes}
	if !s.Expires.IsZero() {
		at := s.Expires.UTC().Truncate(time.Second)
		item.Expires = &at
	}
	return item
}

func (r *bigReport) err() error { return nil }

func (r *bigReport) print(to io.Writer) error {
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "MEMBERS\tMEMORY\tORDER IDS\tTHEIR MEMORY\tEXPIRES\tKIND\tKEY")
	foreign := false
	for _, i := range r.Largest {
		kind, orders, ordersBytes := "other", "-", "-"
		if i.Foreign {
			kind, foreign = "foreign", true
		}
		if i.Board != "" {
			kind, orders, ordersBytes = i.kind(), strconv.FormatInt(i.Orders, 10), orUnknown(i.OrdersBytes, i.Orders == 0)
		}
		fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%s\t%s\t%s\n", i.Members, orUnknown(i.Bytes, false), orders, ordersBytes, timeOrNever(i.Expires), kind, shownKey(i.Key))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if foreign {
		fmt.Fprintln(to, "foreign: "+notWritten)
	}
	end := "all keys were walked"
	if !r.Complete {
		end = "--limit ended the walk: there may be larger ones"
	}
	_, err := fmt.Fprintf(to, "%d sorted sets, %d of them boards, among about %d keys; %s\n", r.SortedSets, r.Boards, r.Walked, end)
	return err
}

func (i *bigItem) kind() string {
	if i.Shards > 0 {
		return fmt.Sprintf("%d shards, largest %d", i.Shards, i.LargestShard)
	}
	return "board"
}

func orUnknown(bytes int64, none bool) string {
	if bytes == 0 && !none {
		return "unknown"
	}
	return humanize.IBytes(uint64(max(bytes, 0)))
}

// shownKey quotes keys that could be no board's: they may hold any bytes.
func shownKey(key string) string {
	if rankcache.BoardID(key).Check() == nil {
		return key
	}
	return strconv.Quote(key)
}
