package app

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
)

// TestManyBoards holds what operators are given of thousands of boards within bounds: metric
// series, bytes of /status and nodes of the page.
func TestManyBoards(t *testing.T) {
	t.Parallel()
	testkit.Chromium(t) // before anything is started for it
	const boards = 2000
	s := serveMany(t, boards)
	s.WaitReady(2 * time.Minute)
	t.Run("Metrics", func(t *testing.T) { checkSeries(t, s) })
	t.Run("Status", func(t *testing.T) { checkStatusPages(t, s, boards) })
	p := openTab(t, s.URL("admin", "/"))
	p.run(t, "Page", func(t *testing.T) { p.checkManyBoards(t) })
}

// serveMany starts a sidecar with n boards without members.
func serveMany(t *testing.T, n int) *child {
	t.Helper()
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("room-%04d", i)
	}
	path := filepath.Join(t.TempDir(), "rooms.yaml")
	text := "rooms:\n- {uid: many, mode: super-hot, boards: [" + strings.Join(ids, ", ") + "]}\n"
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	broker, err := servers.StartKfake(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(broker.Close)
	return startListening(t, "serve", "--data", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--health", "127.0.0.1:0", "--drain", "0s",
		"--redis", "redis://"+testkit.Redis(t), "--redis-timeout", "5s", "--kafka", broker.Addr(),
		"--rooms", path, "--key-rooms", testkit.Name(t))
}

func checkSeries(t *testing.T, s *child) {
	_, text := s.Get("health", "/metrics")
	series, boards := 0, 0.0
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		series++
		if strings.HasPrefix(line, "rankcache_replay_board_state{") {
			value, err := strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndex(line, " "):]), 64)
			if err != nil {
				t.Fatal(err)
			}
			boards += value
		}
	}
	if series > 2000 {
		t.Errorf("%d series", series)
	}
	if boards != 2000 {
		t.Errorf("the metric has %v boards, want 2000 in sum", boards)
	}
	if !strings.Contains(text, `rankcache_replay_members{board="(others)"} 0`) {
		t.Error("the other boards are not combined")
	}
}

// statusOfMany is what is read of /status.
type statusOfMany struct {
	Total   int            `json:"boards_total"`
	Open    int            `json:"boards_open"`
	ByState map[string]int `json:"boards_by_state"`
	Matched int            `json:"boards_matched"`
	Boards  []struct{ Board string }
	Local   []struct{ Board string } `json:"local_boards"`
}

func (s *child) statusOfMany(t *testing.T, query string) (st statusOfMany, size int) {
	t.Helper()
	_, body := s.Get("admin", "/status"+query)
	if err := json.Unmarshal([]byte(body), &st); err != nil {
		t.Fatalf("%s: %v: %.200s", query, err, body)
	}
	return st, len(body)
}

func checkStatusPages(t *testing.T, s *child, boards int) {
	st, size := s.statusOfMany(t, "")
	if size > 100_000 || len(st.Boards) != 100 || len(st.Local) != 100 {
		t.Errorf("%d bytes, %d boards, %d local boards", size, len(st.Boards), len(st.Local))
	}
	if st.Total != boards || st.Matched != boards || st.ByState["given-up"] != boards || st.Open != 0 {
		t.Errorf("totals are %d, %d, %v", st.Total, st.Matched, st.ByState)
	}
	st, _ = s.statusOfMany(t, "?match=room-00*&start=90&limit=50")
	if st.Matched != 100 || len(st.Boards) != 10 || st.Boards[9].Board != "room-0099" || st.Total != boards {
		t.Errorf("the last ten of a hundred: %+v", st)
	}
	if st, _ = s.statusOfMany(t, "?state=open"); st.Matched != 0 || len(st.Boards) != 0 {
		t.Errorf("open: %+v", st)
	}
	if code, body := s.Get("admin", "/status?limit=0&expect=boards_by_state.given-up=2000"); code != 200 {
		t.Errorf("expect of the whole: %d %s", code, body)
	}
}

func (p *tab) checkManyBoards(t *testing.T) {
	rows := `document.querySelectorAll('#superhot-rows tr').length`
	p.await("a page of rows", rows+` > 10`)
	p.await("the sum of all boards", `document.getElementById('sum-open').textContent === '0 of 2,000'`)
	nodes, err := strconv.Atoi(p.value(`document.querySelectorAll('*').length`))
	if err != nil || nodes > 3000 {
		t.Errorf("%d nodes, %v", nodes, err)
	}
	if got, err := strconv.Atoi(p.value(rows)); err != nil || got > 100 {
		t.Errorf("%d rows, %v", got, err)
	}
	p.click("#boards-next")
	p.await("the next page", rowShows("superhot-rows", "room-0050"))
	p.click("#boards-back")
	p.await("the first page again", rowShows("superhot-rows", "room-0000"))
	p.write("#boards-match", "1711")
	p.await("the board that is searched", rowShows("superhot-rows", "room-1711")+` && `+rows+` === 1`)
	p.value(`(() => { const s = document.getElementById('boards-state'); s.value = 'open'; s.dispatchEvent(new Event('change')); })()`)
	p.await("no open board", rows+` === 0 && document.getElementById('boards-place').textContent.includes('No board')`)
	if messages := p.complaints(); len(messages) > 0 {
		t.Errorf("the console has %q", messages)
	}
}
