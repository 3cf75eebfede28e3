package live

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"rankcache"
	"rankcache/internal/testkit/fixture"
	"rankcache/localboard"
	"rankcache/rooms"
	"rankcache/sidecar"
	"rankcache/wire"
)

const board = rankcache.BoardID("b")

// world is one board in Redis, with all states that it has had, and a sidecar beside it.
type world struct {
	t        testing.TB
	mu       sync.Mutex // guards the fields below
	state    rankcache.State
	scores   map[string]float64
	history  map[rankcache.State][]rankcache.Entry
	updates  []wire.Update // since the local board's last one
	log      []wire.Update // of the run
	boards   *localboard.Boards
	hot      fixture.Hot
	profiles fixture.Profiles
	tiers    atomic.Pointer[rooms.Tiers]
	away     atomic.Bool  // Redis
	asked    atomic.Int64 // calls of it
	hub      atomic.Pointer[Hub]
	reader   *sidecar.Reader
	clients  []*client
}

func newWorld(t testing.TB, cfg Config) *world {
	w := &world{t: t, state: rankcache.State{Run: 1000}, scores: make(map[string]float64), history: make(map[rankcache.State][]rankcache.Entry)}
	w.profiles.Epoch.Store(1)
	w.hot.At = time.Now()
	w.newBoards()
	w.mode("super-hot")
	for i := range 20 {
		w.set(fixture.Member(i), float64(i))
	}
	w.refill()
	w.start(cfg)
	return w
}

// newBoards makes the local boards of a sidecar that is to be started.
func (w *world) newBoards() {
	w.boards = localboard.NewBoards(localboard.WithChanged(func(id rankcache.BoardID) {
		if h := w.hub.Load(); h != nil {
			h.Changed(id)
		}
	}))
	var err error
	w.reader, err = sidecar.NewReader(sidecar.Config{Tiers: w.tiers.Load, Boards: openBoards{w.boards}, Hot: &w.hot, Origin: w, Profiles: &w.profiles}, nil)
	if err != nil {
		w.t.Fatal(err)
	}
}

// moveToOlderPod ends the sidecar and goes on at one whose copy lacks the last changes of the
// run, if it has so many.
func (w *world) moveToOlderPod(cfg Config) {
	w.hub.Load().Drain()
	w.newBoards()
	w.mu.Lock()
	state := w.state
	if older := (rankcache.State{Run: state.Run, Seq: state.Seq - min(state.Seq, 3)}); w.history[older] != nil {
		state = older
	}
	rows := w.history[state]
	w.updates = slices.Clone(w.log[len(w.log)-int(w.state.Seq-state.Seq):])
	w.mu.Unlock()
	b := w.boards.Create(board)
	b.Reset()
	b.SetRun(state.Run)
	if err := b.Load(state.Seq, rows); err != nil {
		w.t.Fatal(err)
	}
	b.Publish()
	w.boards.Open(board)
	w.start(cfg)
}

// start starts a sidecar, or another one.
func (w *world) start(cfg Config) {
	h, err := New(w.reader, cfg, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	w.hub.Store(h)
	w.t.Cleanup(func() { w.end(h) })
}

// end ends a sidecar whose clients close their streams.
func (w *world) end(h *Hub) {
	h.Drain()
	for _, c := range w.clients {
		c.close()
	}
	h.Wait()
}

type openBoards struct{ *localboard.Boards }

func (b openBoards) Get(id rankcache.BoardID) (sidecar.Board, bool) {
	if board, ok := b.Boards.Get(id); ok {
		return board, true
	}
	return nil, false
}

func (w *world) mode(mode string) {
	w.tiers.Store(fixture.Tiers(fmt.Sprintf("rooms:\n  - {uid: \"1\", mode: %s, boards: [%q]}\n", mode, board))())
}

// set changes a score in Redis.
func (w *world) set(member string, score float64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.scores[member] = score
	w.changed(wire.Update{Op: wire.OpSet, Member: member, Score: score})
}

func (w *world) remove(member string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.scores, member)
	w.changed(wire.Update{Op: wire.OpDelete, Member: member})
}

