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
	query := rankcache.Query{Board: rankcache.BoardID(flags.Arg(0)), Limit: *limit, Members: flags.Args()[1:]}
	answer := rankcache.One(ctx, reader, query)
	if answer.Err != nil {
		return fmt.Errorf("read %s: %w", query.Board, answer.Err)
	}
	return show(out, query, &answer)
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

func show(out io.Writer, query rankcache.Query, answer *rankcache.Answer) error {
	fmt.Fprintf(out, "%s, %d members, from %s\n", query.Board, answer.Members, answer.Source)
	for i, e := range answer.Entries {
		fmt.Fprintf(out, "%4d  %-20s %v\n", answer.Start+i+1, e.Member, answer.Form.Shown(e.Score)) // entries have raw scores
	}
	for _, own := range answer.Own {
		switch {
		case own.Err != nil: // it was not among the rows, and asking for it failed
			return fmt.Errorf("read the standing of %s on %s: %w", own.Member, query.Board, own.Err)
		case own.Trimmed:
			fmt.Fprintf(out, "%s has %v, beyond the first that the board keeps\n", own.Member, answer.Form.Shown(own.Score))
		case own.Rank == 0:
			fmt.Fprintf(out, "%s is not on the board\n", own.Member)
		default:
			fmt.Fprintf(out, "%s has rank %d with %v\n", own.Member, own.Rank, answer.Form.Shown(own.Score))
		}
	}
	return nil
}
