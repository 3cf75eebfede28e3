package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"rankcache"
	"rankcache/internal/cli"
	"rankcache/internal/lab/compare"
	"rankcache/internal/lab/load"
	"rankcache/internal/lab/servers"
)

// podsBench is one run of rankcache-lab bench pods.
type podsBench struct {
	pods, boards, changes int
	window                time.Duration
	progress              io.Writer

	client *http.Client
	server *servers.Redis
	redis  *redis.Client
	common []string // arguments of writer and sidecars
	writer string   // address of its posts
	data   []string // addresses of the sidecars
	pids   []int    // of the sidecars
	ended  []<-chan struct{}
}

// podsReport is the stable JSON of bench pods.
type podsReport struct {
	Pods      int     `json:"pods"`
	Boards    int     `json:"boards"`
	Changes   float64 `json:"changes_per_s"`
	RedisNone float64 `json:"redis_cores_without_sidecars"`
	Redis     float64 `json:"redis_cores"`
	RedisPod  float64 `json:"redis_cores_of_a_sidecar"`
	Pod       float64 `json:"sidecar_cores"`
	P50       float64 `json:"visible_p50_ms"` // from the sending of a post until a page of a sidecar has it
	P99       float64 `json:"visible_p99_ms"`
	Posts     int     `json:"visible_posts"`
}

const (
	podsMembers = 200                    // of each board
	podsWatched = 25                     // each so manieth change is of the board that is watched
	podsLook    = time.Millisecond       // between its pages
	podsFound   = 2 * time.Second        // boards are found by their reads within a second
	podsOpen    = 30 * time.Second       // all are open within
	podsLast    = 500 * time.Millisecond // after which the last change is in a page
)

func newBenchPodsCommand() *cobra.Command {
	b := &podsBench{}
	cmd := &cobra.Command{
		Use:   "pods",
		Short: "Measure what sidecars that follow the log in Redis take of it, and how late they are",
		Long: `Start a redis-server, a writer that keeps the log there, and sidecars that have boards of 200 members whole in
memory. Post changes of any board at a steady rate, first without sidecars, and measure Redis's CPU. Each 25th change is
of one board, whose page is read from one sidecar each millisecond: a change is visible when a page has its seq. No Kafka.
Needs Linux, and a redis-server in PATH.`,
		Example: "  rankcache-lab bench pods --pods 20\n  rankcache-lab bench pods --changes 100 -o json",
	}
	flags := cmd.Flags()
	flags.IntVar(&b.pods, "pods", 10, "sidecars, 1 to 100")
	flags.IntVar(&b.boards, "boards", 100, "super-hot boards, 2 to 1000")
	flags.IntVar(&b.changes, "changes", 500, "changes a second")
	flags.DurationVar(&b.window, "window", 15*time.Second, "over which each is measured")
	return reporting(cmd, &b.progress, b.run, (*podsReport).print)
}

func (b *podsBench) run(ctx context.Context) (r *podsReport, err error) {
	if b.pods < 1 || b.pods > 100 || b.boards < 2 || b.boards > 1000 || b.changes < 1 || b.window < time.Second {
		return nil, cli.Usagef("want --pods of 1 to 100, --boards of 2 to 1000, --changes of 1 or more, and a --window of 1s or more")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if b.server, err = servers.StartRedis(ctx, servers.RedisOptions{}); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.server.Close()) }()
	b.redis = redis.NewClient(&redis.Options{Addr: b.server.Addr()})
	defer b.redis.Close()
	b.client = &http.Client{Timeout: 5 * time.Second}
	dir, err := os.MkdirTemp("", "rankcache-bench")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	defer func() {
		cancel()
		for _, ended := range b.ended {
			<-ended
		}
	}()
	rules := filepath.Join(dir, "rooms.yaml")
	b.common = []string{"--redis", "redis://" + b.server.Addr(), "--log", "redis", "--rooms", rules, "--health", "127.0.0.1:0", "--drain", "0s", "--log-level", "error"}
	if err := os.WriteFile(rules, []byte("boards: [{match: \"bench:*\", mode: super-hot}]\n"), 0o600); err != nil {
		return nil, err
	}
	return b.measure(ctx)
}

