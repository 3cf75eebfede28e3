package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"rankcache"
)

const (
	// durableZones are the boards of each class, spread over the masters of a cluster.
	durableZones = 12
	// durableMembers of a board; of one with a cap twice as many as it takes.
	durableMembers, durableCap = 40, 20
	// durablePosters post increments, durableBatch commands each durablePause: 2,000 commands a second in all.
	durablePosters, durableBatch = 8, 25
	durablePause                 = 100 * time.Millisecond
	durablePartitions            = 4 // of update_rank
	// durablePatience is how long a poster waits for an answer.
	durablePatience = 6 * time.Second
)

// durableLoad posts commands to two writers, each until it is acknowledged or refused, and knows what the boards are to
// have: each acknowledged command once.
type durableLoad struct {
	prefix string
	base   func(writer int) string
	client *http.Client
	acked  atomic.Int64
	again  atomic.Int64 // posts that were repeated

	mu     sync.Mutex
	boards map[rankcache.BoardID]*durableBoard
	bad    []string
}

// durableBoard is what a board is to have.
type durableBoard struct {
	scores  map[string]float64
	changes uint64 // acknowledged
	refused map[string]bool
}

// durableCommand is a command in the wire form, and its board.
type durableCommand struct {
	Order  string            `json:"order"`
	Class  string            `json:"class"`
	Dims   map[string]string `json:"dims"`
	Member string            `json:"member"`
	Op     string            `json:"op"`
	Delta  *float64          `json:"delta,omitempty"`
	Score  *float64          `json:"score,omitempty"`
	At     int64             `json:"at"`
}

func newDurableLoad(prefix string, base func(int) string) *durableLoad {
	return &durableLoad{prefix: prefix, base: base, boards: make(map[rankcache.BoardID]*durableBoard),
		client: &http.Client{Timeout: durablePatience, Transport: &http.Transport{MaxIdleConnsPerHost: 32}}}
}

// classes is the rooms file.
func (l *durableLoad) classes() string {
	return fmt.Sprintf(`classes:
- {name: gift, board: "%[1]s-gift:{zone}", period: none, ops: [incr], ledger: true, feeds: [all]}
- {name: all, board: "%[1]s-all", period: none, ops: [incr], ledger: true}
- {name: sets, board: "%[1]s-sets:{zone}", period: none, ops: [set], durable: true}
- {name: caps, board: "%[1]s-caps:{zone}", period: none, ops: [incr], durable: true, guard: {members: %[2]d, action: refuse}}
- {name: rate, board: "%[1]s-rate:{zone}", period: none, ops: [incr], durable: true, guard: {changes: 20/5s, action: refuse}}
`, l.prefix, durableCap)
}

func (l *durableLoad) boardOf(class, zone string) rankcache.BoardID {
	return rankcache.BoardID(l.prefix + "-" + class + ":" + zone)
}

// run posts until ctx ends, and returns when each command is answered.
func (l *durableLoad) run(ctx context.Context) {
	var all sync.WaitGroup
	for p := range durablePosters {
		all.Go(func() { l.increments(ctx, p) })
	}
	for p := range 4 {
		all.Go(func() { l.sets(ctx, p) })
	}
	all.Go(func() { l.flood(ctx, "caps") })
	all.Go(func() { l.flood(ctx, "rate") })
	all.Wait()
}

// increments posts batches of class gift.
func (l *durableLoad) increments(ctx context.Context, p int) {
	n := 0
	each(ctx, durablePause, func() {
		batch := make([]*durableCommand, durableBatch)
		for i := range batch {
			n++
			batch[i] = l.command("gift", fmt.Sprintf("g%d-%d", p, n), n*7+p, n)
			batch[i].Op, batch[i].Delta = "incr", new(float64(1+n%9))
		}
		l.post(ctx, p, batch...)
	})
}

// sets posts one set after the other, those of a member by one poster alone: the last one stands.
func (l *durableLoad) sets(ctx context.Context, p int) {
	n := 0
	each(ctx, time.Millisecond, func() {
		n++
		c := l.command("sets", fmt.Sprintf("s%d-%d", p, n), n, n*4+p)
		c.Op, c.Score = "set", new(float64(n))
		l.post(ctx, p, c)
	})
}

