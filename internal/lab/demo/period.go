package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"rankcache/class"
	"rankcache/internal/lab/compare"
	"rankcache/rooms"
)

// The demo's class stands for a half-hour board; its periods end while one watches.
const (
	demoClass        = "gift-half-hour"
	demoLaps         = "lap-times" // the lowest is the best, and a member keeps its best
	demoPeriod       = 15 * time.Second
	demoClassBeat    = 50 * time.Millisecond // between two gifts of the class, and two reads
	demoClassGivers  = 12
	demoSwitchReads  = 20  // of a new board, before its switch is reported
	demoFlood        = 300 // commands of one member, once a period
	demoGuardChanges = 150 // of one member and minute are taken
)

// classYAML is the classes in the rooms file.
func (d *demoRun) classYAML() string {
	return fmt.Sprintf(`classes:
- {name: %s, board: "demo_%s_gift:{period}", period: %s, lead: %s, grace: 2s, keep: %s, mode: super-hot,
   guard: {changes: %d/1m, action: refuse}}
- {name: %s, board: "demo_%s_laps:{period}", period: %s, grace: 2s, keep: %s, order: asc, ops: [best], top: 3}
`, demoClass, d.run, d.period, d.period, demoLife, demoGuardChanges, demoLaps, d.run, d.period, demoLife)
}

// parseRooms parses a rooms file whose classes have the demo's period, which is
// shorter than files may have.
func (d *demoRun) parseRooms(data []byte) (*rooms.File, error) {
	return rooms.ParseWith(data, func(_, tz string) (class.Calendar, error) { return class.PartsOfDay(d.period, tz) })
}

// classShow sends gifts and a flood to the class's boards, reads them, and reports
// what it measured. But for refused, it belongs to the goroutine of run.
type classShow struct {
	*demoRun
	e                   *evening
	kafka               *kgo.Client
	sent, periods       int
	board               string // the running one, since began
	began               time.Time
	reads, redis        int // of the board; how many Redis answered
	failed              int // reads since the last report
	switchTold, topTold bool

	mu      sync.Mutex
	refused map[string]int // commands of floods, by board
}

// showClass runs the class's show until ctx is done.
func (d *demoRun) showClass(ctx context.Context, e *evening) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(d.servers.kafka), kgo.DefaultProduceTopic(d.names.Commands),
		kgo.ConsumeTopics(d.names.Refused), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return fmt.Errorf("kafka client: %w", err)
	}
	defer client.Close()
	c := &classShow{demoRun: d, e: e, kafka: client, refused: make(map[string]int)}
	var counting sync.WaitGroup
	defer counting.Wait()
	counting.Go(func() { c.countRefused(ctx) })
	tick := time.NewTicker(demoClassBeat)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return client.Flush(context.WithoutCancel(ctx))
		case <-tick.C:
			c.give(e.member(uint64(e.rng.IntN(demoClassGivers))), e.gift())
			c.send(demoCommand{Class: demoLaps, Member: e.member(uint64(e.rng.IntN(demoClassGivers))), Op: "best", Score: float64(60_000+e.rng.IntN(5_000)) / 1000})
			c.read(ctx)
		}
	}
}

// give sends a gift to the class: the writer finds the board of the time.
func (c *classShow) give(member string, delta float64) {
	c.send(demoCommand{Class: demoClass, Member: member, Op: "incr", Delta: delta})
}

// send sends a command, which gets an order id and the time of now.
func (c *classShow) send(command demoCommand) {
	c.sent++
	command.Order, command.At = fmt.Sprintf("%s-class-%d", c.run, c.sent), time.Now().UnixMilli()
	value, _ := json.Marshal(command) // numbers and strings always marshal
	c.kafka.Produce(context.Background(), &kgo.Record{Key: []byte(command.Class), Value: value}, nil)
}

// flooder is the member of the floods, who gives nothing else.
func (c *classShow) flooder() string { return c.e.member(demoClassGivers) }

// countRefused counts the commands of floods that guards refused, until ctx is done.
func (c *classShow) countRefused(ctx context.Context) {
	for ctx.Err() == nil {
		c.kafka.PollFetches(ctx).EachRecord(func(r *kgo.Record) {
			var refused struct {
				Reason, Board string
				Command       struct{ Member string }
			}
			if json.Unmarshal(r.Value, &refused) == nil && refused.Reason == "guard" && refused.Command.Member == c.flooder() {
				c.mu.Lock()
				c.refused[refused.Board]++
				c.mu.Unlock()
			}
		})
	}
}

func (c *classShow) fetch(ctx context.Context, class, query string) (*compare.Page, error) {
	page, err := compare.Fetch(ctx, c.client, fmt.Sprintf("%s/v1/classes/%s/top?%s", c.base(), class, query))
	if err != nil && ctx.Err() == nil {
		c.failed++
	}
	return page, err
}

// read reads the running board once, and returns what is to be printed of it by now.
func (c *classShow) read(ctx context.Context) {
	page, err := c.fetch(ctx, demoClass, "limit=10")
	if err != nil {
		return
	}
	if page.Board != c.board {
		c.periods++
		c.board, c.began, c.reads, c.redis, c.switchTold, c.topTold = page.Board, time.Now(), 0, 0, false, false
		for range demoFlood {
			c.give(c.flooder(), 1)
		}
	}
	if c.reads++; page.Source == "redis" {
		c.redis++
	}
	if c.reads >= demoSwitchReads && !c.switchTold {
		c.switchTold = true
		c.tellSwitch()
	}
	if time.Since(c.began) > c.period/2 && !c.topTold {
		c.topTold = true
		c.tellTop(ctx)
	}
}

func (c *classShow) tellSwitch() {
	verb := "begins"
	if c.periods == 1 {
		verb = "is running"
	}
	c.say("* period %d %s: board %s, %d of %d reads from Redis, %d failed", c.periods, verb, c.board, c.redis, c.reads, c.failed)
	c.failed = 0
}

// tellTop reports the board's first three with arrows, and what became of the flood.
func (c *classShow) tellTop(ctx context.Context) {
	page, err := c.fetch(ctx, demoClass, "limit=3&trend=1&profiles=1")
	if err != nil || page.Board != c.board {
		return
	}
	var line strings.Builder
	for _, e := range page.Entries {
		arrow := "?"
		if page.TrendError == "" {
			arrow = trendArrow(e.Rank, e.PreviousRank)
		}
		fmt.Fprintf(&line, "  %s %d. %s %.0f", arrow, e.Rank, nick(e.Member, e.Profile), e.Score)
	}
	c.mu.Lock()
	refused := c.refused[c.board]
	c.mu.Unlock()
	c.say("* period %d, top 3:%s", c.periods, line.String())
	c.say("* period %d, flood of %d commands by one member: %d refused by the guard so far", c.periods, demoFlood, refused)
	c.tellLaps(ctx)
}

// tellLaps reports the three lowest lap times, each the best of its member.
func (c *classShow) tellLaps(ctx context.Context) {
	page, err := c.fetch(ctx, demoLaps, "profiles=1")
	if err != nil {
		return
	}
	var line strings.Builder
	for _, e := range page.Entries {
		fmt.Fprintf(&line, "  %d. %s %.3f s", e.Rank, nick(e.Member, e.Profile), e.Score)
	}
	c.say("* period %d, best lap times:%s", c.periods, line.String())
}

// trendArrow draws a change of rank; a member who was not on the board before went up.
func trendArrow(rank int, before *int) string {
	switch {
	case before == nil || rank < *before:
		return "↑"
	case rank > *before:
		return "↓"
	}
	return "="
}