// measure has a writer alone, and then beside the sidecars.
func (b *podsBench) measure(ctx context.Context) (*podsReport, error) {
	if err := errors.Join(b.fill(ctx), b.startWriter(ctx)); err != nil {
		return nil, err
	}
	alone, err := b.during(ctx, nil)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(b.progress, "measured without sidecars\n")
	if err := b.startSidecars(ctx); err != nil {
		return nil, err
	}
	pages := &podsPages{bench: b, stop: make(chan struct{})}
	with, err := b.during(ctx, pages)
	if err != nil {
		return nil, err
	}
	r := &podsReport{Pods: b.pods, Boards: b.boards, Changes: with.changes, RedisNone: alone.redis, Redis: with.redis,
		RedisPod: (with.redis - alone.redis) / float64(b.pods), Pod: with.pods / float64(b.pods), Posts: len(with.visible)}
	if r.Posts == 0 {
		return nil, errors.New("no change of the board that is watched was measured: give a longer --window, or more --changes")
	}
	slices.Sort(with.visible)
	r.P50, r.P99 = with.visible[r.Posts/2], with.visible[r.Posts*99/100]
	return r, nil
}

func podsBoard(n int) rankcache.BoardID { return rankcache.BoardID(fmt.Sprintf("bench:%d", n)) }

func (b *podsBench) fill(ctx context.Context) error {
	for n := range b.boards {
		rows := make([]redis.Z, podsMembers)
		for i := range rows {
			rows[i] = redis.Z{Score: float64(i), Member: benchMember(i)}
		}
		if err := b.redis.ZAdd(ctx, string(podsBoard(n)), rows...).Err(); err != nil {
			return err
		}
	}
	return nil
}

// startWriter starts a writer, and returns when each board has a change.
func (b *podsBench) startWriter(ctx context.Context) (err error) {
	if b.writer, err = servers.FreeAddr(); err != nil {
		return err
	}
	_, ended, err := startRankcache(ctx, append([]string{"write", "--scores", b.writer}, b.common...)...)
	if err != nil {
		return err
	}
	b.ended = append(b.ended, ended)
	for until := time.Now().Add(visibleWithin); ; {
		if _, err = b.post(ctx, 0); err == nil || time.Now().After(until) {
			break
		}
		if ended := sleep(ctx, visibleWait); ended != nil {
			return ended
		}
	}
	for n := 1; n < b.boards && err == nil; n++ {
		_, err = b.post(ctx, n)
	}
	return err
}

// startSidecars starts them, and returns when all have all boards.
func (b *podsBench) startSidecars(ctx context.Context) error {
	for range b.pods {
		addr, err := servers.FreeAddr()
		if err != nil {
			return err
		}
		pid, ended, err := startRankcache(ctx, append([]string{"serve", "--data", addr, "--admin", "127.0.0.1:0"}, b.common...)...)
		if err != nil {
			return err
		}
		b.ended, b.pids, b.data = append(b.ended, ended), append(b.pids, pid), append(b.data, addr)
	}
	left := 0
	for until := time.Now().Add(podsOpen); time.Now().Before(until); {
		left = 0
		for _, addr := range b.data {
			for n := range b.boards {
				if page, err := compare.Fetch(ctx, b.client, topURL(addr, n)); err != nil || page.Source != "local" {
					left++
				}
			}
		}
		if left == 0 {
			return nil
		}
		if err := sleep(ctx, podsFound); err != nil {
			return err
		}
	}
	return fmt.Errorf("%d boards are not open after %v", left, podsOpen)
}

func topURL(addr string, n int) string {
	return fmt.Sprintf("http://%s/v1/boards/%s/top?limit=1", addr, podsBoard(n))
}

// post changes a board and returns its seq after that.
func (b *podsBench) post(ctx context.Context, n int) (seq uint64, err error) {
	body := fmt.Sprintf(`{"order":"pods-%x","board":%q,"member":%q,"op":"incr","delta":1}`, rand.Uint64(), podsBoard(n), benchMember(rand.IntN(podsMembers)))
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+b.writer+"/v1/scores", strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := b.client.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err
	}
	var result struct{ Seq uint64 }
	if err := json.Unmarshal(text, &result); err != nil || result.Seq == 0 {
		return 0, fmt.Errorf("the writer answers %s, %.300q: %w", resp.Status, text, err)
	}
	return result.Seq, nil
}

