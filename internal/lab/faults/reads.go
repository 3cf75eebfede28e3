package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"sync"
	"time"

	"rankcache"
)

const (
	// readers is how many read the boards of one tier. A tier that hangs holds up
	// its own readers only.
	readers = 2
	// readEvery is each reader's pace.
	readEvery = 25 * time.Millisecond
	// readTimeout is when a caller gives up: nothing in the product waits longer.
	readTimeout = 10 * time.Second
)

// Board is one board of the load.
type Board struct {
	ID      rankcache.BoardID
	Tier    string // local, hot or redis
	Members int    // that commands are drawn from
	Weight  int    // of commands and reads
}

// Reads asks questions until its context ends.
type Reads struct {
	Boards []Board
	Oracle *Oracle
	Tally  *Tally
	Base   func() string // URL of the data port at this moment
	Query  string        // further arguments, such as "profiles=1"
	// Focus holds, by board, the members that every other question is about.
	Focus sync.Map

	// asking is held while a question is on its way.
	asking sync.RWMutex
}

// Pause waits until no question is on its way and keeps it so until Resume.
func (l *Reads) Pause() { l.asking.Lock() }

// Resume ends a Pause.
func (l *Reads) Resume() { l.asking.Unlock() }

// Run blocks until ctx ends and all answers are in.
func (l *Reads) Run(ctx context.Context, seed uint64) {
	client := newClient(3 * readers)
	defer client.CloseIdleConnections()
	tiers := make(map[string][]Board)
	for _, b := range l.Boards {
		tiers[b.Tier] = append(tiers[b.Tier], b)
	}
	var all sync.WaitGroup
	for _, boards := range tiers {
		for range readers {
			seed++
			rng := rand.New(rand.NewPCG(seed, 0))
			all.Go(func() {
				each(ctx, readEvery, func() {
					l.asking.RLock()
					defer l.asking.RUnlock()
					l.one(client, l.Tally, l.draw(rng, pick(rng, boards)))
				})
			})
		}
	}
	all.Wait()
}

// newClient keeps as many connections as are used at once.
func newClient(conns int) *http.Client {
	return &http.Client{Timeout: readTimeout, Transport: &http.Transport{MaxIdleConnsPerHost: conns}}
}

// each calls do at a pace until ctx ends.
func each(ctx context.Context, pace time.Duration, do func()) {
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for ctx.Err() == nil { // of both that may be ready the select takes any
		do()
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// one asks q and hands the answer to the oracle and the tally. A request that was sent is answered to the end,
// whatever becomes of the run.
func (l *Reads) one(client *http.Client, tally *Tally, q Question) (*Ask, *Reply) {
	ask, r := l.Oracle.Ask(q), &Reply{}
	base := l.Base()
	resp, err := client.Do(q.request(base))
	if err == nil {
		var body []byte
		body, err = io.ReadAll(resp.Body)
		resp.Body.Close()
		if err == nil {
			r.read(resp.StatusCode, resp.Header, body)
		}
	}
	if err != nil {
		r.Err = err
	}
	l.Oracle.Tell(ask, r)
	tally.count(ask, r)
	return ask, r
}

// draw makes up a question of a board.
func (l *Reads) draw(rng *rand.Rand, b Board) Question {
	q := Question{Board: b.ID, Tier: b.Tier, Query: l.Query}
	draw := func(n int) []string { return b.draw(rng, n) }
	if focus, ok := l.Focus.Load(b.ID); ok && rng.IntN(2) == 0 {
		draw = func(n int) []string { return drawOf(rng, focus.([]string), n) }
	}
	switch rng.IntN(8) {
	case 0, 1:
		q.Kind, q.Limit = KindTop, 10
	case 2:
		q.Kind, q.Limit = KindTop, 50
	case 3:
		q.Kind, q.Limit, q.Start = KindTop, 20, rng.IntN(3)*20
	case 4:
		q.Kind, q.Limit, q.Members = KindMe, 10, draw(1)
	case 5, 6:
		q.Kind, q.Limit, q.Members = KindMember, rng.IntN(5), draw(1)
	default:
		q.Kind, q.Members = KindBatch, draw(1+rng.IntN(8))
	}
	return q
}

// pick draws a board by its weight.
func pick(rng *rand.Rand, boards []Board) Board {
	sum := 0
	for _, b := range boards {
		sum += b.Weight
	}
	n := rng.IntN(sum)
	for _, b := range boards {
		if n -= b.Weight; n < 0 {
			return b
		}
	}
	panic("weights do not add up")
}

// draw returns n members of the board, as far as commands made them.
func (b Board) draw(rng *rand.Rand, n int) []string {
	members := make([]string, n)
	for i := range members {
		members[i] = memberName(rng.IntN(b.Members))
	}
	return members
}

// drawOf returns n of some members, one perhaps several times.
func drawOf(rng *rand.Rand, of []string, n int) []string {
	members := make([]string, n)
	for i := range members {
		members[i] = of[rng.IntN(len(of))]
	}
	return members
}

func memberName(i int) string { return fmt.Sprintf("m%04d", i) }

// request returns the question as HTTP.
func (q *Question) request(base string) *http.Request {
	board := base + "/v1/boards/" + string(q.Board)
	switch q.Kind {
	case KindTop:
		return get(fmt.Sprintf("%s/top?start=%d&limit=%d&%s", board, q.Start, q.Limit, q.Query))
	case KindMe:
		return get(fmt.Sprintf("%s/top?start=%d&limit=%d&me=%s&%s", board, q.Start, q.Limit, url.QueryEscape(q.Members[0]), q.Query))
	case KindMember:
		return get(fmt.Sprintf("%s/members/%s?around=%d&%s", board, url.PathEscape(q.Members[0]), q.Limit, q.Query))
	}
	body, _ := json.Marshal(map[string][]string{"members": q.Members}) // strings can't fail
	req, err := http.NewRequest(http.MethodPost, board+"/members:batch?"+q.Query, bytes.NewReader(body))
	if err != nil {
		panic(err)
	}
	return req
}

func get(url string) *http.Request {
	req, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		panic(err)
	}
	return req
}
