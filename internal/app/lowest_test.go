package app

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"rankcache"
	"rankcache/internal/cli"
	"rankcache/internal/testkit"
)

// lap is what a member has: its time, when it came to it, and in which car.
type lap struct {
	score float64
	reach int
	car   string
}

// laps are boards of lap times, a plain account of each, and the commands.
type laps struct {
	*degraded
	boards   []rankcache.BoardID // in memory, hot, in Redis
	account  []map[string]lap
	commands []string // arrays of a batch each
}

// TestLapTimes: a class with order asc ranks as a plain account does, ties included, whoever
// answers: the local copy, the hot page, Redis or the ledger. The ledger proves such boards, rebuilds
// them with their members' data, and a repeat gets the first answer then.
func TestLapTimes(t *testing.T) {
	t.Parallel()
	topic := testkit.Name(t)
	d := newDegraded(t, "--topic-ledger", topic, "--ledger-partitions", "2")
	w := &laps{degraded: d}
	name := strings.ToLower(testkit.Name(t))
	text := fmt.Sprintf("classes:\n- {name: laps, board: %q, period: none, order: asc, ties: first, ledger: true, data: true, ops: [set, incr, delete, best]}\nboards:\n", name+":{kind}")
	for _, kind := range []string{"super-hot", "hot", "none"} {
		b := rankcache.BoardID(name + ":" + strings.ReplaceAll(kind, "-", ""))
		if w.boards = append(w.boards, b); kind != "none" {
			text += fmt.Sprintf("- {match: %q, mode: %s}\n", b, kind)
		}
	}
	must(t, os.WriteFile(d.rooms, []byte(text), 0o600))
	url := testkit.Database(t, "postgres")
	l := startListening(t, append([]string{"ledger", "--http", "127.0.0.1:0", "--serve-reads", "--database", url, "--topic-ledger", topic, "--ledger-group", topic}, d.common...)...)
	testkit.Eventually(t, time.Minute, func() error { // the writer has read the file, and its producer is up
		_, err := w.post(`{"order":"probe","class":"laps","dims":{"kind":"probe"},"member":"m","op":"set","score":1}`)
		return err
	})
	for _, b := range w.boards {
		w.race(b, 60)
	}
	s := d.serve(t, "--redis-timeout", "500ms", "--ledger-url", l.URL("http", ""), "--rpc", "127.0.0.1:0")
	s.WaitReady(time.Minute)
	for i, right := range []func(answer) bool{fromLocal, fromHot, fromRedis} {
		d.until(s, w.boards[i], "its source", right)
		w.check(s, i)
	}
	w.checkRPC(s)
	testkit.Eventually(t, time.Minute, func() error {
		_, body := l.Get("http", "/status")
		return errors.Join(contains(body, fmt.Sprintf(`"behind":0,"rows":%d,`, 3*60+2)), contains(body, `"current_at":"`))
	})
	must(t, d.redis.Kill())
	d.until(s, w.boards[2], "the ledger", fromLedger)
	w.check(s, 2)
	must(t, d.redis.Restart(t.Context()))
	d.until(s, w.boards[2], "Redis, which is back", fromRedis)

	var out bytes.Buffer
	must(t, cli.Run(t.Context(), NewCommand(), []string{"ledger", "check", "--database", url}, &out, io.Discard))
	if out.String() != "4 boards, 0 not proved\n" {
		t.Errorf("ledger check prints %q", out.String())
	}
	for _, more := range []string{"--dry-run", "--wait=1m"} {
		args := []string{"rebuild", "--board", string(w.boards[2]), "--database", url, "--redis", "redis://" + d.redis.Addr(), "--rooms", d.rooms, "--redis-timeout", "5s", more}
		out.Reset()
		if err := cli.Run(t.Context(), NewCommand(), args, &out, io.Discard); err != nil {
			t.Errorf("%v\n%s", err, out.String())
		}
	}
	w.check(s, 2)
	for _, batch := range w.commands {
		testkit.Eventually(t, time.Minute, func() error { // the writer may have lost its connection
			answers, err := w.post(batch)
			if err == nil && slices.ContainsFunc(answers, func(a posted1) bool { return !a.Duplicate }) {
				err = fmt.Errorf("%+v, want repeats", answers)
			}
			return err
		})
	}
	w.check(s, 2)
}

// checkRPC posts a time that is not better, and reads it, over Connect.
func (w *laps) checkRPC(s *child) {
	w.t.Helper()
	call := func(url, body string, answer any) {
		w.t.Helper()
		resp, err := http.Post(url, "application/json", strings.NewReader(body))
		must(w.t, err)
		defer resp.Body.Close()
		must(w.t, json.NewDecoder(resp.Body).Decode(answer))
	}
	var given struct {
		Results []struct{ Result struct{ Score float64 } }
	}
	call(w.writer.URL("scores", "/rankcache.v1.Scores/PostScores"), `{"commands":[{"order":"rpc","class":"laps","dims":{"kind":"probe"},"member":"m","op":"best","score":2}]}`, &given)
	if len(given.Results) != 1 || given.Results[0].Result.Score != 1 {
		w.t.Errorf("a post over Connect is answered %+v", given)
	}
	for order, want := range map[string]string{"UNSPECIFIED": "ASCENDING", "ASCENDING": "ASCENDING", "DESCENDING": "DESCENDING"} {
		var page struct {
			Page struct {
				Order string
				Rows  []struct{ Score float64 }
			}
		}
		call(s.URL("rpc", "/rankcache.v1.Boards/GetTop"), fmt.Sprintf(`{"address":{"board":%q},"order":"DIRECTION_%s"}`, w.boards[0], order), &page)
		if rows := page.Page.Rows; page.Page.Order != "DIRECTION_"+want || len(rows) == 0 || (rows[0].Score <= rows[len(rows)-1].Score) != (want == "ASCENDING") {
			w.t.Errorf("with the order %s: %+v", order, page)
		}
	}
}

