package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"sort"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"rankcache"
	"rankcache/internal/cli"
	"rankcache/internal/lab/servers"
)

// visibleBench is one run of rankcache-lab bench visible.
type visibleBench struct {
	openBench
	commands int // a second
	batch    int // of a post
	opens    bool
	to       rankcache.BoardID // what is posted to
	report   *visibleReport
	writer   string // address of its posts

	mu      sync.Mutex
	posts   []visiblePost
	refused error
}

// visiblePost is one post, and the seq of the board after its last command.
type visiblePost struct {
	sent, answered time.Time
	seq            uint64
}

// seenPage is when a page had been received, and its seq.
type seenPage struct {
	at  time.Time
	seq uint64
}

// visibleReport is the stable JSON of bench visible. Times are from the sending of a post.
type visibleReport struct {
	Kafka      string  `json:"kafka"`
	Cores      string  `json:"cores"`
	Members    int     `json:"members"`
	Commands   float64 `json:"commands_per_s"` // applied
	Posts      int     `json:"posts"`
	P50        float64 `json:"p50_ms"` // until a page of the sidecar has all of the post
	P99        float64 `json:"p99_ms"`
	Max        float64 `json:"max_ms"`
	AnswerP50  float64 `json:"answer_p50_ms"` // until the writer's answer
	AnswerP99  float64 `json:"answer_p99_ms"`
	PagesEvery float64 `json:"page_every_ms"` // by which a time may be too long
	// OpenSeconds is how long the large board took to open, with --opens, and the others are of posts meanwhile.
	OpenSeconds float64 `json:"open_s,omitempty"`
	OpenP50     float64 `json:"open_p50_ms,omitempty"`
	OpenP99     float64 `json:"open_p99_ms,omitempty"`
}

const (
	visibleInHand = 64                   // posts at the same time; the rate falls when all wait
	visiblePoll   = time.Millisecond     // pages are read so often
	visibleWithin = 20 * time.Second     // the last post is in a page
	visibleWarm   = 2 * time.Second      // at full rate, not measured
	visibleOpens  = 5 * time.Minute      // at most, for the large board
	visibleWait   = 5 * time.Millisecond // between looks whether the writer is there
)

func newBenchVisibleCommand() *cobra.Command {
	b := &visibleBench{}
	cmd := &cobra.Command{
		Use:   "visible",
		Short: "Measure how long a posted command takes until a sidecar's page shows it",
		Long: `Start a writer and a sidecar with a super-hot board, post increments to the writer at a steady
rate, and read the board's page from the sidecar each millisecond. A post is visible when a page has been received whose seq is
that of the post's last command or a later one; the time is from when it was sent. With --opens the posts are to a board of
21,000 members, and after the window the one of --members is opened beside: until it is, posts are counted apart. The sidecar
has the last core, the others have the rest. Needs Linux, and redis-server and h2load in PATH.`,
		Example: "  rankcache-lab bench visible\n  rankcache-lab bench visible --commands 1000 --batch 1 -o json\n  rankcache-lab bench visible --opens --members 2000000",
	}
	flags := cmd.Flags()
	flags.StringVar(&b.kafka, "kafka", "", "`brokers` to use instead of an own one; topics are made there and stay")
	flags.IntVar(&b.members, "members", 57_000, "members of the board")
	flags.IntVar(&b.commands, "commands", 5_000, "commands a second")
	flags.IntVar(&b.batch, "batch", 10, "commands of a post, at most 100")
	flags.BoolVar(&b.opens, "opens", false, "open a large board beside")
	flags.BoolVar(&b.apart, "apart", true, "give the sidecar a core of its own, where there are two")
	flags.DurationVar(&b.window, "window", 10*time.Second, "time over which it is measured")
	return reporting(cmd, &b.progress, func(ctx context.Context) (*visibleReport, error) {
		err := b.run(ctx)
		return b.report, err
	}, (*visibleReport).print)
}

func (b *visibleBench) run(ctx context.Context) error {
	if b.batch < 1 || b.batch > writeBatch || b.commands < b.batch {
		return cli.Usagef("want --batch of 1 to %d, and no fewer --commands", writeBatch)
	}
	b.rate, b.do = 1, b.measureVisible
	b.report = &visibleReport{Members: b.members, PagesEvery: visiblePoll.Seconds() * 1000}
	done, err := b.openBench.run(ctx)
	if done != nil {
		b.report.Kafka, b.report.Cores = done.Kafka, done.Cores
	}
	return err
}

