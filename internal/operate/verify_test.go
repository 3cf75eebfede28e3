package operate

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/internal/cli"
	"rankcache/internal/lab/fill"
	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
	"rankcache/origin"
	"rankcache/wire"
)

// verifyBoard is a board in Redis, of so many members at this seq.
type verifyBoard struct {
	id     rankcache.BoardID
	client *redis.Client
}

func newVerifyBoard(t *testing.T, members int) *verifyBoard {
	t.Helper()
	b := &verifyBoard{rankcache.BoardID(testkit.Name(t)), redis.NewClient(&redis.Options{Addr: testkit.Redis(t), Protocol: 2})}
	t.Cleanup(func() { b.client.Close() })
	filled := fill.NewBoard(b.id)
	for i := range members {
		filled.Set(fmt.Sprint("m", i), float64(i))
	}
	must(t, filled.Redis(t.Context(), b.client, wire.DefaultNames(), time.Hour))
	return b
}

func (b *verifyBoard) state(t *testing.T) rankcache.State {
	t.Helper()
	return testkit.BoardState(t, b.client, wire.DefaultNames(), b.id)
}

// byHand changes a score past the writer, and returns the sum of the members now.
func (b *verifyBoard) byHand(t *testing.T) rankcache.State {
	t.Helper()
	state := b.state(t)
	state.Sum = (state.Sum - wire.Hash("m1", 1) + wire.Hash("m1", 5000)) & wire.SumMask
	must(t, b.client.ZAdd(t.Context(), string(b.id), redis.Z{Score: 5000, Member: "m1"}).Err())
	return state
}

// verify runs the command and returns its report, standard error and exit code.
func (b *verifyBoard) verify(t *testing.T, args ...string) (verifyReport, string, int) {
	t.Helper()
	var out, errs bytes.Buffer
	args = append([]string{"verify", "-o", "json", "--board", string(b.id), "--redis", "redis://" + testkit.Redis(t), "--redis-timeout", "20s"}, args...)
	err := cli.Run(t.Context(), NewCommand(), args, &out, &errs)
	var report verifyReport
	if json.Unmarshal(out.Bytes(), &report) != nil && (err == nil || cli.ExitCode(err) == cli.ExitDiffers) {
		t.Fatalf("%v: %q", err, out.String())
	}
	return report, errs.String() + fmt.Sprint(err), cli.ExitCode(err)
}

// status is an admin port that answers so for every board.
func status(t *testing.T, body string) (url string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, body) }))
	t.Cleanup(server.Close)
	return server.URL
}

// openAt is the status of an open copy.
func openAt(s rankcache.State) string {
	return fmt.Sprintf(`{"mode":"super-hot","state":%q,"proved_state":"","replay":{"board":"b","state":"open"}}`, s)
}

func TestVerifyWithoutCopy(t *testing.T) {
	t.Parallel()
	for _, members := range []int{0, 300, 7000} { // read in one instant, and walked
		b := newVerifyBoard(t, members)
		report, _, code := b.verify(t, "--sidecar", "")
		if code != cli.ExitOK || report.Wrong != wrongNone || report.Redis.Members != members || report.Redis.AddedUp != b.state(t).String() || report.Redis.State != b.state(t).String() {
			t.Errorf("%d members: exit %d, %+v", members, code, report)
		}
		if m := report.Redis.Meta; m.Life != "open" || m.Adopting || m.Members != uint64(members) || time.Since(m.Began) > time.Hour || m.Expires == nil || m.End != nil {
			t.Errorf("meta %+v", m)
		}
		if members == 0 {
			continue
		}
		own := b.byHand(t)
		report, output, code := b.verify(t, "--sidecar", "")
		if code != cli.ExitDiffers || report.Wrong != wrongRedis || report.Redis.AddedUp != own.String() || !strings.Contains(output, "past the writer") {
			t.Errorf("by hand: exit %d, %s, %+v", code, output, report)
		}
	}
}

func TestVerifyCopy(t *testing.T) {
	t.Parallel()
	b := newVerifyBoard(t, 300)
	sum, differs := b.state(t), b.state(t)
	differs.Sum ^= 1
	late := sum
	late.Seq++
	proved := strings.Replace(openAt(late), `"proved_state":""`, fmt.Sprintf(`"proved_state":%q`, sum), 1)
	check := func(name, body, wrong, reason string, exit int) {
		t.Helper()
		report, output, code := b.verify(t, "--sidecar", status(t, body))
		if code != exit || report.Wrong != wrong || !strings.Contains(report.Reason+report.CopyMissing, reason) {
			t.Errorf("%s: exit %d, %s, %+v", name, code, output, report)
		}
	}
	check("equal", openAt(sum), wrongNone, "the copy's too", cli.ExitOK)
	check("proved before", proved, wrongNone, "the copy's too", cli.ExitOK)
	check("differs", openAt(differs), wrongCopy, "the copy's are not", cli.ExitDiffers)
	check("at another seq", openAt(late), wrongUnknown, "never at the same seq", cli.ExitFailed)
	check("filled", `{"mode":"super-hot","replay":{"board":"b","state":"replaying"}}`, wrongNone, "not read", cli.ExitOK)
	check("hot", `{"mode":"","state":"1-2-"}`, wrongNone, "no copy of it", cli.ExitOK)
	own := b.byHand(t)
	check("by hand", openAt(sum), wrongRedis, "which Redis had before", cli.ExitDiffers)
	check("by hand, copied", openAt(own), wrongRedis, "the members that Redis has", cli.ExitDiffers)
	check("all differ", openAt(differs), wrongBoth, "neither", cli.ExitDiffers)
	check("by hand, late", openAt(late), wrongRedis, "not compared", cli.ExitDiffers)
}

