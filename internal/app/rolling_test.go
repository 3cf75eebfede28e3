package app

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache/class"
	"rankcache/controller"
	"rankcache/internal/cli"
	"rankcache/internal/lab/servers"
	"rankcache/internal/run"
	"rankcache/internal/serve"
	"rankcache/internal/testkit"
	"rankcache/rooms"
)

// rolling is a writer, a sidecar and two controllers that lead at the same time, with boards of short periods and their
// sums over three of these.
type rolling struct {
	t           *testing.T
	redis       *servers.Redis
	args        []string // that all processes have
	group       string
	log         *slog.Logger
	writer      *run.Writer
	sidecar     *serve.Sidecar
	kind        *rooms.Class
	controllers []*controller.Controller
	stop        []func()                      // the writer, and the controllers
	gifts       map[string]map[string]float64 // by zone and tag, and member: those that were answered
	sent        int
	whole       map[string]int // reads that were not incomplete, by tag
	incomplete  int
}

const (
	rollingPeriod = 4 * time.Second
	rollingLast   = 3
)

func newRollingWorld(t *testing.T) *rolling {
	name := testkit.Name(t)
	s := &rolling{t: t, gifts: make(map[string]map[string]float64), whole: make(map[string]int)}
	s.redis = testkit.StartRedis(t, servers.RedisOptions{Dir: t.TempDir(), Args: []string{"--appendonly", "yes", "--appendfsync", "always"}})
	path := filepath.Join(t.TempDir(), "rooms.yaml")
	must(t, os.WriteFile(path, fmt.Appendf(nil, `classes:
- {name: gift, board: "%[1]s:{zone}:{period}", period: 1m, grace: 200ms, ops: [incr]}
- {name: gift-3, board: "%[1]sr:{zone}:{period}", rolling: {of: gift, last: %[2]d}, mode: super-hot, dims: {zone: ["7"]}, lead: 2s}
`, name[len(name)-8:], rollingLast), 0o644))
	s.args = []string{"--redis", "redis://" + s.redis.Addr(), "--kafka", testkit.Kafka(t), "--rooms", path, "--topic-commands", name, "--topic-refused", name + "-refused",
		"--topic-class-updates", name + "-class-", "--topic-ledger", name + "-ledger", "--topic-finals", name + "-finals", "--health", "127.0.0.1:0"}
	s.group, s.log = name, slog.New(slog.NewTextHandler(t.Output(), nil))
	var err error
	s.sidecar, err = serve.NewSidecar(append([]string{"--data", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--drain", "0s"}, s.args...), rollingPeriods, s.log)
	must(t, err)
	s.kind = s.sidecar.Rooms.File().Class("gift-3")
	s.background(s.sidecar.Run)
	s.stop = []func(){s.startWriter(), s.startControllers()}
	return s
}

func rollingPeriods(data []byte) (*rooms.File, error) {
	return rooms.ParseWith(data, func(_, tz string) (class.Calendar, error) { return class.PartsOfDay(rollingPeriod, tz) })
}

func (s *rolling) startWriter() (stop func()) {
	var err error
	s.writer, err = run.NewWriter(append([]string{"--scores", "127.0.0.1:0", "--group", s.group, "--command-partitions", "2", "--drain", "0s"}, s.args...), rollingPeriods, s.log)
	must(s.t, err)
	return s.background(s.writer.Run)
}

// startControllers starts two that lead at the same time.
func (s *rolling) startControllers() (stop func()) {
	client := redis.NewClient(&redis.Options{Addr: s.redis.Addr(), Protocol: 2})
	s.t.Cleanup(func() { client.Close() })
	s.controllers = nil
	var stops []func()
	for _, id := range []string{"a", "b"} {
		o := &run.ControllerOptions{Every: 50 * time.Millisecond, Posts: 50 * time.Millisecond}
		must(s.t, cli.ParseArgs("controller", o, append([]string{"--group", s.group, "--controller-id", id, "--key-controller", "rankcache:controller:" + id, "--topic-keep", "0"}, s.args...)))
		o.ParseRooms = rollingPeriods
		follower, c, err := o.Build(client, nil, s.log, cli.NewRegistry())
		must(s.t, err)
		s.controllers = append(s.controllers, c)
		stops = append(stops, s.background(follower.Run), s.background(c.Run))
	}
	return func() {
		for _, stop := range stops {
			stop()
		}
	}
}

// background runs a process until it is stopped, at the latest at the end of the test.
func (s *rolling) background(run func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			s.t.Error(err)
		}
	})
	s.t.Cleanup(stop)
	return stop
}

// disturb has new controllers, Redis begin another history, or another writer.
func (s *rolling) disturb(n int) {
	switch n % 3 {
	case 0:
		s.stop[1]()
		s.stop[1] = s.startControllers()
	case 1:
		must(s.t, s.redis.Kill())
		must(s.t, s.redis.Restart(s.t.Context()))
	case 2:
		s.stop[0]()
		s.stop[0] = s.startWriter()
	}
}

