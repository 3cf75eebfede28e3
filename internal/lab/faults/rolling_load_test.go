package faults

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"rankcache"
	"rankcache/class"
	"rankcache/rooms"
)

// rollingZones have boards of each rolling class: of gifts one is whole in memory and the other one small, of gifts-hot both
// are hot.
var rollingZones, rollingClasses = []string{"7", "8"}, []string{"gifts", "gifts-hot"}

const (
	// rollingMembers of a zone: all are on one page.
	rollingMembers = 40
	// backWithin is how long after Redis is there again reads may fail.
	backWithin = 5 * time.Second
)

// rollingLoadOptions are how much is given and read.
type rollingLoadOptions struct {
	posters, readers, batch int
	pause                   time.Duration // between two posts of a poster, and two reads of a reader
}

// rollingLoad gives until each gift is answered, reads, and knows what rolling boards are: the answers of gifts tell
// which seq of a board they became, and what ended periods give is what was given in them.
type rollingLoad struct {
	prefix string
	file   *rooms.File
	client *http.Client
	orders atomic.Int64

	acked, again, reads atomic.Int64

	mu         sync.Mutex
	boards     map[rankcache.BoardID]*rollingHistory
	given      map[string]map[string]float64 // by zone and tag, and member
	unknown    []*rollingGift                // were too late when they were posted again
	late       int
	redisAway  bool
	backAt     time.Time
	incomplete int
	spared     int
	sources    map[string]int // pages that were not incomplete
	bad        []string
}

// rollingHistory is what became of one rolling board, and its pages that were not incomplete.
type rollingHistory struct {
	zone    string
	period  class.Period
	gifts   []rollingChange
	reached uint64                        // acknowledged seq
	acks    []rollingAck                  // of it
	pages   map[uint64]map[string]float64 // by seq
}

type rollingChange struct {
	seq  uint64
	gift *rollingGift
}

type rollingAck struct {
	at  time.Time
	seq uint64
}

// rollingGift is a command in the wire form.
type rollingGift struct {
	Order  string            `json:"order"`
	Class  string            `json:"class"`
	Dims   map[string]string `json:"dims"`
	Member string            `json:"member"`
	Op     string            `json:"op"`
	Delta  float64           `json:"delta"`
	At     int64             `json:"at"`
	tries  int
}

func newRollingLoad(prefix string, file *rooms.File) *rollingLoad {
	return &rollingLoad{prefix: prefix, file: file, boards: make(map[rankcache.BoardID]*rollingHistory), given: make(map[string]map[string]float64), sources: make(map[string]int),
		client: &http.Client{Timeout: durablePatience, Transport: &http.Transport{MaxIdleConnsPerHost: 64}}}
}

// period returns the running one at a time.
func (l *rollingLoad) period(at time.Time) class.Period {
	p, err := l.file.Class("gift").Calendar().At(at)
	if err != nil {
		panic(err) // parts of a day have no gap
	}
	return p
}

// away notes that Redis is, or is there again.
func (l *rollingLoad) away(is bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.redisAway, l.backAt = is, time.Now().Add(backWithin)
}

// give posts gifts until ctx ends, and returns when each is answered.
func (l *rollingLoad) give(ctx context.Context, base func(try int) string, o rollingLoadOptions) {
	each(ctx, o.pause, func() {
		batch := make([]*rollingGift, o.batch)
		for i := range batch {
			batch[i] = &rollingGift{Order: fmt.Sprint("g", l.orders.Add(1)), Class: "gift", Dims: map[string]string{"zone": rollingZones[rand.IntN(len(rollingZones))]},
				Member: fmt.Sprint("m", rand.IntN(rollingMembers)), Op: "incr", Delta: float64(1 + rand.IntN(9)), At: time.Now().UnixMilli()}
		}
		l.post(base, batch)
	})
}