// A sidecar that was not named may be missing; one that was named may not.
func TestVerifyWithoutSidecar(t *testing.T) {
	b := newVerifyBoard(t, 3)
	v := &verifier{board: b.id, origin: origin.New(b.client, wire.DefaultNames()), sidecar: &cli.AdminClient{Admin: "127.0.0.1:1"}}
	report, err := v.run(t.Context())
	if err != nil || report.Wrong != wrongNone || !strings.Contains(report.CopyMissing, "no sidecar's copy was compared") {
		t.Errorf("not named: %v, %+v", err, report)
	}
	var text bytes.Buffer
	must(t, report.print(&text))
	for _, part := range []string{"wrong  none: ", "state " + b.state(t).String(), "added up " + b.state(t).String() + ": 3 members", "open, 3 members", "no sidecar's copy was compared"} {
		if !strings.Contains(text.String(), part) {
			t.Errorf("no %q in\n%s", part, &text)
		}
	}
	t.Log(&text)
	if report, output, code := b.verify(t, "--sidecar", "127.0.0.1:1"); code != cli.ExitUnasked || report.Wrong != wrongUnknown || !strings.Contains(output, "nothing is wrong in Redis, but --sidecar 127.0.0.1:1 could not be asked") {
		t.Errorf("named: exit %d, %s, %+v", code, output, report)
	}
	b.byHand(t)
	if report, output, code := b.verify(t, "--sidecar", "127.0.0.1:1"); code != cli.ExitDiffers || report.Wrong != wrongRedis {
		t.Errorf("named, and Redis is wrong: exit %d, %s, %+v", code, output, report)
	}
}

// A Redis that is away, hangs or does not tell this user is no board that differs, nor one without a meta.
func TestVerifyWithoutRedis(t *testing.T) {
	t.Parallel()
	server := testkit.StartRedis(t, servers.RedisOptions{})
	must(t, server.Do(t.Context(), "ACL", "SETUSER", "blind", "on", ">hush", "~*", "+@all", "-get"))
	b := &verifyBoard{id: "b"}
	check := func(how, url string) {
		t.Helper()
		_, output, code := b.verify(t, "--redis", url, "--redis-timeout", "300ms")
		if code != cli.ExitUnasked || !strings.Contains(output, "board b can't be verified: redis") {
			t.Errorf("%s: exit %d, %s", how, code, output)
		}
	}
	check("no permission", "redis://blind:hush@"+server.Addr())
	must(t, server.Pause())
	check("paused", "redis://"+server.Addr())
	must(t, server.Kill())
	check("killed", "redis://"+server.Addr())
}

func TestVerifyUnknown(t *testing.T) {
	b := newVerifyBoard(t, 3)
	value, err := b.client.Get(t.Context(), wire.DefaultNames().MetaKey(b.id)).Result()
	must(t, err)
	meta, err := wire.ParseMeta(value)
	must(t, err)
	meta.Adopting, meta.HasSum = true, false
	must(t, b.client.Set(t.Context(), wire.DefaultNames().MetaKey(b.id), wire.AppendMeta(nil, &meta), 0).Err())
	if report, _, code := b.verify(t, "--sidecar", ""); code != cli.ExitFailed || report.Wrong != wrongUnknown || !report.Redis.Meta.Adopting {
		t.Errorf("adopting: exit %d, %+v", code, report)
	}
	must(t, b.client.Del(t.Context(), wire.DefaultNames().MetaKey(b.id)).Err())
	if report, _, code := b.verify(t, "--sidecar", ""); code != cli.ExitFailed || report.Wrong != wrongUnknown || report.Redis.Meta != nil || !strings.HasPrefix(report.Reason, notWritten) {
		t.Errorf("no meta: exit %d, %+v", code, report)
	}
	if _, output, code := b.verify(t, "--board", "a b"); code != cli.ExitUsage {
		t.Errorf("a bad id: exit %d, %s", code, output)
	}
}

// changes is a [redis.Hook] that changes a board before each command and pipeline.
type changes func()

func (c changes) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c changes) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c()
		return next(ctx, cmd)
	}
}

func (c changes) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		c()
		return next(ctx, cmds)
	}
}

// A large board that changes during each walk can't be judged; a small one can.
func TestVerifyChangingBoard(t *testing.T) {
	t.Parallel()
	for members, want := range map[int]string{300: wrongNone, 7000: wrongUnknown} {
		b := newVerifyBoard(t, members)
		client := redis.NewClient(&redis.Options{Addr: testkit.Redis(t), Protocol: 2})
		defer client.Close()
		client.AddHook(changes(func() { testkit.ChangeBoard(t, b.client, wire.DefaultNames(), b.id, wire.OpIncr, "m7", 1) }))
		v := &verifier{board: b.id, origin: origin.New(client, wire.DefaultNames(), origin.WithTimeout(20*time.Second)), progress: io.Discard}
		report, err := v.run(t.Context())
		if err != nil || report.Wrong != want || report.Redis.Changed != (want == wrongUnknown) {
			t.Errorf("%d members: %v, %+v", members, err, report)
		}
	}
}