func (w *world) changed(u wire.Update) {
	w.state.Seq++
	u.Seq = w.state.Seq
	w.updates, w.log = append(w.updates, u), append(w.log, u)
	w.history[w.state] = w.sorted()
}

func (w *world) sorted() (rows []rankcache.Entry) {
	for m, s := range w.scores {
		rows = append(rows, rankcache.Entry{Member: m, Score: s})
	}
	slices.SortFunc(rows, func(a, b rankcache.Entry) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), strings.Compare(b.Member, a.Member))
	})
	return rows
}

// publish brings the local board up to Redis.
func (w *world) publish() {
	w.mu.Lock()
	updates := w.updates
	w.updates = nil
	w.mu.Unlock()
	b := w.boards.Create(board)
	b.Apply(updates)
	b.Publish()
}

// refill fills the local board from Redis and opens it.
func (w *world) refill() {
	w.boards.Close(board)
	b := w.boards.Create(board)
	b.Reset()
	w.mu.Lock()
	state, rows := w.state, w.sorted()
	w.updates = nil
	w.mu.Unlock()
	b.SetRun(state.Run)
	if err := b.Load(state.Seq, rows); err != nil {
		w.t.Fatal(err)
	}
	b.Publish()
	w.boards.Open(board)
}

// failover has Redis lose its last changes, and begin another run.
func (w *world) failover() {
	w.mu.Lock()
	w.state.Run++
	w.state.Seq -= min(w.state.Seq, 3)
	w.history[w.state], w.log = w.sorted(), nil
	w.mu.Unlock()
	w.refill()
}

// refreshHot puts the board's present head among the hot pages.
func (w *world) refreshHot() {
	w.mu.Lock()
	top := &rankcache.Top{Board: board, Entries: w.sorted(), State: w.state, Members: len(w.scores), PublishedAt: time.Now()}
	w.mu.Unlock()
	w.hot.Set(top)
	w.hub.Load().Changed(board)
}

// Read implements [rankcache.Reader]: it is Redis. The streams ask for rows alone.
func (w *world) Read(_ context.Context, qs []rankcache.Query, as []rankcache.Answer) {
	if w.asked.Add(1); w.away.Load() || qs[0].Limit == 0 {
		as[0].Fail(rankcache.ErrUnavailable)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	rows, now := w.sorted(), time.Now()
	as[0].Begin(&qs[0], rankcache.SourceRedis, rankcache.Stamp{State: w.state, Members: len(rows), At: now}, now)
	as[0].Entries = rows[qs[0].Start:min(qs[0].Start+qs[0].Limit, len(rows))]
}

// client keeps the page as a client of a stream does.
type client struct {
	w      *world
	key    Key
	stream *Subscriber
	id     string
	page   map[string]any
	last   Event
	pages  int // that it has got, diffs aside
	diffs  int
}

// newClient returns a client without a stream, which is closed when the world ends.
func (w *world) newClient(key Key) *client {
	c := &client{w: w, key: key}
	w.clients = append(w.clients, c)
	return c
}

// open opens the stream, with the last id unless it is to begin anew.
func (c *client) open(resume bool) error {
	c.close()
	id := ""
	if resume {
		id = c.id
	} else {
		c.id = ""
	}
	s, err := c.w.hub.Load().Subscribe(c.w.t.Context(), c.key, Options{LastID: id})
	c.stream = s
	return err
}

func (c *client) close() {
	if c.stream != nil {
		c.stream.Close()
		c.stream = nil
	}
}

// read takes the events that come until nothing has for a while.
func (c *client) read(within time.Duration) (got bool) {
	for c.stream != nil {
		ctx, cancel := context.WithTimeout(c.w.t.Context(), within)
		ev, err := c.stream.Next(ctx)
		cancel()
		if err != nil {
			return got
		}
		got = true
		c.take(ev)
	}
	return got
}

// take applies one event as docs/LIVE.md tells clients to.
func (c *client) take(ev Event) {
	c.w.t.Helper()
	c.last = ev
	fields := parseEvent(c.w.t, string(ev.SSE()))
	var data map[string]any
	if err := json.Unmarshal([]byte(fields["data"]), &data); err != nil {
		c.w.t.Fatalf("%v: %s", err, fields["data"])
	}
	switch fields["event"] {
	case "page":
		c.pages++
		c.page = data
	case "diff":
		c.diffs++
		if data["base"] != c.id {
			c.w.t.Fatalf("a diff of %v for a client at %s", data["base"], c.id)
		}
		applyDiff(c.page, data)
	case "end":
		c.close()
		return
	default:
		return
	}
	if c.id = fields["id"]; c.page["id"] != c.id {
		c.w.t.Fatalf("id %s of data with %v", c.id, c.page["id"])
	}
	c.check()
}

func parseEvent(t testing.TB, text string) map[string]string {
	t.Helper()
	body, ok := strings.CutSuffix(text, "\n\n")
	if !ok {
		t.Fatalf("an event without an end: %q", text)
	}
	fields := make(map[string]string)
	for line := range strings.Lines(body) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		fields[name] = value
	}
	return fields
}

