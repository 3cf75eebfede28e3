// Command embed reads a leaderboard by package call: it embeds the sidecar's Reader,
// with Redis as its origin, and prints a page and one member's standing. It needs no
// sidecar process, no Kafka and no HTTP.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"rankcache"
	"rankcache/origin"
	"rankcache/rooms"
	"rankcache/sidecar"
	"rankcache/wire"
)

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "embed:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("embed", flag.ContinueOnError)
	redisURL := flags.String("redis", "redis://127.0.0.1:6379", "URL of Redis")
	roomsFile := flags.String("rooms", "", "rooms file of the sidecars, whose classes tell how scores are shown")
	limit := flags.Int("limit", 10, "rows of the page")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() < 1 || flags.NArg() > 2 {
		return errors.New("usage: embed [-redis URL] [-rooms FILE] [-limit N] BOARD [MEMBER]")
	}
	file, err := readRooms(*roomsFile)
	if err != nil {
		return err
	}
	client, err := origin.Dial(origin.Options{URL: *redisURL})
	if err != nil {
		return err
	}
	defer client.Close()
	reader, err := newReader(origin.New(client, wire.DefaultNames()), file)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	query := sidecar.Query{Board: rankcache.BoardID(flags.Arg(0))}
	if err := printTop(ctx, out, reader, query, *limit); err != nil || flags.NArg() == 1 {
		return err
	}
	return printStanding(ctx, out, reader, query, flags.Arg(1))
}

// readRooms reads a rooms file, "" for none.
func readRooms(name string) (*rooms.File, error) {
	if name == "" {
		return new(rooms.File), nil
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return rooms.Parse(data)
}

// newReader returns a reader without local copies: every board is read from Redis,
// one flight for all callers of a page. Boards and Hot of the Config add the other
// tiers, see the example of sidecar.Reader.
func newReader(o *origin.Origin, file *rooms.File) (*sidecar.Reader, error) {
	tiers := file.Resolve(nil)
	return sidecar.NewReader(sidecar.Config{
		Tiers:  func() *rooms.Tiers { return tiers },
		Origin: o,
	}, nil)
}

func printTop(ctx context.Context, out io.Writer, reader *sidecar.Reader, query sidecar.Query, limit int) error {
	top, err := reader.Top(ctx, query, limit)
	if err != nil {
		return fmt.Errorf("read the top of %s: %w", query.Board, err)
	}
	fmt.Fprintf(out, "%s, %d members, from %s\n", query.Board, top.Members, top.Source)
	for i, e := range top.Entries {
		fmt.Fprintf(out, "%4d  %-20s %v\n", top.Start+i+1, e.Member, top.Form.Shown(e.Score)) // entries have raw scores
	}
	return nil
}

func printStanding(ctx context.Context, out io.Writer, reader *sidecar.Reader, query sidecar.Query, member string) error {
	own, err := reader.Standings(ctx, query, nil, []string{member})
	if err != nil {
		return fmt.Errorf("read the standing of %s on %s: %w", member, query.Board, err)
	}
	switch row := own.Rows[0]; {
	case row.Trimmed:
		_, err = fmt.Fprintf(out, "%s has %v, beyond the first that the board keeps\n", member, own.Form.Shown(row.Score))
	case row.Rank == 0:
		_, err = fmt.Fprintf(out, "%s is not on the board\n", member)
	default:
		_, err = fmt.Fprintf(out, "%s has rank %d with %v\n", member, row.Rank, own.Form.Shown(row.Score))
	}
	return err
}
