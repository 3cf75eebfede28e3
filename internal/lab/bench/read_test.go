package bench

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"rankcache"
	"rankcache/internal/cli"
	"rankcache/internal/lab/load"
	"rankcache/internal/testkit"
	"rankcache/localboard"
)

// envRunMain makes the test binary be rankcache-lab: bench read starts itself
// again as each of its servers.
const envRunMain = "RANKCACHE_TEST_RUN_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(envRunMain) != "" {
		cli.Main(benchOnly())
		return
	}
	testkit.Main(m)
}

func benchOnly() *cobra.Command {
	root := cli.NewRoot(&cobra.Command{Use: "rankcache-lab"})
	root.AddCommand(NewCommand())
	return root
}

// TestBenchReadMeasuresEveryRow is the whole bench with windows too short to mean
// anything: every server starts, every first reply is right, nothing fails.
func TestBenchReadMeasuresEveryRow(t *testing.T) {
	testkit.Redis(t) // skips or fails where there is no redis-server
	testkit.Need(t, load.Installed("h2load", "redis-benchmark"))
	t.Setenv(envRunMain, "1")
	var out, progress bytes.Buffer
	err := cli.Run(t.Context(), benchOnly(), []string{"bench", "read", "-o", "json", "--rounds", "1", "--duration", "20ms",
		"--connections", "4", "--board-members", "2000", "--profiles", "3000"}, &out, &progress)
	if err != nil {
		t.Fatalf("%v\n%s", err, &progress)
	}
	var report readReport
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		t.Fatal(err)
	}
	measured := 0
	for _, row := range report.Rows {
		if row.Errors != 0 || row.P99 < row.P50 || row.P999 < row.P99 {
			t.Errorf("%+v", row)
		}
		if row.RPS > 0 { // on a busy machine a short window may see no answer
			measured++
		}
	}
	if measured == 0 {
		t.Error("nothing was answered")
	}
	want := 2 * len(readRows)
	for program, rows := range map[string]int{"nginx": 3, "varnishd": 1, cmp.Or(os.Getenv("VALKEY_SERVER"), "valkey-server"): 1} {
		if _, err := exec.LookPath(program); err != nil {
			want -= 2 * rows
		}
	}
	if len(report.Rows) != want || (len(report.Missing) > 0) != (want < 2*len(readRows)) {
		t.Errorf("%d rows, want %d; left out: %q", len(report.Rows), want, report.Missing)
	}
	if ratios := 2 * len(readRatios); len(report.Ratios) != ratios-(2*len(readRows)-want) { // those that may be missing have a ratio for each row
		t.Errorf("%d ratios: %v", len(report.Ratios), report.Ratios)
	}
}

// TestBenchRESPMeasuresEveryRow is bench resp with windows too short to mean anything.
func TestBenchRESPMeasuresEveryRow(t *testing.T) {
	testkit.Redis(t)
	testkit.Need(t, load.Installed("redis-benchmark"))
	t.Setenv(envRunMain, "1")
	var out, progress bytes.Buffer
	err := cli.Run(t.Context(), benchOnly(), []string{"bench", "resp", "-o", "json", "--rounds", "1", "--duration", "20ms", "--connections", "4", "--board-members", "2000"}, &out, &progress)
	if err != nil {
		t.Fatalf("%v\n%s", err, &progress)
	}
	var report respReport
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		t.Fatal(err)
	}
	if len(report.Rows) != 4*len(respRows) || len(report.Ratios) != 2*len(respRatios) {
		t.Errorf("%d rows and %d ratios", len(report.Rows), len(report.Ratios))
	}
	for _, row := range report.Rows {
		if row.RPS <= 0 || row.CPU <= 0 {
			t.Errorf("%+v", row)
		}
	}
}

func TestBenchReadLeavesOutWhatIsNotInstalled(t *testing.T) {
	t.Setenv(envRunMain, "1")
	testkit.Need(t, load.Installed("h2load"))
	h2load, err := exec.LookPath("h2load")
	if err != nil {
		t.Fatal(err)
	}
	path := t.TempDir()
	t.Setenv("PATH", path)
	var out, progress bytes.Buffer
	if err := cli.Run(t.Context(), benchOnly(), []string{"bench", "read"}, &out, &progress); err == nil || !strings.Contains(err.Error(), "nghttp2-client") {
		t.Errorf("without h2load: %v", err)
	}
	if err := os.Symlink(h2load, filepath.Join(path, "h2load")); err != nil {
		t.Fatal(err)
	}
	err = cli.Run(t.Context(), benchOnly(), []string{"bench", "read", "--only", "sortedset|zrevrange", "--rounds", "1", "--duration", "10ms",
		"--board-members", "1000", "--profiles", "1000"}, &out, &progress)
	if err != nil {
		t.Fatalf("%v\n%s", err, &progress)
	}
	for _, text := range []string{out.String(), progress.String()} {
		if !strings.Contains(strings.ToLower(text), "left out: redis-server: not installed") {
			t.Errorf("does not name what is left out:\n%s", text)
		}
	}
	if !strings.Contains(out.String(), "sortedset rwmutex json") {
		t.Errorf("the other rows are not there:\n%s", &out)
	}
}