// podsFigures are of one window. CPU is in cores.
type podsFigures struct {
	changes, redis, pods float64
	visible              []float64 // in milliseconds
}

// during posts for the window, and has pages read meanwhile if there are sidecars.
func (b *podsBench) during(ctx context.Context, pages *podsPages) (f podsFigures, err error) {
	before, err := b.cpu()
	if err != nil {
		return f, err
	}
	var reading sync.WaitGroup
	if pages != nil {
		reading.Go(func() { pages.read(ctx) })
	}
	var posts []visiblePost
	begun, done := time.Now(), 0
	for ; time.Since(begun) < b.window && err == nil; done++ {
		if err = sleep(ctx, time.Until(begun.Add(time.Duration(done)*time.Second/time.Duration(b.changes)))); err != nil {
			break
		}
		board := 1 + rand.IntN(b.boards-1)
		if done%podsWatched == 0 {
			board = 0
		}
		post := visiblePost{sent: time.Now()}
		if post.seq, err = b.post(ctx, board); board == 0 {
			posts = append(posts, post)
		}
	}
	lasted := time.Since(begun).Seconds()
	after, cpuErr := b.cpu()
	if pages != nil {
		err = errors.Join(err, sleep(ctx, podsLast))
		close(pages.stop)
		reading.Wait()
		f.visible = pages.after(posts)
		err = errors.Join(err, pages.err)
	}
	f.changes, f.redis, f.pods = float64(done)/lasted, (after.redis-before.redis)/lasted, (after.pods-before.pods)/lasted
	return f, errors.Join(err, cpuErr)
}

// cpu returns what Redis, and the sidecars together, have taken, in seconds.
func (b *podsBench) cpu() (f podsFigures, err error) {
	redis, err := load.CPU([]int{b.server.Pid()})
	if err != nil {
		return f, err
	}
	pods, err := load.CPU(b.pids)
	return podsFigures{redis: redis.Seconds(), pods: pods.Seconds()}, err
}

// podsPages are pages of one sidecar's board, as they change.
type podsPages struct {
	bench *podsBench
	stop  chan struct{}
	seen  []seenPage
	err   error
}

// read reads pages until it is stopped.
func (p *podsPages) read(ctx context.Context) {
	for {
		page, err := compare.Fetch(ctx, p.bench.client, topURL(p.bench.data[len(p.bench.data)-1], 0))
		if err != nil {
			p.err = err
			return
		}
		if n := len(p.seen); n == 0 || p.seen[n-1].seq < page.Seq {
			p.seen = append(p.seen, seenPage{time.Now(), page.Seq})
		}
		select {
		case <-p.stop:
			return
		case <-time.After(podsLook):
		}
	}
}

// after returns how long after each post a page had it, in milliseconds.
func (p *podsPages) after(posts []visiblePost) (visible []float64) {
	for _, post := range posts {
		n := slices.IndexFunc(p.seen, func(s seenPage) bool { return s.seq >= post.seq })
		if n < 0 {
			p.err = errors.Join(p.err, fmt.Errorf("no page has seq %d", post.seq))
			return visible
		}
		visible = append(visible, p.seen[n].at.Sub(post.sent).Seconds()*1000)
	}
	return visible
}

func (r *podsReport) print(to io.Writer) error {
	_, err := fmt.Fprintf(to, "%d sidecars, %d boards, %.0f changes/s\nRedis: %.1f %% of a core without sidecars, %.1f %% with them, %.2f %% for each\na sidecar: %.1f %% of a core\n"+
		"from a post to a page that has it: p50 %.1f ms, p99 %.1f ms (%d posts)\n",
		r.Pods, r.Boards, r.Changes, r.RedisNone*100, r.Redis*100, r.RedisPod*100, r.Pod*100, r.P50, r.P99, r.Posts)
	return err
}
