// Command go prints the page of a board as it moves.
package main

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/signal"

	"rankcache/examples/live/go/live"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: go SIDECAR BOARD")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	follower := live.Follower{
		URL:     fmt.Sprintf("http://%s/v1/boards/%s/live?limit=50", os.Args[1], url.PathEscape(os.Args[2])),
		Changed: show,
	}
	follower.Run(ctx)
}

func show(ev live.Event) {
	switch ev.Kind {
	case "page", "diff":
		fmt.Printf("%s %d:", ev.Kind, ev.Page.Seq)
		for _, e := range ev.Page.Entries {
			fmt.Printf(" %s=%v", e.Member, e.Score)
		}
		fmt.Println()
	case "end", "away":
		fmt.Printf("%s: %s\n", ev.Kind, ev.Data)
	}
}
