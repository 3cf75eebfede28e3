package app

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache/internal/cli"
	"rankcache/internal/run"
	"rankcache/internal/serve"
	"rankcache/internal/testkit"
)

// results are the answers about ended periods, by tag.
type results struct {
	mu      sync.Mutex
	periods map[string]*result
	wrong   []string
	failed  []string
}

// result is what was answered about one ended period.
type result struct {
	reads, local, closed int
	pages                map[uint64]classPage // by seq
	last                 *classPage           // a closed one
}

// TestLinger reads the results of periods from the moment of their ends on, by a sidecar that was there and by one that is
// started within the linger: nothing fails, each answer is the board at its seq, closed ones are Redis's, and hardly
// any comes from there.
func TestLinger(t *testing.T) {
	t.Parallel()
	const period = 3 * time.Second
	switches, reads := testkit.Sized(2, 10), testkit.Sized(switchReads, 5000)
	s := newSwitchShow(t, period, "grace: 1s, linger: 1m")
	s.control()
	r := &results{periods: make(map[string]*result)}
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(switches+1)*period)
	defer cancel()
	var all sync.WaitGroup
	all.Go(func() { s.send(ctx) })
	for range switchReaders {
		all.Go(func() { s.readPrevious(ctx, reads/switchReaders, r) })
	}
	all.Wait()
	r.check(s, switches)

	other, err := serve.NewSidecar(append([]string{"--data", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--drain", "0s"}, s.common...), s.periodic, slog.New(slog.NewTextHandler(t.Output(), nil)))
	must(t, err)
	s.background(other.Run)
	for tag, p := range r.periods {
		if len(p.pages) == 1 && p.pages[0].Period.Tag != "" { // nobody has played: Redis has no such board
			continue
		}
		testkit.Eventually(t, time.Minute, func() error {
			page, err := readClass(http.DefaultClient, fmt.Sprintf("http://%s/v1/classes/gift/top?zone=7&limit=50&at=%s", other.Addr("data"), tag))
			if err == nil && (page.Source != "local" || page.Locked != "closed") {
				err = fmt.Errorf("period %s comes %s from %s", tag, page.Locked, page.Source)
			}
			if last := p.last; err == nil && last != nil && (page.Seq != last.Seq || !slices.Equal(page.Entries, last.Entries)) {
				t.Fatalf("period %s is %+v here, and was %+v", tag, page, *last)
			}
			return err
		})
	}
}

// control has a controller close boards.
func (s *switchShow) control() {
	o := &run.ControllerOptions{Every: 50 * time.Millisecond, Posts: 50 * time.Millisecond}
	must(s.t, cli.ParseArgs("controller", o, append([]string{"--group", s.topic}, s.common...)))
	o.ParseRooms = s.periodic
	client := redis.NewClient(&redis.Options{Addr: s.redis.Addr(), Protocol: 2})
	s.t.Cleanup(func() { client.Close() })
	follower, c, err := o.Build(client, nil, slog.New(slog.NewTextHandler(s.t.Output(), nil)), cli.NewRegistry())
	must(s.t, err)
	s.background(follower.Run)
	s.background(c.Run)
}

// readPrevious reads the board of the period before, so many times a second, until ctx ends.
func (s *switchShow) readPrevious(ctx context.Context, perSecond int, r *results) {
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	url := "http://" + s.sidecar.Addr("data") + "/v1/classes/gift/top?zone=7&limit=50&at=previous"
	pace(ctx, perSecond, func(int) {
		page, err := readClass(client, url)
		r.take(page, err)
	})
}

// take compares an answer with those before.
func (r *results) take(page classPage, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.failed = append(r.failed, err.Error())
		return
	}
	p := r.periods[page.Period.Tag]
	if p == nil {
		p = &result{pages: make(map[uint64]classPage)}
		r.periods[page.Period.Tag] = p
	}
	if p.reads++; page.Source == "local" {
		p.local++
	}
	if page.Locked == "closed" {
		p.closed++
		p.last = &page
	}
	same, known := p.pages[page.Seq]
	if p.pages[page.Seq] = page; known && !slices.Equal(same.Entries, page.Entries) || p.last != nil && page.Seq > p.last.Seq {
		r.wrong = append(r.wrong, fmt.Sprintf("%+v, and before %+v, closed %+v", page, same, p.last))
	}
}

// check compares closed boards with Redis's, of all periods but the first, whose beginning nobody has read.
func (r *results) check(s *switchShow, least int) {
	client := redis.NewClient(&redis.Options{Addr: s.redis.Addr(), Protocol: 2})
	defer client.Close()
	if len(r.failed)+len(r.wrong) > 0 {
		s.t.Errorf("%d reads failed and %d are wrong: %.2000q", len(r.failed), len(r.wrong), slices.Concat(r.failed, r.wrong))
	}
	tags, closed := slices.Sorted(maps.Keys(r.periods)), 0
	if len(tags) < least {
		s.t.Fatalf("only results of %v were read", tags)
	}
	for i, tag := range tags {
		p := r.periods[tag]
		s.t.Logf("period %s: %d reads, %d local, %d closed", tag, p.reads, p.local, p.closed)
		if i > 0 && p.local*100 < p.reads*99 {
			s.t.Errorf("period %s: of %d reads %d were local", tag, p.reads, p.local)
		}
		if p.last == nil {
			continue
		}
		closed++
		of, err := s.kind.Calendar().Parse(tag)
		must(s.t, err)
		rows, err := client.ZRevRangeWithScores(s.t.Context(), string(s.board(of.Start).ID), 0, 49).Result()
		must(s.t, err)
		for i, row := range rows {
			if got := p.last.Entries[i]; got.Member != row.Member || got.Score != row.Score {
				s.t.Fatalf("period %s: row %d is %v, in Redis %v", tag, i, got, row)
			}
		}
	}
	if closed == 0 {
		s.t.Error("no result was closed")
	}
}
