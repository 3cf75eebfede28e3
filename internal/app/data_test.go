package app

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"rankcache"
	"rankcache/internal/testkit"
)

// TestDataOfMembers: what members have beside their scores is that of a plain account, whoever answers: the local copy, the hot
// page or Redis; in pages, standings, neighbours, and over Connect, and after a restart of the sidecar, with its file.
func TestDataOfMembers(t *testing.T) {
	t.Parallel()
	d := newDegraded(t)
	name := strings.ToLower(testkit.Name(t))
	text := fmt.Sprintf(`
classes:
- {name: cars, board: %q, period: none, data: true, ids: {act: 1, rank: 9}, ops: [set, incr, delete]}
- {name: plain, board: %q, period: none}
boards:
`, name+":{kind}", name+"-plain:{kind}")
	var boards []rankcache.BoardID
	for _, kind := range []string{"super-hot", "hot", "none"} {
		b := rankcache.BoardID(name + ":" + strings.ReplaceAll(kind, "-", ""))
		if boards = append(boards, b); kind != "none" {
			text += fmt.Sprintf("- {match: %q, mode: %s}\n", b, kind)
		}
	}
	must(t, os.WriteFile(d.rooms, []byte(text), 0o600))
	w := &laps{degraded: d}
	testkit.Eventually(t, time.Minute, func() error { // the writer has read the file, and its producer is up
		_, err := w.post(`{"order":"probe","class":"cars","dims":{"kind":"probe"},"member":"m","op":"set","score":1,"data":"x"}`)
		return err
	})
	files := t.TempDir()
	s := d.serve(t, "--rpc", "127.0.0.1:0", "--snapshot-dir", files)
	s.WaitReady(time.Minute)
	accounts := make([]map[string]dataRow, len(boards))
	for round := range 3 {
		for i, b := range boards {
			accounts[i] = w.drive(b, accounts[i], round, 60)
		}
		for i, right := range []func(answer) bool{fromLocal, fromHot, fromRedis} {
			d.until(s, boards[i], "its source", right)
			testkit.Eventually(t, time.Minute, func() error { return checkData(s, boards[i], accounts[i]) })
		}
	}
	for _, bad := range []struct {
		command, want string
		status        int
	}{
		{`"class":"plain","data":"x"`, `"bad_data"`, 422}, {`"class":"cars","data":"a\u0000b"`, `"argument":"data"`, 400},
		{`"class":"cars","data":"` + strings.Repeat("x", 257) + `"`, `"argument":"data"`, 400}, {`"class":"cars","data":"\ud800"`, "", 400}, {`"class":"cars","data":1`, `"argument":"data"`, 400},
	} {
		if err := posted(d.writer, "scores", "/v1/scores", `{"order":"r","dims":{"kind":"x"},"member":"m","op":"set","score":1,`+bad.command+`}`, bad.status, bad.want); err != nil {
			t.Error(err)
		}
	}
	s.Signal(syscall.SIGTERM)
	s.Wait(time.Minute)
	s = d.serve(t, "--rpc", "127.0.0.1:0", "--snapshot-dir", files)
	s.WaitReady(time.Minute)
	for i, right := range []func(answer) bool{fromLocal, fromHot, fromRedis} {
		d.until(s, boards[i], "its source after a restart", right)
		testkit.Eventually(t, time.Minute, func() error { return checkData(s, boards[i], accounts[i]) })
	}
}

// dataRow is a row of a page.
type dataRow struct {
	Rank   int
	Member string
	Score  float64
	Data   string
}

// rpcRow is a row of Connect's, which has 64-bit numbers as text.
type rpcRow struct {
	Rank, Member, Data string
	Score              float64
}

// drive posts random changes of a board, and keeps account of them.
func (w *laps) drive(b rankcache.BoardID, account map[string]dataRow, round, n int) map[string]dataRow {
	w.t.Helper()
	if account == nil {
		account = make(map[string]dataRow)
	}
	var commands []string
	for i := range n {
		member := fmt.Sprint("m", rand.IntN(20))
		r := account[member]
		r.Member = member
		c := fmt.Sprintf(`{"order":"o%d-%d","board":%q,"member":%q,`, round, i, b, r.Member)
		switch rand.IntN(8) {
		case 0:
			commands = append(commands, c+`"op":"delete"}`)
			delete(account, r.Member)
			continue
		case 1: // the same score
			c += fmt.Sprintf(`"op":"set","score":%v`, r.Score)
		default:
			r.Score++
			c += `"op":"incr","delta":1`
		}
		switch rand.IntN(4) {
		case 0:
			r.Data = ""
			c += `,"data":""`
		case 1, 2:
			r.Data = fmt.Sprintf("car %d ü\"", rand.IntN(100))
			text, _ := json.Marshal(r.Data)
			c += `,"data":` + string(text)
		}
		account[r.Member] = r
		commands = append(commands, c+"}")
	}
	_, err := w.post(strings.Join(commands, ","))
	must(w.t, err)
	return account
}

// checkData compares what a sidecar tells of a board with the account.
func checkData(s *child, b rankcache.BoardID, account map[string]dataRow) error {
	var want []dataRow
	for _, r := range account {
		want = append(want, r)
	}
	slices.SortFunc(want, func(a, b dataRow) int { return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(b.Member, a.Member)) })
	for i := range want {
		want[i].Rank = i + 1
	}
	var page struct {
		Source  string
		Entries []dataRow
		Me      dataRow
	}
	me := len(want) / 2
	var around struct {
		dataRow
		Neighbours []dataRow
	}
	var many struct{ Members []dataRow }
	path := "/v1/boards/" + string(b)
	var err error
	get := func(path string, to any) {
		code, text := s.Get("data", path)
		if code != http.StatusOK {
			err = errors.Join(err, fmt.Errorf("%s: %d %s", path, code, text))
			return
		}
		err = errors.Join(err, json.Unmarshal([]byte(text), to))
	}
	get(path+"/top?limit=100&me="+want[me].Member, &page)
	get(path+"/members/"+want[me].Member+"?around=2", &around)
	call := func(url, body string, to any) {
		resp, failed := http.Post(url, "application/json", strings.NewReader(body))
		if failed != nil {
			err = errors.Join(err, failed)
			return
		}
		defer resp.Body.Close()
		err = errors.Join(err, json.NewDecoder(resp.Body).Decode(to))
	}
	call(s.URL("data", path+"/members:batch"), fmt.Sprintf(`{"members":[%q,%q]}`, want[0].Member, want[me].Member), &many)
	var rpc struct{ Page struct{ Rows []rpcRow } }
	call(s.URL("rpc", "/rankcache.v1.Boards/GetTop"), fmt.Sprintf(`{"address":{"board":%q}}`, b), &rpc)
	var rows []dataRow
	for _, r := range rpc.Page.Rows {
		n, _ := strconv.Atoi(r.Rank)
		rows = append(rows, dataRow{n, r.Member, r.Score, r.Data})
	}
	if err != nil {
		return err
	}
	switch {
	case !slices.Equal(page.Entries, want) || page.Me != want[me]:
		return fmt.Errorf("page of %s: %+v\nwant %+v", page.Source, page, want)
	case around.dataRow != want[me] || !slices.Equal(around.Neighbours, want[max(0, me-2):min(me+3, len(want))]):
		return fmt.Errorf("around %+v\nwant %+v", around, want)
	case !slices.Equal(rows, want):
		return fmt.Errorf("over Connect %+v, want %+v", rows, want)
	case !slices.Equal(many.Members, []dataRow{want[0], want[me]}):
		return fmt.Errorf("batch %+v, want %+v", many.Members, want)
	}
	return nil
}
