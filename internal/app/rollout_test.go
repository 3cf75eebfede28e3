package app

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/twmb/franz-go/pkg/kgo"

	"rankcache"
	"rankcache/internal/testkit"
	"rankcache/wire"
)

// envRolloutBase names the commit that is taken as the released one, instead of the last tag or the parent.
const envRolloutBase = "RANKCACHE_ROLLOUT_BASE"

// rolloutMembers fit on one page, and each command adds 1 to one of them: the scores of a right page add up to its seq.
const rolloutMembers = 40

// rollout is a fleet of two pods with sidecars and two writers whose versions change under load.
type rollout struct {
	t             *testing.T
	versions      [2]string // binaries: the released one, this one
	name, rooms   string
	boards        []string // a super-hot one, and one that Redis answers
	pods, writers [2]*instance

	mu   sync.Mutex
	sent map[string]int // commands by board
}

// instance is a place where a process runs; its version changes while nobody reads from it.
type instance struct {
	mu      sync.RWMutex // held by a request; taken by what replaces the process
	process *child
	dir     string // of a sidecar's files, which the next version finds
}

// TestRollout mixes the last release and this version, sidecars first and writers first, and rolls back, while
// commands are applied and pages are read: no read fails, no page is wrong, each command is applied once.
func TestRollout(t *testing.T) {
	testkit.FullOnly(t, "builds another version and takes a minute")
	r := newRollout(t)
	ctx, stop := context.WithCancel(t.Context())
	var load sync.WaitGroup
	load.Go(func() { r.produce(ctx) })
	load.Go(func() { r.post(ctx) })
	for i := range r.pods {
		for _, board := range r.boards {
			load.Go(func() { r.read(ctx, i, board) })
		}
	}
	sidecars, writers := r.setSidecars, r.setWriters
	for _, step := range []struct {
		set     func(version int)
		version int
	}{{sidecars, 1}, {writers, 1}, {writers, 0}, {sidecars, 0}, {writers, 1}, {sidecars, 1}, {sidecars, 0}, {writers, 0}} {
		step.set(step.version)
	}
	stop()
	load.Wait()
	r.checkEnd()
}

func newRollout(t *testing.T) *rollout {
	name := testkit.Name(t)
	r := &rollout{t: t, name: name, rooms: filepath.Join(t.TempDir(), "rooms.yaml"), sent: make(map[string]int)}
	r.versions = [2]string{buildRelease(t), os.Args[0]}
	short := name[max(0, len(name)-12):]
	r.boards = []string{"whole" + short, "small" + short}
	must(t, os.WriteFile(r.rooms, fmt.Appendf(nil, "rooms: [{uid: \"7\", mode: super-hot, boards: [%q]}]\n", r.boards[0]), 0o644))
	testkit.CreateTopic(t, testkit.Kafka(t), name, 4, map[string]string{"message.timestamp.type": "LogAppendTime"})
	for i := range r.pods {
		r.pods[i], r.writers[i] = &instance{dir: t.TempDir()}, &instance{}
	}
	r.setWriters(0)
	for _, board := range r.boards { // boards exist before their sidecars start
		r.send(board, -1)
	}
	r.setSidecars(0)
	return r
}

// buildRelease builds the last tagged version, or the parent of this commit where there is none.
func buildRelease(t *testing.T) string {
	root := strings.TrimSpace(git(t, ".", "rev-parse", "--show-toplevel"))
	base := os.Getenv(envRolloutBase)
	t.Setenv(envRolloutBase, "")
	must(t, os.Unsetenv(envRolloutBase)) // it is no setting of the command
	if base == "" {
		tag, _ := exec.Command("git", "-C", root, "describe", "--tags", "--abbrev=0", "--match", "v*", "HEAD^").Output()
		base = cmp.Or(strings.TrimSpace(string(tag)), "HEAD^")
	}
	tree := filepath.Join(t.TempDir(), "release")
	git(t, root, "worktree", "add", "--detach", tree, base)
	t.Cleanup(func() { git(t, root, "worktree", "remove", "--force", tree) })
	t.Logf("released version: %s, %s", base, strings.TrimSpace(git(t, tree, "log", "-1", "--format=%h %s")))
	binary := filepath.Join(t.TempDir(), "rankcache")
	build := exec.Command("go", "build", "-o", binary, "./cmd/rankcache")
	build.Dir = tree
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", base, err, out)
	}
	return binary
}

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// replace ends what runs there with SIGTERM and starts another version in its place.
func (i *instance) replace(start func() *child) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.process != nil {
		i.process.Signal(syscall.SIGTERM)
		if code := i.process.Wait(time.Minute); code != 0 {
			i.process.t.Errorf("exit code %d", code)
		}
	}
	i.process = start()
}