func (b *visibleBench) measureVisible(ctx context.Context, _ int) error {
	open := []rankcache.BoardID{otherBoard}
	if b.to = otherBoard; !b.opens {
		b.to, open = largeBoard, append(open, largeBoard)
	}
	if err := errors.Join(b.writeRooms(open...), b.awaitOpen(ctx, 0, open...)); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	ended, err := b.startWriter(ctx)
	if err != nil {
		cancel()
		return err
	}
	defer func() { cancel(); <-ended }()
	if err := b.awaitWriter(ctx); err != nil {
		return err
	}
	stop, pages := make(chan struct{}), make(chan []seenPage, 1)
	var failed error
	go func() {
		var seen []seenPage
		seen, failed = b.readPages(ctx, stop)
		pages <- seen
	}()
	begin := time.Now()
	b.post(ctx, visibleWarm+b.window)
	opening := time.Now()
	err = b.postWhileOpening(ctx)
	end := time.Now()
	close(stop)
	seen := <-pages
	if err := errors.Join(err, b.refused, failed); err != nil {
		return err
	}
	if b.opens {
		b.report.OpenSeconds = end.Sub(opening).Seconds()
		if b.report.OpenP50, b.report.OpenP99, err = b.shownAfter(opening, end, seen); err != nil {
			return err
		}
	}
	return b.finish(begin.Add(visibleWarm), opening, seen)
}

// postWhileOpening posts until the large board is open, if it is to be.
func (b *visibleBench) postWhileOpening(ctx context.Context) error {
	if !b.opens {
		return nil
	}
	opened, cancel := context.WithCancel(ctx)
	failed := make(chan error, 1)
	go func() {
		defer cancel()
		failed <- errors.Join(b.writeRooms(otherBoard, largeBoard), b.awaitOpen(ctx, 0, largeBoard))
	}()
	b.post(opened, visibleOpens)
	return <-failed
}

// startWriter starts a writer, which ends with ctx.
func (b *visibleBench) startWriter(ctx context.Context) (ended <-chan struct{}, err error) {
	if b.writer, err = servers.FreeAddr(); err != nil {
		return nil, err
	}
	_, ended, err = startRankcache(ctx, "write", "--scores", b.writer, "--health", "127.0.0.1:0", "--rooms", b.roomsFile(),
		"--redis", "redis://"+b.redis.Options().Addr, "--kafka", b.kafka, "--command-partitions", "1", "--drain", "0s", "--log-level", "warn")
	return ended, err
}

// awaitWriter posts until a post is applied.
func (b *visibleBench) awaitWriter(ctx context.Context) (err error) {
	for until := time.Now().Add(visibleWithin); time.Now().Before(until); {
		if _, err = b.postOne(ctx, 0); err == nil {
			return nil
		}
		if ended := sleep(ctx, visibleWait); ended != nil {
			return ended
		}
	}
	return fmt.Errorf("the writer applies nothing: %w", err)
}

// post posts at the rate until the time is over, and returns when all are answered.
func (b *visibleBench) post(ctx context.Context, during time.Duration) {
	inHand, every := make(chan struct{}, visibleInHand), time.Second*time.Duration(b.batch)/time.Duration(b.commands)
	begin := time.Now()
	for i := 1; time.Since(begin) < during && sleep(ctx, time.Until(begin.Add(time.Duration(i)*every))) == nil; i++ {
		inHand <- struct{}{}
		go func() {
			defer func() { <-inHand }()
			post, err := b.postOne(context.WithoutCancel(ctx), i)
			b.mu.Lock()
			defer b.mu.Unlock()
			if b.posts = append(b.posts, post); err != nil {
				b.refused = err
			}
		}()
	}
	for range cap(inHand) {
		inHand <- struct{}{}
	}
}

// postOne posts the i-th batch.
func (b *visibleBench) postOne(ctx context.Context, i int) (p visiblePost, err error) {
	members := b.members
	if b.opens {
		members = otherMembers
	}
	body := []byte(`{"commands":[`)
	for c := range b.batch {
		if c > 0 {
			body = append(body, ',')
		}
		body = fmt.Appendf(body, `{"order":"visible-%x-%d","board":%q,"member":%q,"op":"incr","delta":1}`, rand.Uint64(), c, b.to, benchMember(rand.IntN(members)))
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+b.writer+"/v1/scores:batch", bytes.NewReader(append(body, "]}"...)))
	if err != nil {
		return p, err
	}
	req.Header.Set("Content-Type", "application/json")
	p.sent = time.Now()
	answer, err := visiblePosts.Do(req)
	if err != nil {
		return p, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	p.answered = time.Now()
	var results struct {
		Results []struct{ Result struct{ Seq uint64 } }
	}
	if err := errors.Join(err, json.Unmarshal(text, &results)); err != nil {
		return p, fmt.Errorf("the writer answers %s, %.300q: %w", answer.Status, text, err)
	}
	if len(results.Results) != b.batch {
		return p, fmt.Errorf("the writer answers %s, %.300q: want %d results", answer.Status, text, b.batch)
	}
	for _, r := range results.Results {
		if r.Result.Seq == 0 {
			return p, fmt.Errorf("a command was not applied: %.300s", text)
		}
		p.seq = max(p.seq, r.Result.Seq)
	}
	return p, nil
}

var visiblePosts = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: visibleInHand}}