func applyDiff(page, diff map[string]any) {
	rows := page["entries"].([]any)
	for _, change := range diff["rows"].([]any) {
		row := change.(map[string]any)
		at := int(row["at"].(float64))
		delete(row, "at")
		for len(rows) <= at {
			rows = append(rows, nil)
		}
		rows[at] = row
	}
	for name, value := range diff {
		page[name] = value
	}
	page["entries"] = rows[:int(diff["len"].(float64))]
	for _, name := range []string{"base", "len", "rows"} {
		delete(page, name)
	}
}

// check compares the client's page with the board at the page's seq.
func (c *client) check() {
	c.w.t.Helper()
	c.w.mu.Lock()
	want := c.w.history[c.state()]
	c.w.mu.Unlock()
	rows := c.page["entries"].([]any)
	if len(rows) != min(len(want), c.key.Limit) || c.page["total"] != float64(len(want)) {
		c.w.t.Fatalf("%d rows of %v at %v, want those of %d members", len(rows), c.page["total"], c.state(), len(want))
	}
	for i, r := range rows {
		row, e := r.(map[string]any), want[i]
		if row["rank"] != float64(i+1) || row["member"] != e.Member || row["score"] != e.Score {
			c.w.t.Fatalf("row %d at %v is %v, want %v", i, c.state(), row, e)
		}
		if profile, ok := row["profile"].(map[string]any); ok != c.key.Profiles || ok && profile["nick"] != "N-"+e.Member {
			c.w.t.Fatalf("row %d has the profile %v", i, row["profile"])
		}
	}
}

func (c *client) state() rankcache.State {
	seq, _ := c.page["seq"].(float64)
	run, _ := c.page["run"].(float64)
	return rankcache.State{Run: uint64(run), Seq: uint64(seq)}
}

// current reports whether the client has the present board with the present profiles.
func (c *client) current() error {
	c.w.mu.Lock()
	state := c.w.state
	c.w.mu.Unlock()
	if c.state() != state {
		return fmt.Errorf("the client is at %v, the board at %v", c.state(), state)
	}
	if rows := c.page["entries"].([]any); c.key.Profiles && len(rows) > 0 {
		profile := rows[0].(map[string]any)["profile"].(map[string]any)
		if epoch := c.w.profiles.Epoch.Load(); profile["v"] != float64(epoch) {
			return fmt.Errorf("the client has profiles of %v, want %d", profile["v"], epoch)
		}
	}
	return nil
}

// catchUp reads until the client is current.
func (c *client) catchUp() {
	c.w.t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for {
		if c.stream == nil {
			if err := c.open(true); err != nil {
				c.w.t.Fatal(err)
			}
		}
		c.read(5 * time.Millisecond)
		err := c.current()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			c.w.t.Fatal(err)
		}
	}
}
