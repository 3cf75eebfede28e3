package httpapi

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"rankcache/internal/testkit"
	"rankcache/internal/testkit/fixture"
	"rankcache/localboard"
	"rankcache/sidecar"
	"rankcache/wire"
)

// pageBody is a page as a caller reads it.
type pageBody struct {
	Source  string
	Seq     uint64
	Total   int
	Start   int
	Entries []rowBody
	Me      *rowBody
}

type rowBody struct {
	Rank   int
	Member string
	Score  float64
	Seq    uint64
}

// TestPagesAreConsistent reads while the board is fixture.Published anew all the time. Every
// score follows from the seq beside it, and equal tags mean equal bodies.
func TestPagesAreConsistent(t *testing.T) {
	env := newEnv()
	s := start(t, env, Config{})
	stop := make(chan struct{})
	var writer, readers sync.WaitGroup
	writer.Go(func() {
		for seq := uint64(1000); ; seq++ {
			select {
			case <-stop:
				return
			default:
				env.Local.Publish(seq)
			}
		}
	})
	var bodies sync.Map // by tag
	for i := range 4 {
		readers.Go(func() {
			path := []string{"top?limit=5", "top?limit=20&start=480", "top?limit=3&me=m000900", "top?limit=5&order=asc"}[i]
			for range testkit.Sized(50, 150) {
				a := s.get(t, "/v1/boards/local/"+path)
				checkWhole(t, env.Local.N, a.body)
				if known, _ := bodies.LoadOrStore(path+a.header.Get("ETag"), a.body); known != a.body {
					t.Errorf("one tag, two bodies:\n%s\n%s", known, a.body)
				}
			}
		})
	}
	readers.Wait()
	close(stop)
	writer.Wait()
}

func checkWhole(t *testing.T, n int, body string) {
	t.Helper()
	var p pageBody
	if err := json.Unmarshal([]byte(body), &p); err != nil || p.Seq == 0 || len(p.Entries) == 0 {
		t.Fatalf("%v in %s", err, body)
	}
	for i, e := range p.Entries {
		e.Seq = p.Seq
		checkRow(t, n, e)
		if e.Rank != p.Start+i+1 {
			t.Errorf("row %d has rank %d", i, e.Rank)
		}
	}
	if p.Me != nil {
		checkRow(t, n, *p.Me)
	}
}

func checkRow(t *testing.T, n int, e rowBody) {
	t.Helper()
	var i int
	if _, err := fmt.Sscanf(e.Member, "m%06d", &i); err != nil || e.Score != fixture.ScoreAt(e.Seq, n, i) {
		t.Errorf("%+v is not of its seq, %v", e, err)
	}
}

// TestPagesOfLocalBoardAreConsistent does the same with a real local board: each update
// gives one member the score of its seq, so the sum over the whole board, which
// is its head, follows from the seq.
func TestPagesOfLocalBoardAreConsistent(t *testing.T) {
	const members = 50
	board := localboard.New("local")
	apply := func(seq uint64) {
		board.Apply([]wire.Update{{Board: "local", Member: fixture.Member(int(seq % members)), Op: wire.OpSet, Score: float64(seq), Seq: seq}})
		board.Publish()
	}
	for seq := range uint64(members) {
		apply(seq + 1)
	}
	env := newEnv()
	cfg := env.config()
	cfg.Boards = fixture.Boards[sidecar.Board]{"local": board}
	r := readerOf(t, cfg)
	s, err := New(r, Config{}, fixture.FailOnWarn(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var writer sync.WaitGroup
	writer.Go(func() {
		for seq := uint64(members + 1); ; seq++ {
			select {
			case <-stop:
				return
			default:
				apply(seq)
			}
		}
	})
	for i := range 300 {
		ctx := requestCtx("/v1/boards/local/top?me=" + fixture.Member(i%members) + strings.Repeat("&order=asc", i%2))
		s.handle(ctx)
		checkSum(t, ctx.Response.Body(), members)
	}
	close(stop)
	writer.Wait()
}

// checkSum checks a page of a board whose scores are its last n seqs.
func checkSum(t *testing.T, body []byte, n int) {
	t.Helper()
	var p pageBody
	if err := json.Unmarshal(body, &p); err != nil || len(p.Entries) != n || p.Total != n || p.Me == nil {
		t.Fatalf("%v in %s", err, body)
	}
	sum := 0.0
	for _, e := range p.Entries {
		sum += e.Score
	}
	if want := float64(n) * (2*float64(p.Seq) - float64(n) + 1) / 2; sum != want {
		t.Fatalf("scores add up to %v at seq %d, want %v", sum, p.Seq, want)
	}
	if me := *p.Me; me.Seq == p.Seq && p.Entries[me.Rank-1].Member != me.Member {
		t.Fatalf("me %+v is not in its row of a page of the same seq", me)
	}
}