// TestBenchReadKeepsWhatWasMeasured: the server of a row dies after the first round of two.
func TestBenchReadKeepsWhatWasMeasured(t *testing.T) {
	testkit.Need(t, load.Installed("h2load"))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }))
	defer server.Close()
	rival := exec.CommandContext(t.Context(), "sleep", "60")
	if err := rival.Start(); err != nil {
		t.Fatal(err)
	}
	caseOf := func(name string, pid int) *readCase {
		return &readCase{row: readSpec{name: name}, transport: "tcp", target: load.Target{Network: "tcp", Addr: server.Listener.Addr().String()},
			question: load.Question{Paths: []string{"/"}, Status: http.StatusOK}, server: &benchServer{pids: []int{pid}}}
	}
	progress := writerFunc(func(line []byte) (int, error) {
		if strings.HasPrefix(string(line), "round 1") {
			_ = rival.Process.Kill()
			_ = rival.Wait()
		}
		return len(line), nil
	})
	b := &readBench{rounds: 2, duration: 50 * time.Millisecond, connections: 2, progress: progress, servers: new(benchServers),
		cases: []*readCase{caseOf("rival", rival.Process.Pid), caseOf("ours", os.Getpid())}}
	if err := b.measureAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n, m := len(b.cases[0].samples), len(b.cases[1].samples); n != 1 || m != 2 {
		t.Errorf("%d and %d rounds are kept, want 1 and 2", n, m)
	}
	if r := b.report(); len(r.Rows) != 2 || len(r.Missing) != 1 || !strings.HasPrefix(r.Missing[0], "rival over tcp from round 2 on: ") {
		t.Errorf("left out: %q", r.Missing)
	}
}

// writerFunc is an io.Writer.
type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// TestTargetEndsWithItsInput keeps targets from outliving a bench that was killed.
func TestTargetEndsWithItsInput(t *testing.T) {
	in, hold := io.Pipe()
	out, answers := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- runTarget(t.Context(), newSortedsetTarget, &targetOptions{members: 1000, socket: filepath.Join(t.TempDir(), "s")}, in, answers)
	}()
	var ready targetReady
	if err := json.NewDecoder(out).Decode(&ready); err != nil || ready.TCP == "" {
		t.Fatal(ready, err)
	}
	hold.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	q := get("/top?limit=1")
	if _, _, err := load.Ask(load.Target{Network: "tcp", Addr: ready.TCP}, &q); err == nil {
		t.Error("still answers")
	}
}

func TestTargetRefusesWhatItCannotDo(t *testing.T) {
	in, out := strings.NewReader("updates 5\n"), io.Discard
	err := runTarget(t.Context(), newSortedsetTarget, &targetOptions{members: 1000}, in, out)
	if err != nil && !strings.Contains(err.Error(), "updates 5") {
		t.Errorf("got %v", err)
	}
	for _, line := range []string{"updates", "updates x", "stop"} {
		if err := command(&rankcacheTarget{}, line); err == nil {
			t.Errorf("%q: no error", line)
		}
	}
}

// TestUpdaterChangesTheBoardAtItsRate also compares the updater's scores with the
// board's.
func TestUpdaterChangesTheBoardAtItsRate(t *testing.T) {
	const members = 1000
	board := localboard.New(benchBoardID)
	u := newUpdater(board, members)
	board.Publish()
	if got, want := rankcache.One(t.Context(), board, rankcache.Query{Limit: 50}).Entries, benchTop(benchScores(members), 50); !equalRows(got, want) {
		t.Fatalf("the board begins with %v, want %v", got, want)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- u.run(ctx) }()
	u.rate.Store(100_000)
	for deadline := time.Now().Add(10 * time.Second); rankcache.One(t.Context(), board, rankcache.Query{Limit: 50}).Seq < members+1000; {
		if time.Now().After(deadline) {
			t.Fatalf("seq is %d", rankcache.One(t.Context(), board, rankcache.Query{Limit: 50}).Seq)
		}
		time.Sleep(time.Millisecond)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	board.Publish()
	for member, want := range u.scores {
		if score, _, ok := board.Score(u.names.at(member)); !ok || score != want {
			t.Fatalf("%s has %v, want %v", u.names.at(member), score, want)
		}
	}
}

func equalRows[T comparable](a, b []T) bool {
	for i := range b {
		if len(a) != len(b) || a[i] != b[i] {
			return false
		}
	}
	return true
}

func TestRatioIsTheMedianOfTheRounds(t *testing.T) {
	sample := func(us int) readSample {
		return readSample{closed: &load.Result{Requests: 1, CPU: time.Duration(us) * time.Microsecond, Window: time.Second}}
	}
	of, to := []readSample{sample(10), sample(40), sample(9)}, []readSample{sample(10), sample(20), sample(10)}
	ratio := readRatio{figure: cpuOf, goal: 1.15, atMost: true}
	if line := ratio.line(of, to); line.Value != 1 || !line.Met || line.Is != "at_most" {
		t.Errorf("%+v", line)
	}
	ratio.atMost = false
	if line := ratio.line(of, to); line.Met || line.Is != "at_least" {
		t.Errorf("%+v", line)
	}
}

func TestWrongRowsAreNoAnswer(t *testing.T) {
	want := benchTop(benchScores(1000), 2)
	good := `{"source":"local","entries":[{"rank":1,"member":"` + want[0].Member + `","score":50000000},{"rank":2,"member":"` + want[1].Member + `","score":47619047}]}`
	if err := checkRows([]byte(good), want); err != nil {
		t.Error(err)
	}
	for _, body := range []string{"", "{}", strings.Replace(good, `"rank":2`, `"rank":3`, 1), strings.Replace(good, "47619047", "1", 1)} {
		if checkRows([]byte(body), want) == nil {
			t.Errorf("%s: no error", body)
		}
	}
}
