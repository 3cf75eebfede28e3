package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"rankcache"
	"rankcache/internal/lab/compare"
)

// demoCommand is one gift as the platform's gift service would send it.
type demoCommand struct {
	Order  string            `json:"order"`
	Board  rankcache.BoardID `json:"board,omitempty"`
	Class  string            `json:"class,omitempty"`
	Room   string            `json:"room,omitempty"`
	Member string            `json:"member"`
	Op     string            `json:"op"`
	Delta  float64           `json:"delta"`
	Score  float64           `json:"score,omitempty"`
	At     int64             `json:"at"`
}

// giveGifts produces commands at rate a second until ctx is done: nine of ten to
// the star's board. It returns when all are acknowledged, and how many went there.
func giveGifts(ctx context.Context, brokers, topic string, e *evening, rate int) (toStar uint64, err error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers), kgo.DefaultProduceTopic(topic))
	if err != nil {
		return 0, fmt.Errorf("kafka client: %w", err)
	}
	defer client.Close()
	const beat = 20 * time.Millisecond
	tick := time.NewTicker(beat)
	defer tick.Stop()
	for n, due := 0, 0.0; ; {
		select {
		case <-ctx.Done():
			return toStar, client.Flush(context.WithoutCancel(ctx))
		case <-tick.C:
		}
		for due += float64(rate) * beat.Seconds(); due >= 1; due-- {
			n++
			c := e.command(n)
			if c.Board == e.starBoard() {
				toStar++
			}
			value, _ := json.Marshal(c) // numbers and strings always marshal
			client.Produce(context.WithoutCancel(ctx), &kgo.Record{Key: []byte(e.starBoard()), Value: value}, nil)
		}
	}
}

func (e *evening) command(n int) demoCommand {
	c := demoCommand{Order: fmt.Sprintf("%s-live-%d", e.run, n), Board: e.starBoard(), Room: demoStarUID,
		Member: e.giver(), Op: "incr", Delta: e.gift(), At: time.Now().UnixMilli()}
	if e.rng.IntN(10) == 0 {
		c.Board, c.Room = e.smallBoard(e.rng.IntN(demoSmallRooms)), ""
	}
	return c
}

// The two rooms that get hot: they are watched by many for a while, then not.
const (
	heatRate  = 120 // requests/s each while they are watched
	heatAfter = 5 * time.Second
	heatFor   = 20 * time.Second
)

// watchRooms reads as the room pages of an app do until ctx is done.
func watchRooms(ctx context.Context, client *http.Client, base string, e *evening) {
	begin := time.Now()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		get(ctx, client, fmt.Sprintf("%s/v1/boards/%s/top?limit=50&profiles=1&me=%s", base, e.starBoard(), e.giver()))
		get(ctx, client, fmt.Sprintf("%s/v1/boards/%s/top?limit=50", base, e.smallBoard(2+e.rng.IntN(demoSmallRooms-2))))
		if since := time.Since(begin) - heatAfter; since > 0 && since%(3*heatFor) < heatFor {
			for i := range 2 {
				get(ctx, client, fmt.Sprintf("%s/v1/boards/%s/top?limit=50&profiles=1", base, e.smallBoard(i)))
				if n%5 == 0 { // a tick is 10 ms: 100 requests/s and a fifth more
					get(ctx, client, fmt.Sprintf("%s/v1/boards/%s/top?limit=10", base, e.smallBoard(i)))
				}
			}
		}
	}
}

// get asks and forgets: what the sidecar answers is counted in its metrics.
func get(ctx context.Context, client *http.Client, url string) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return
	}
	if resp, err := client.Do(req); err == nil {
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
}

// drawTop writes the live top 10. On a terminal it takes the place of the
// previous one.
func drawTop(to io.Writer, page *compare.Page, again bool) {
	var b strings.Builder
	if again {
		fmt.Fprintf(&b, "\x1b[%dA\x1b[J", 12)
	}
	fmt.Fprintf(&b, "%s  %s  source %s  seq %d  %d members  age %s ms\n\n",
		time.Now().Format(time.TimeOnly), page.Board, page.Source, page.Seq, page.Total, page.Age)
	for i := range 10 {
		if i >= len(page.Entries) {
			b.WriteString("\n")
			continue
		}
		e := page.Entries[i]
		fmt.Fprintf(&b, "%4d  %-20s %12.0f\n", e.Rank, nick(e.Member, e.Profile), e.Score)
	}
	io.WriteString(to, b.String())
}

// nick returns the profile's nick, or the member's id without one.
func nick(member string, profile json.RawMessage) string {
	var p struct{ Nick string }
	if json.Unmarshal(profile, &p) == nil && p.Nick != "" {
		return p.Nick
	}
	return member
}