// readPages reads pages again and again, until it is stopped and one has all posts.
func (b *visibleBench) readPages(ctx context.Context, stop <-chan struct{}) (seen []seenPage, err error) {
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, b.data.Network, b.data.Addr)
	}}}
	defer client.CloseIdleConnections()
	until, last := time.Time{}, uint64(0)
	for {
		resp, err := client.Get("http://localhost" + topOf(b.to).Paths[0])
		if err != nil {
			return seen, err
		}
		_, err = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		state, stateErr := rankcache.ParseState(resp.Header.Get("Rankcache-State"))
		if err := errors.Join(err, stateErr); err != nil {
			return seen, fmt.Errorf("a page: %w", err)
		}
		if len(seen) == 0 || seen[len(seen)-1].seq < state.Seq {
			seen = append(seen, seenPage{time.Now(), state.Seq})
		}
		select {
		case <-stop:
			if until.IsZero() {
				until, last = time.Now().Add(visibleWithin), b.lastSeq()
			}
			if state.Seq >= last {
				return seen, nil
			}
			if time.Now().After(until) {
				return seen, fmt.Errorf("the sidecar has seq %d of %d after %v", state.Seq, last, visibleWithin)
			}
		default:
		}
		if err := sleep(ctx, visiblePoll); err != nil {
			return seen, err
		}
	}
}

func (b *visibleBench) lastSeq() (last uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range b.posts {
		last = max(last, p.seq)
	}
	return last
}

// finish sets the figures of the posts that were sent from then on, up to a time. All of them are in a page.
func (b *visibleBench) finish(from, to time.Time, seen []seenPage) (err error) {
	r := b.report
	if r.P50, r.P99, err = b.shownAfter(from, to, seen); err != nil {
		return err
	}
	var answered []float64
	for _, p := range b.between(from, to) {
		answered = append(answered, p.answered.Sub(p.sent).Seconds()*1000)
		r.Max = max(r.Max, b.shownIn(p, seen))
	}
	sort.Float64s(answered)
	n := len(answered)
	r.Commands, r.Posts = float64(n*b.batch)/to.Sub(from).Seconds(), n
	r.AnswerP50, r.AnswerP99 = answered[n/2], answered[n*99/100]
	return nil
}

// between returns the posts that were sent between two times.
func (b *visibleBench) between(from, to time.Time) (posts []visiblePost) {
	for _, p := range b.posts {
		if p.sent.After(from) && p.sent.Before(to) {
			posts = append(posts, p)
		}
	}
	return posts
}

// shownIn returns after how many milliseconds a page had a post.
func (b *visibleBench) shownIn(p visiblePost, seen []seenPage) float64 {
	page := seen[sort.Search(len(seen), func(i int) bool { return seen[i].seq >= p.seq })]
	return page.at.Sub(p.sent).Seconds() * 1000
}

// shownAfter returns the percentiles of that, of the posts that were sent between two times.
func (b *visibleBench) shownAfter(from, to time.Time, seen []seenPage) (p50, p99 float64, err error) {
	var shown []float64
	for _, p := range b.between(from, to) {
		shown = append(shown, b.shownIn(p, seen))
	}
	if len(shown) == 0 {
		return 0, 0, errors.New("no post was measured: give a longer --window")
	}
	sort.Float64s(shown)
	return shown[len(shown)/2], shown[len(shown)*99/100], nil
}

func (r *visibleReport) print(to io.Writer) error {
	if r.OpenSeconds > 0 {
		fmt.Fprintf(to, "while a board of %d opens, %.1f s: p50 %.1f ms, p99 %.1f ms; before:\n", r.Members, r.OpenSeconds, r.OpenP50, r.OpenP99)
	}
	_, err := fmt.Fprintf(to, "broker: %s; %s\n%d members, %.0f commands/s, %d posts\nfrom the post to a page that has it: p50 %.1f ms, p99 %.1f ms, max %.1f ms\nto the writer's answer: p50 %.1f ms, p99 %.1f ms\n",
		r.Kafka, r.Cores, r.Members, r.Commands, r.Posts, r.P50, r.P99, r.Max, r.AnswerP50, r.AnswerP99)
	return err
}