// flood posts more than a guard lets pass.
func (l *durableLoad) flood(ctx context.Context, class string) {
	n := 0
	each(ctx, 10*time.Millisecond, func() {
		n++
		c := l.command(class, fmt.Sprintf("%s-%d", class, n), n%3, n/3)
		if c.Op, c.Delta = "incr", new(float64(1)); class == "rate" {
			c.Member = "m0"
		}
		l.post(ctx, n, c)
	})
}

func (l *durableLoad) command(class, order string, zone, member int) *durableCommand {
	return &durableCommand{Order: order, Class: class, Dims: map[string]string{"zone": fmt.Sprint(zone % durableZones)},
		Member: fmt.Sprint("m", member%durableMembers), At: time.Now().UnixMilli()}
}

// post posts commands until each is answered for good, to one writer and to the other in turns.
func (l *durableLoad) post(ctx context.Context, writer int, commands ...*durableCommand) {
	for giveUp := time.Now().Add(settleWithin); len(commands) > 0; writer++ {
		left := l.try(writer%2, commands)
		if len(left) == 0 {
			return
		}
		l.again.Add(int64(len(left)))
		if commands = left; time.Now().After(giveUp) {
			l.wrong("not answered in %v: %+v", settleWithin, *commands[0])
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// try posts commands once and returns those that are to be posted again.
func (l *durableLoad) try(writer int, commands []*durableCommand) (left []*durableCommand) {
	body, _ := json.Marshal(map[string]any{"commands": commands}) // numbers and strings
	resp, err := l.client.Post(l.base(writer)+"/v1/scores:batch", "application/json", bytes.NewReader(body))
	if err != nil {
		return commands
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode == http.StatusServiceUnavailable {
		return commands
	}
	var found struct {
		Results []struct {
			Result  *struct{ Order string }
			Problem *struct {
				Status int
				Code   string
			}
		}
	}
	if err := json.Unmarshal(answer, &found); err != nil || len(found.Results) != len(commands) {
		l.wrong("%s was answered with %d %.300s", body, resp.StatusCode, answer)
		return nil
	}
	for i, r := range found.Results {
		switch c := commands[i]; {
		case r.Result != nil && r.Result.Order == c.Order:
			l.took(c)
		case r.Problem != nil && r.Problem.Status == http.StatusServiceUnavailable:
			left = append(left, c)
		case r.Problem != nil && (r.Problem.Code == "guard" || r.Problem.Code == "refused") && (c.Class == "caps" || c.Class == "rate"):
			l.refused(c)
		default:
			l.wrong("%+v was answered with %.500s", *c, answer)
		}
	}
	return left
}

func (l *durableLoad) wrong(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bad = append(l.bad, fmt.Sprintf(format, args...))
}

// took notes an acknowledged command.
func (l *durableLoad) took(c *durableCommand) {
	l.acked.Add(1)
	l.mu.Lock()
	defer l.mu.Unlock()
	boards := []rankcache.BoardID{l.boardOf(c.Class, c.Dims["zone"])}
	if c.Class == "gift" {
		boards = append(boards, rankcache.BoardID(l.prefix+"-all"))
	}
	for _, id := range boards {
		b := l.at(id)
		if b.changes++; c.Score != nil {
			b.scores[c.Member] = *c.Score
		} else {
			b.scores[c.Member] += *c.Delta
		}
	}
}

func (l *durableLoad) refused(c *durableCommand) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.at(l.boardOf(c.Class, c.Dims["zone"])).refused[c.Member] = true
}

// at is called with the lock held.
func (l *durableLoad) at(id rankcache.BoardID) *durableBoard {
	if l.boards[id] == nil {
		l.boards[id] = &durableBoard{scores: make(map[string]float64), refused: make(map[string]bool)}
	}
	return l.boards[id]
}

// check compares what Redis has of a board with what was acknowledged.
func (b *durableBoard) check(id rankcache.BoardID, scores map[string]float64, seq uint64) error {
	if !maps.Equal(scores, b.scores) || seq != b.changes {
		var differ []string
		for _, m := range slices.Sorted(maps.Keys(b.scores)) {
			if scores[m] != b.scores[m] {
				differ = append(differ, fmt.Sprintf("%s has %v, want %v", m, scores[m], b.scores[m]))
			}
		}
		return fmt.Errorf("%s: %d changes of %d acknowledged, %d members of %d: %s", id, seq, b.changes, len(scores), len(b.scores), strings.Join(differ, ", "))
	}
	return nil
}