// posted1 is what becomes of one command of a batch.
type posted1 struct {
	Score, Raw float64
	Duplicate  bool
}

// race posts random changes of a board, and keeps account of them.
func (w *laps) race(b rankcache.BoardID, n int) {
	w.t.Helper()
	account, at := map[string]lap{}, time.Now().UnixMilli()
	var commands []string
	for i := range n {
		member, score := fmt.Sprint("m", rand.IntN(20)), float64(70_000+rand.IntN(6))
		c := fmt.Sprintf(`{"order":"o%d","board":%q,"member":%q,"at":%d,`, i, b, member, at)
		before, there := account[member]
		car, given := before.car, ""
		if rand.IntN(3) > 0 {
			car = []string{"", "ü>", "replay-9f86"}[rand.IntN(3)]
			given = fmt.Sprintf(`,"data":%q`, car)
		}
		switch {
		case there && rand.IntN(8) == 0:
			commands = append(commands, c+`"op":"delete"}`)
			delete(account, member)
			continue
		case there && rand.IntN(2) == 0:
			commands = append(commands, c+fmt.Sprintf(`"op":"incr","delta":%v%s}`, score-before.score, given))
		case rand.IntN(2) == 0:
			commands = append(commands, c+fmt.Sprintf(`"op":"best","score":%v%s}`, score, given))
			if there && before.score <= score {
				score, car = before.score, before.car
			}
		default:
			commands = append(commands, c+fmt.Sprintf(`"op":"set","score":%v%s}`, score, given))
		}
		if there && before.score == score {
			i = before.reach
		}
		account[member] = lap{score, i, car}
	}
	w.account, w.commands = append(w.account, account), append(w.commands, strings.Join(commands, ","))
	answers, err := w.post(w.commands[len(w.commands)-1])
	must(w.t, err)
	for _, a := range answers {
		if a.Score < 0 || a.Raw > 0 || a.Score > 0 && a.Raw == 0 {
			w.t.Errorf("a post is answered %+v", a)
		}
	}
}

// post posts a batch, and returns what became of it if all were applied.
func (w *laps) post(commands string) (answers []posted1, err error) {
	resp, err := http.Post(w.writer.URL("scores", "/v1/scores:batch"), "application/json", strings.NewReader(`{"commands":[`+commands+`]}`))
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var body struct {
		Results []struct {
			Result  *posted1
			Problem json.RawMessage
		}
	}
	if err := json.NewDecoder(resp.Body).Decode(&body); err != nil || len(body.Results) == 0 {
		return nil, fmt.Errorf("%s: %w", resp.Status, cmp.Or(err, errors.New("no results")))
	}
	for _, r := range body.Results {
		if r.Result == nil {
			return nil, fmt.Errorf("%s", r.Problem)
		}
		answers = append(answers, *r.Result)
	}
	return answers, nil
}

// check compares pages of a board with the account: the best first, and the other way round.
func (w *laps) check(s *child, i int) {
	w.t.Helper()
	type row struct {
		Rank   int
		Member string
		Score  float64
		Data   string
	}
	var want []row
	for member, l := range w.account[i] {
		want = append(want, row{0, member, l.score, l.car})
	}
	slices.SortFunc(want, func(a, b row) int {
		return cmp.Or(cmp.Compare(a.Score, b.Score), cmp.Compare(w.account[i][a.Member].reach, w.account[i][b.Member].reach))
	})
	for _, query := range []string{"", "&order=asc", "&order=desc"} {
		order := "asc"
		if query == "&order=desc" {
			slices.Reverse(want)
			order = "desc"
		}
		for i := range want {
			want[i].Rank = i + 1
		}
		me := len(want) / 2
		var code int
		var body string
		testkit.Eventually(w.t, time.Minute, func() error { // a busy machine may take the ledger's time
			if code, body = s.Get("data", fmt.Sprintf("/v1/boards/%s/top?limit=500&gap=1&me=%s%s", w.boards[i], want[me].Member, query)); code == http.StatusServiceUnavailable {
				return errors.New(body)
			}
			return nil
		})
		var page struct {
			Order   string
			Entries []row
			Me      struct {
				row
				Gap float64
			}
		}
		must(w.t, json.Unmarshal([]byte(body), &page))
		gap := 0.0
		for j := me; j > 0 && gap == 0; j-- {
			gap = want[j-1].Score - want[me].Score
		}
		if code != http.StatusOK || page.Order != order || !slices.Equal(page.Entries, want) || page.Me.row != want[me] || page.Me.Gap != gap {
			w.t.Fatalf("%s: %d %s\nwant %v, and the gap %v", query, code, body, want, gap)
		}
	}
}
