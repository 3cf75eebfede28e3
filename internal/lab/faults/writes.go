package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"rankcache"
	"rankcache/wire"
)

const (
	posters   = 4
	postEvery = 40 * time.Millisecond
	// postAgain is the pause before a command is posted once more.
	postAgain = 100 * time.Millisecond
)

// Writes posts commands to the writer until its context ends, each until it is
// answered.
type Writes struct {
	Boards []Board
	Oracle *Oracle
	Base   func() string // URL of the writer's port at this moment
	Prefix string        // of order ids, unique to this writer
	Token  string        // that the writer wants, if any
	// Vary changes commands that are drawn for a board, other than by Fill; n is another one for each.
	Vary map[rankcache.BoardID]func(rng *rand.Rand, c *command, n int)

	// Publish is called with every update that Redis has applied; it may be nil.
	Publish func(wire.Update)
	// Clock holds the function that returns a command's time (at); nil:
	// now.
	Clock atomic.Pointer[func() int64]

	// held while commands are posted: read-locked by posters, locked to pause them.
	busy    sync.RWMutex
	mu      sync.Mutex
	next    int
	bad     []error
	longest time.Duration
	refused int // for their time
}

// command is a command in the wire form, written here without the writer's own
// encoder.
type command struct {
	Order  string            `json:"order"`
	Board  rankcache.BoardID `json:"board"`
	Member string            `json:"member"`
	Op     string            `json:"op"`
	Delta  *float64          `json:"delta,omitempty"`
	Score  *float64          `json:"score,omitempty"`
	Data   *string           `json:"data,omitempty"`
	At     int64             `json:"at"`
	serial uint64            // of hide and restore
	wild   bool              // At is of [Writes.Clock], so that it may be refused
}

// applied returns the update that a set becomes as the board's change number seq.
func (c *command) applied(seq uint64) (u wire.Update, err error) {
	if c.Op != "set" {
		return u, fmt.Errorf("the result of %s depends on what was there", c.Op)
	}
	return wire.Update{Board: c.Board, Member: c.Member, Op: wire.OpSet, Score: *c.Score, Seq: seq, OrderID: c.Order}, nil
}

// Run blocks until ctx ends and no command is on its way, or giveUp ends too.
func (l *Writes) Run(ctx, giveUp context.Context, seed uint64) {
	client := newClient(posters)
	defer client.CloseIdleConnections()
	var all sync.WaitGroup
	for i := range posters {
		rng := rand.New(rand.NewPCG(seed, uint64(i)))
		all.Go(func() {
			each(ctx, postEvery, func() {
				l.busy.RLock()
				defer l.busy.RUnlock()
				if ctx.Err() == nil {
					l.post(giveUp, client, l.vary(rng, l.draw(rng, pick(rng, l.Boards))))
				}
			})
		})
	}
	all.Wait()
}

// Pause waits until no command is on its way and keeps it so until Resume.
func (l *Writes) Pause() { l.busy.Lock() }

// Resume ends a Pause.
func (l *Writes) Resume() { l.busy.Unlock() }

// Errs returns what must not have happened.
func (l *Writes) Errs() []error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bad
}

// Fill posts n commands to each board that make it as large as it will be.
func (l *Writes) Fill(ctx context.Context, seed uint64) {
	client := newClient(len(l.Boards))
	defer client.CloseIdleConnections()
	var all sync.WaitGroup
	for i, b := range l.Boards {
		rng := rand.New(rand.NewPCG(seed, uint64(i)))
		all.Go(func() {
			for m := range b.Members {
				c := l.draw(rng, b)
				score := float64(rng.IntN(200))
				c.Member, c.Op, c.Score, c.Delta = memberName(m), "set", &score, nil
				l.post(ctx, client, c)
			}
		})
	}
	all.Wait()
}

// draw makes up a command. Few scores and many members make ties.
func (l *Writes) draw(rng *rand.Rand, b Board) *command {
	l.mu.Lock()
	l.next++
	c := &command{Order: fmt.Sprintf("%s-%d", l.Prefix, l.next), Board: b.ID, At: time.Now().UnixMilli()}
	l.mu.Unlock()
	if clock := l.Clock.Load(); clock != nil {
		c.At, c.wild = (*clock)(), true
	}
	amount := float64(rng.IntN(40))
	member := rng.IntN(b.Members)
	switch dice := rng.IntN(100); {
	case dice < 85:
		c.Op, c.Delta = "incr", &amount
	case dice < 93:
		c.Op, c.Score = "set", &amount
	default:
		c.Op = "delete"
	}
	c.Member = memberName(member)
	return c
}

// vary changes the command if its board's are.
func (l *Writes) vary(rng *rand.Rand, c *command) *command {
	if vary := l.Vary[c.Board]; vary != nil {
		l.mu.Lock()
		l.next++
		n := l.next
		l.mu.Unlock()
		vary(rng, c, n)
	}
	return c
}