// give posts a gift until it is answered.
func (s *rolling) give(zone string) {
	now, member, delta := time.Now(), fmt.Sprint("m", rand.IntN(6)), float64(1+rand.IntN(9))
	p, err := s.kind.Calendar().At(now)
	must(s.t, err)
	s.sent++
	taken := false
	body := fmt.Sprintf(`{"order":"o%d","class":"gift","dims":{"zone":%q},"member":%q,"op":"incr","delta":%v,"at":%d}`, s.sent, zone, member, delta, now.UnixMilli())
	testkit.Eventually(s.t, time.Minute, func() error {
		resp, err := http.Post("http://"+s.writer.Listeners.Addr("scores")+"/v1/scores", "application/json", strings.NewReader(body))
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		answer, err := io.ReadAll(resp.Body)
		must(s.t, err)
		late := resp.StatusCode == http.StatusUnprocessableEntity && strings.Contains(string(answer), `"code":"late"`)
		if taken = resp.StatusCode == http.StatusOK; !taken && !late {
			return fmt.Errorf("%d %s", resp.StatusCode, answer)
		}
		return nil
	})
	if !taken { // the period was over when the post had its turn
		return
	}
	key := zone + " " + p.Tag
	if s.gifts[key] == nil {
		s.gifts[key] = make(map[string]float64)
	}
	s.gifts[key][member] += delta
}

type rollingPage struct {
	Source     string
	Incomplete bool
	Period     struct{ Tag string }
	Entries    []struct {
		Member string
		Score  float64
	}
}

// read returns the running board's page.
func (s *rolling) read(zone string) (page rollingPage) {
	s.t.Helper()
	testkit.Eventually(s.t, time.Minute, func() error { // while Redis is away
		resp, err := http.Get("http://" + s.sidecar.Addr("data") + "/v1/classes/gift-3/top?zone=" + zone + "&limit=50")
		must(s.t, err)
		defer resp.Body.Close()
		if resp.StatusCode == http.StatusServiceUnavailable {
			return fmt.Errorf("answered %d", resp.StatusCode)
		}
		page = rollingPage{}
		must(s.t, json.NewDecoder(resp.Body).Decode(&page))
		if header := resp.Header.Get("Rankcache-Incomplete"); resp.StatusCode != http.StatusOK || (header == "priming") != page.Incomplete {
			s.t.Fatalf("%d, header %q, %+v", resp.StatusCode, header, page)
		}
		return nil
	})
	return page
}

// check counts a page, and returns an error if it is neither incomplete nor what it should be.
func (s *rolling) check(zone string, page *rollingPage) error {
	if page.Incomplete {
		s.incomplete++
		return nil
	}
	s.whole[page.Source]++
	s.whole[page.Period.Tag]++
	return s.differs(zone, page)
}

// differs returns what a page that is not incomplete has otherwise than it should.
func (s *rolling) differs(zone string, page *rollingPage) error {
	p, err := s.kind.Calendar().Parse(page.Period.Tag)
	must(s.t, err)
	want := make(map[string]float64)
	for range rollingLast {
		for member, n := range s.gifts[zone+" "+p.Tag] {
			want[member] += n
		}
		p, err = s.kind.Calendar().Previous(p)
		must(s.t, err)
	}
	got := make(map[string]float64)
	for _, e := range page.Entries {
		got[e.Member] = e.Score
	}
	if !maps.Equal(got, want) {
		return fmt.Errorf("zone %s, period %s from %s: got %v, want %v", zone, page.Period.Tag, page.Source, got, want)
	}
	return nil
}

// TestRollingBoards gives while periods end: a running board is the sum of its last periods, or says that it is incomplete, in
// Redis after each gift, and in memory as soon as the gift is there.
func TestRollingBoards(t *testing.T) {
	t.Parallel()
	s := newRollingWorld(t)
	first, err := s.kind.Calendar().At(time.Now())
	must(t, err)
	disturbed := first.End.Add(rollingPeriod * 5 / 2)
	for until, n := first.End.Add(time.Duration(testkit.Sized(5, 20))*rollingPeriod), 0; time.Now().Before(until); {
		if testkit.Full() && time.Now().After(disturbed) {
			s.disturb(n)
			n, disturbed = n+1, time.Now().Add(rollingPeriod*3/2)
		}
		for _, zone := range []string{"7", "8"} {
			s.give(zone)
		}
		page := s.read("8")
		if err := s.check("8", &page); err != nil && page.Source == "redis" {
			t.Fatal(err)
		}
		for _, zone := range []string{"7", "8"} { // a copy is some milliseconds behind
			testkit.Eventually(t, time.Minute, func() error {
				page := s.read(zone)
				return s.check(zone, &page)
			})
		}
	}
	t.Logf("%d gifts; whole in %v, incomplete %d", s.sent, s.whole, s.incomplete)
	if len(s.whole) < 6 || s.whole["local"] == 0 || s.whole["redis"] == 0 || s.incomplete > s.sent {
		t.Error("too little was whole")
	}
	for _, c := range s.controllers {
		if st := c.Status(); !st.Leading || st.Error != "" && !testkit.Full() {
			t.Errorf("controller: %+v", st)
		}
	}
}