func (r *rollout) setSidecars(version int) {
	for _, pod := range r.pods {
		pod.replace(func() *child {
			c := r.start(version, "serve", "--data", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--health", "127.0.0.1:0", "--drain", "0s", "--snapshot-dir", pod.dir)
			c.WaitReady(time.Minute)
			return c
		})
		time.Sleep(time.Second) // mixed versions under load
	}
}

func (r *rollout) setWriters(version int) {
	for i, writer := range r.writers {
		writer.replace(func() *child {
			return r.start(version, "write", "--scores", "127.0.0.1:0", "--health", "127.0.0.1:0", "--group", r.name, "--group-instance", fmt.Sprint("writer-", i),
				"--topic-commands", r.name, "--topic-refused", r.name+"_refused", "--key-rooms", r.name+":rooms", "--publish-all")
		})
		time.Sleep(time.Second)
	}
}

func (r *rollout) start(version int, args ...string) *child {
	c := startCommand(r.t, r.versions[version], append(args, "--redis", "redis://"+testkit.Redis(r.t), "--kafka", testkit.Kafka(r.t), "--rooms", r.rooms)...)
	c.WaitListening()
	return c
}

// command counts a command that will be sent.
func (r *rollout) command(board, order string, i int) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent[board]++
	return fmt.Sprintf(`{"order":%q,"board":%q,"member":"m%d","op":"incr","delta":1,"at":%d}`, order, board, (i+rolloutMembers)%rolloutMembers, time.Now().UnixMilli())
}

// produce writes commands to Kafka until ctx ends.
func (r *rollout) produce(ctx context.Context) {
	client := testkit.KafkaClient(r.t, testkit.Kafka(r.t), kgo.DefaultProduceTopic(r.name))
	pace(ctx, 200, func(i int) {
		board := r.boards[i%2]
		record := &kgo.Record{Key: []byte(board), Value: []byte(r.command(board, fmt.Sprint("k", i), i))}
		if err := client.ProduceSync(context.Background(), record).FirstErr(); err != nil {
			r.t.Error("produce:", err)
		}
	})
}

// post posts commands to both writers in turn until ctx ends.
func (r *rollout) post(ctx context.Context) {
	pace(ctx, 50, func(i int) { r.send(r.boards[i%2], i) })
}

// send posts a command, to the other writer when one refuses, until it is answered.
func (r *rollout) send(board string, i int) {
	command, begin := r.command(board, fmt.Sprint("p", i), i), time.Now()
	for try := i; ; try++ {
		w := r.writers[(try+2)%2]
		w.mu.RLock()
		resp, err := http.Post(w.process.URL("scores", "/v1/scores"), "application/json", strings.NewReader(command))
		w.mu.RUnlock()
		if err == nil {
			body, _ := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return
			}
			err = fmt.Errorf("%s: %s", resp.Status, body)
		}
		if time.Since(begin) > time.Minute {
			r.t.Errorf("a post to %s is not answered: %v", board, err)
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// rolloutPage is what a read looks at.
type rolloutPage struct {
	Source  string `json:"source"`
	Seq     *int   `json:"seq"`
	Entries []struct {
		Score float64 `json:"score"`
	} `json:"entries"`
}

// read reads a board from a pod until ctx ends.
func (r *rollout) read(ctx context.Context, pod int, board string) {
	last, sources := 0, map[string]int{}
	pace(ctx, 100, func(int) {
		page, err := r.page(pod, board)
		switch {
		case err != nil:
			r.t.Errorf("pod %d, %s: %v", pod, board, err)
		case page.Seq == nil || page.sum() != *page.Seq || *page.Seq < last:
			r.t.Errorf("pod %d, %s: the scores add up to %d, %d was shown before (%s)", pod, board, page.sum(), last, page.Source)
		default:
			last = *page.Seq
		}
		if page != nil {
			sources[page.Source]++
		}
	})
	r.t.Logf("pod %d, %s: reads by source %v", pod, board, sources)
	if whole := board == r.boards[0]; whole && sources["local"] < 1000 || !whole && (sources["redis"] == 0 || sources["hot"] < 1000) {
		r.t.Errorf("pod %d, %s: these reads prove little", pod, board)
	}
}

func (p *rolloutPage) sum() int {
	sum := 0
	for _, e := range p.Entries {
		sum += int(e.Score)
	}
	return sum
}

func (r *rollout) page(pod int, board string) (*rolloutPage, error) {
	p := r.pods[pod]
	p.mu.RLock()
	defer p.mu.RUnlock()
	resp, err := http.Get(p.process.URL("data", "/v1/boards/"+board+"/top"))
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s: %w", resp.Status, body, err)
	}
	page := new(rolloutPage)
	return page, json.Unmarshal(body, page)
}

// checkEnd waits until Redis and all pods have each command once.
func (r *rollout) checkEnd() {
	client := redis.NewClient(&redis.Options{Addr: testkit.Redis(r.t), Protocol: 2})
	defer client.Close()
	for _, board := range r.boards {
		testkit.Eventually(r.t, time.Minute, func() error {
			state := testkit.BoardState(r.t, client, wire.DefaultNames(), rankcache.BoardID(board))
			if int(state.Seq) != r.sent[board] {
				return fmt.Errorf("%s: %d commands applied, %d sent", board, state.Seq, r.sent[board])
			}
			for pod := range r.pods {
				if page, err := r.page(pod, board); err != nil || page.sum() != r.sent[board] {
					return fmt.Errorf("pod %d, %s: %+v, want %d: %v", pod, board, page, r.sent[board], err)
				}
			}
			return nil
		})
	}
	r.t.Logf("commands %v", r.sent)
}