// set returns a command that gives a member a score.
func (l *Writes) set(b rankcache.BoardID, member string, score float64) *command {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next++
	return &command{Order: fmt.Sprintf("%s-%d", l.Prefix, l.next), Board: b, Member: member, Op: "set", Score: &score, At: time.Now().UnixMilli()}
}

// Longest returns the longest time in which a command was answered since the last
// call, its repeats included.
func (l *Writes) Longest() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	d := l.longest
	l.longest = 0
	return d
}

// errTime reports a command that is refused because it was given too long ago or is to be
// given later.
var errTime = errors.New("refused for its time")

// Refused returns how many commands were refused for their time.
func (l *Writes) Refused() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.refused
}

// post posts the command until it is answered or ctx ends.
func (l *Writes) post(ctx context.Context, client *http.Client, c *command) {
	start := time.Now()
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.longest = max(l.longest, time.Since(start))
	}()
	for ctx.Err() == nil {
		again, err := l.try(client, c)
		if err != nil {
			l.mu.Lock()
			l.bad = append(l.bad, err)
			l.mu.Unlock()
		}
		if !again {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(postAgain):
		}
	}
}

// try posts the command once. The error is of an answer that must not come.
func (l *Writes) try(client *http.Client, c *command) (again bool, err error) {
	return l.tryAt(client, l.Base(), c)
}

// tryAt is try at the URL of a writer.
func (l *Writes) tryAt(client *http.Client, base string, c *command) (again bool, err error) {
	again, u, err := l.ask(client, base, c)
	if errors.Is(err, errTime) && c.wild {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.refused++
		return false, nil
	}
	if again || err != nil {
		return again, err
	}
	err = l.Oracle.Applied(u, time.Now())
	if l.Publish != nil {
		l.Publish(u)
	}
	return false, err
}

// ask posts the command and returns the update that it has become, past the oracle.
func (l *Writes) ask(client *http.Client, base string, c *command) (again bool, u wire.Update, err error) {
	path, body := c.request()
	req, err := http.NewRequest(http.MethodPost, base+path, bytes.NewReader(body))
	if err != nil {
		return false, u, err
	}
	req.Header.Set("Content-Type", "application/json")
	if l.Token != "" {
		req.Header.Set("Authorization", "Bearer "+l.Token)
	}
	resp, err := client.Do(req)
	if err != nil {
		return true, u, nil // the writer is away
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	switch {
	case err != nil || resp.StatusCode == http.StatusServiceUnavailable:
		return true, u, nil
	case resp.StatusCode == http.StatusUnprocessableEntity && (bytes.Contains(answer, []byte(`"early"`)) || bytes.Contains(answer, []byte(`"too_old"`))):
		return false, u, fmt.Errorf("%w: %s with %s", errTime, body, answer)
	case resp.StatusCode != http.StatusOK:
		return false, u, fmt.Errorf("the writer answered %s with %d %s", body, resp.StatusCode, answer)
	}
	u, err = readUpdate(answer)
	if err != nil || u.Board != c.Board || u.Member != c.Member || u.OrderID != c.Order {
		return false, u, fmt.Errorf("the writer answered %s with %s (%v)", body, answer, err)
	}
	if c.Data != nil {
		u.Given = "0" + *c.Data
	}
	return false, u, nil
}

// request returns the command's path and body.
func (c *command) request() (path string, body []byte) {
	path, ask := "/v1/scores", any(c)
	if c.serial != 0 {
		path, ask = "/v1/members:"+c.Op, map[string]any{"board": c.Board, "member": c.Member, "reason": "a row of faults", "serial": c.serial}
	}
	body, err := json.Marshal(ask)
	if err != nil {
		panic(err) // strings and finite numbers
	}
	return path, body
}

// readUpdate reads the writer's answer without its decoder.
func readUpdate(answer []byte) (u wire.Update, err error) {
	var w struct {
		Board    rankcache.BoardID
		Member   string
		Op       string
		Delta    float64
		Score    *float64
		Hidden   bool
		Data     string
		Run, Seq uint64
		Sum      string
		Members  int
		Order    string
		At       int64
	}
	if err := json.Unmarshal(answer, &w); err != nil {
		return u, err
	}
	u = wire.Update{Board: w.Board, Member: w.Member, Delta: w.Delta, Data: w.Data, Run: w.Run, Seq: w.Seq, Members: w.Members, OrderID: w.Order, At: w.At}
	if u.HasSum = w.Sum != ""; u.HasSum {
		if u.Sum, err = strconv.ParseUint(w.Sum, 16, 48); err != nil {
			return u, err
		}
	}
	if u.Hiding.Hidden = w.Hidden; w.Score != nil {
		u.Score = *w.Score
	}
	u.Op, err = wire.ParseUpdateOp(w.Op)
	u.Hiding.Bare = w.Score == nil && !u.Op.Removes()
	return u, err
}