// post posts gifts until each is answered for good.
func (l *rollingLoad) post(base func(try int) string, batch []*rollingGift) {
	giveUp := time.Now().Add(settleWithin)
	for try := 0; len(batch) > 0; try++ {
		if batch = l.try(base(try), batch); len(batch) == 0 {
			return
		}
		l.again.Add(int64(len(batch)))
		if time.Now().After(giveUp) {
			l.wrong("not answered in %v: %+v", settleWithin, *batch[0])
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// rollingAnswer is one result of a batch.
type rollingAnswer struct {
	Result *struct {
		Fed []struct {
			Board   rankcache.BoardID
			Seq     uint64
			Refused string
		}
	}
	Problem *struct {
		Status int
		Code   string
	}
}

// try posts gifts once and returns those that are to be posted again.
func (l *rollingLoad) try(base string, batch []*rollingGift) (left []*rollingGift) {
	for _, g := range batch {
		g.tries++
	}
	body, _ := json.Marshal(map[string]any{"commands": batch}) // numbers and strings
	resp, err := l.client.Post(base+"/v1/scores:batch", "application/json", bytes.NewReader(body))
	if err != nil {
		return batch
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode == http.StatusServiceUnavailable {
		return batch
	}
	var found struct{ Results []rollingAnswer }
	if err := json.Unmarshal(answer, &found); err != nil || len(found.Results) != len(batch) {
		l.wrong("%s was answered with %d %.300s", body, resp.StatusCode, answer)
		return nil
	}
	now := time.Now()
	for i, r := range found.Results {
		switch g := batch[i]; {
		case r.Result != nil:
			l.took(g, &r, now)
		case r.Problem != nil && r.Problem.Status == http.StatusServiceUnavailable:
			left = append(left, g)
		case r.Problem != nil && r.Problem.Code == "late":
			l.tooLate(g)
		default:
			l.wrong("%+v was answered with %.500s", *g, answer)
		}
	}
	return left
}

func (l *rollingLoad) wrong(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bad = append(l.bad, fmt.Sprintf(format, args...))
}

// tooLate notes a gift that came after its period. If it was posted before, the earlier post may yet be applied.
func (l *rollingLoad) tooLate(g *rollingGift) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.late++; g.tries > 1 {
		l.unknown = append(l.unknown, g)
	}
}

// took notes an acknowledged gift.
func (l *rollingLoad) took(g *rollingGift, r *rollingAnswer, now time.Time) {
	zone, tag := g.Dims["zone"], l.period(time.UnixMilli(g.At)).Tag
	l.acked.Add(1)
	l.mu.Lock()
	defer l.mu.Unlock()
	key := zone + " " + tag
	if l.given[key] == nil {
		l.given[key] = make(map[string]float64)
	}
	l.given[key][g.Member] += g.Delta
	if len(r.Result.Fed) != 2*len(rollingClasses) {
		l.bad = append(l.bad, fmt.Sprintf("%+v changed %+v, want two boards of each rolling class", *g, r.Result.Fed))
	}
	for _, fed := range r.Result.Fed {
		if fed.Seq == 0 {
			l.bad = append(l.bad, fmt.Sprintf("%+v: board %s: %s", *g, fed.Board, fed.Refused))
			continue
		}
		h := l.at(fed.Board)
		h.gifts = append(h.gifts, rollingChange{fed.Seq, g})
		if fed.Seq > h.reached {
			h.reached = fed.Seq
			h.acks = append(h.acks, rollingAck{now, fed.Seq})
		}
	}
}

// at is called with the lock held.
func (l *rollingLoad) at(id rankcache.BoardID) *rollingHistory {
	h := l.boards[id]
	if h == nil {
		b, _, ok := l.file.Board(id)
		if !ok {
			l.bad = append(l.bad, fmt.Sprintf("board %s is of no class", id))
		}
		h = &rollingHistory{zone: b.Dims["zone"], period: b.Period, pages: make(map[uint64]map[string]float64)}
		l.boards[id] = h
	}
	return h
}

// rollingPage is the answer to a read.
type rollingPage struct {
	Source     string
	Board      rankcache.BoardID
	Seq        uint64
	Incomplete bool
	Entries    []struct {
		Member string
		Score  float64
	}
}

// readAll reads the running boards in turns until ctx ends.
func (l *rollingLoad) readAll(ctx context.Context, sidecar func() *rollingSidecar, o rollingLoadOptions) {
	each(ctx, o.pause, func() {
		l.read(sidecar(), rollingClasses[rand.IntN(len(rollingClasses))], rollingZones[rand.IntN(len(rollingZones))])
	})
}

func (l *rollingLoad) read(s *rollingSidecar, kind, zone string) {
	begun := time.Now()
	due := s.good.Load() && !l.excused(begun)
	resp, err := l.client.Get(s.URL("data", "/v1/classes/"+kind+"/top?zone="+zone+"&limit="+strconv.Itoa(rollingMembers+1)))
	l.reads.Add(1)
	var body []byte
	if err == nil {
		body, err = io.ReadAll(resp.Body)
		resp.Body.Close()
		if err == nil && resp.StatusCode != http.StatusOK {
			err = fmt.Errorf("%d %.300s", resp.StatusCode, body)
		}
	}
	var page rollingPage
	if err == nil {
		err = json.Unmarshal(body, &page)
	}
	switch {
	case err == nil:
		age, _ := strconv.Atoi(resp.Header.Get("Rankcache-Age-Ms"))
		l.check(&page, begun.Add(-time.Duration(age+1)*time.Millisecond))
		if (resp.Header.Get("Rankcache-Incomplete") == "priming") != page.Incomplete {
			l.wrong("header %q of %+v", resp.Header.Get("Rankcache-Incomplete"), page)
		}
	case due && s.good.Load() && !l.excused(time.Now()):
		l.wrong("a read failed: class %s, zone %s: %v", kind, zone, err)
	default:
		l.mu.Lock()
		l.spared++
		l.mu.Unlock()
	}
}

// excused reports whether reads may fail, as Redis is away or was a moment ago.
func (l *rollingLoad) excused(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.redisAway || now.Before(l.backAt)
}

// check keeps a page that is not incomplete. It must have what was acknowledged at a time.
func (l *rollingLoad) check(page *rollingPage, since time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if page.Incomplete {
		l.incomplete++
		return
	}
	l.sources[page.Source]++
	h := l.at(page.Board)
	n, _ := slices.BinarySearchFunc(h.acks, since, func(a rollingAck, t time.Time) int { return a.at.Compare(t) })
	if n > 0 && h.acks[n-1].seq > page.Seq {
		l.bad = append(l.bad, fmt.Sprintf("board %s from %s has seq %d, but %d was acknowledged %v before", page.Board, page.Source, page.Seq, h.acks[n-1].seq, time.Since(h.acks[n-1].at)))
	}
	rows := make(map[string]float64, len(page.Entries))
	for _, e := range page.Entries {
		rows[e.Member] = e.Score
	}
	switch known, ok := h.pages[page.Seq]; {
	case !ok:
		h.pages[page.Seq] = rows
	case !maps.Equal(known, rows):
		l.bad = append(l.bad, fmt.Sprintf("board %s from %s at seq %d is %v, and was %v", page.Board, page.Source, page.Seq, rows, known))
	}
}

// settle finds out what became of gifts whose first post was not answered.
func (l *rollingLoad) settle(base func(try int) string) {
	for _, g := range l.unknown {
		l.post(base, []*rollingGift{g})
	}
}

// judge compares all pages with what was given, and returns how many boards had one.
func (l *rollingLoad) judge() (whole int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, h := range l.boards {
		if len(h.pages) == 0 {
			continue
		}
		whole++
		if err := l.judgeBoard(h); err != nil {
			l.bad = append(l.bad, fmt.Sprintf("board %s: %v", id, err))
		}
	}
	return whole
}

// judgeBoard compares the pages of a board, the earliest first.
func (l *rollingLoad) judgeBoard(h *rollingHistory) error {
	ended, err := l.file.Class(rollingClasses[0]).Sources(h.period)
	if err != nil {
		return err
	}
	want := make(map[string]float64)
	for _, p := range ended {
		for member, n := range l.given[h.zone+" "+p.Tag] {
			want[member] += n
		}
	}
	slices.SortFunc(h.gifts, func(a, b rollingChange) int { return cmp.Compare(a.seq, b.seq) })
	next := 0
	for _, seq := range slices.Sorted(maps.Keys(h.pages)) {
		for ; next < len(h.gifts) && h.gifts[next].seq <= seq; next++ {
			want[h.gifts[next].gift.Member] += h.gifts[next].gift.Delta
		}
		if got := h.pages[seq]; !maps.Equal(got, want) {
			return fmt.Errorf("seq %d is %v, want %v", seq, got, want)
		}
	}
	return nil
}
