package operate

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/class"
	"rankcache/internal/cli"
	"rankcache/internal/lab/fill"
	"rankcache/internal/lab/servers"
	"rankcache/internal/plan"
	"rankcache/internal/testkit"
	"rankcache/origin"
	"rankcache/wire"
)

// fillShards fills shards of a board with so many members each.
func fillShards(t *testing.T, client *redis.Client, whole rankcache.BoardID, members ...int) {
	t.Helper()
	for shard, n := range members {
		b := fill.NewBoard(class.ShardID(whole, shard))
		for i := range n {
			b.Set(fmt.Sprint("m", i), float64(i))
		}
		if n > 0 {
			must(t, b.Redis(context.Background(), client, wire.DefaultNames(), time.Hour))
		}
	}
}

// TestVerifySplitBoard: a split board is added up shard by shard, and one that is wrong is named.
func TestVerifySplitBoard(t *testing.T) {
	t.Parallel()
	client := redis.NewClient(&redis.Options{Addr: testkit.Redis(t), Protocol: 2})
	t.Cleanup(func() { client.Close() })
	b := &verifyBoard{rankcache.BoardID(testkit.Name(t)), client}
	fillShards(t, client, b.id, 5, 0, 7)
	report, _, code := b.verify(t, "--sidecar", "")
	if code != cli.ExitOK || report.Wrong != wrongNone || len(report.Shards) != 3 || report.Redis.Members != 12 || report.Shards[1].Redis.Meta != nil {
		t.Fatalf("exit %d, %+v", code, report)
	}
	last := class.ShardID(b.id, 3) // which only the sidecar knows
	report, _, code = b.verify(t, "--sidecar", status(t, fmt.Sprintf(`{"mode":"super-hot","shards":[{"board":%q,"state":"open"}]}`, last)))
	if code != cli.ExitOK || len(report.Shards) != 4 || report.Shards[3].Board != last {
		t.Errorf("exit %d, %+v", code, report)
	}
	must(t, client.ZAdd(t.Context(), string(class.ShardID(b.id, 1)), redis.Z{Member: "past"}).Err())
	if report, _, code = b.verify(t, "--sidecar", ""); code != cli.ExitFailed || report.Wrong != wrongUnknown || report.Shards[1].Wrong != wrongUnknown {
		t.Errorf("a shard without a meta that has members: exit %d, %+v", code, report)
	}
	must(t, client.ZAdd(t.Context(), string(class.ShardID(b.id, 2)), redis.Z{Score: 5000, Member: "m1"}).Err())
	report, output, code := b.verify(t, "--sidecar", "")
	if code != cli.ExitDiffers || report.Wrong != wrongRedis || report.Shards[0].Wrong != wrongNone || report.Shards[2].Wrong != wrongRedis || !strings.Contains(output, string(b.id)+".s2") {
		t.Errorf("exit %d, %+v\n%s", code, report, output)
	}
}

// TestBigAddsShards: a split board is one of the largest by all its shards.
func TestBigAddsShards(t *testing.T) {
	t.Parallel()
	addr := testkit.StartRedis(t, servers.RedisOptions{}).Addr()
	client := redis.NewClient(&redis.Options{Addr: addr, Protocol: 2})
	t.Cleanup(func() { client.Close() })
	fillShards(t, client, "split", 30, 40, 50)
	fillShards(t, client, "one", 60)
	out, errs, exit := findBig(t, addr, "-o", "json")
	var report bigReport
	if err := json.Unmarshal([]byte(out), &report); err != nil || exit != cli.ExitOK || len(report.Largest) != 2 {
		t.Fatalf("exit %d, %v: %s%s", exit, err, out, errs)
	}
	split, one := report.Largest[0], report.Largest[1]
	if split.Key != "split" || split.Board != "split" || split.Members != 120 || split.Shards != 3 || split.LargestShard != 50 || split.Bytes < 3*120 || split.Expires == nil {
		t.Errorf("%+v", split)
	}
	if one.Key != "one.s0" || one.Board != "one.s0" || one.Members != 60 || one.Shards != 0 { // nothing tells that it is a shard
		t.Errorf("%+v", one)
	}
	if out, _, _ := findBig(t, addr, "--top", "1"); !strings.Contains(out, "3 shards, largest 50  split\n") || strings.Contains(out, ".s") {
		t.Error(out)
	}
}

// TestBigKeepsOtherBoardsApart: boards that are called as shards, as those of seasons, are no split board.
func TestBigKeepsOtherBoardsApart(t *testing.T) {
	members := map[rankcache.BoardID]int{"season.s1": 9, "season.s2": 8, "game": 7, "game.s0": 6, "game.s1": 5, "gap.s0": 4, "gap.s1": 4, "gap.s3": 4, "split.s0": 2, "split.s1": 1}
	size := func(b rankcache.BoardID) origin.Size {
		if members[b] == 0 {
			return origin.Size{Key: string(b)}
		}
		return origin.Size{Key: string(b), Board: b, Members: members[b]}
	}
	asked := 0
	sizesOf := func(_ context.Context, ids []rankcache.BoardID) (sizes []origin.Size, _ error) {
		asked++
		for _, id := range ids {
			sizes = append(sizes, size(id))
		}
		return sizes, nil
	}
	var page []origin.Size
	for _, id := range slices.Sorted(maps.Keys(members)) {
		page = append(page, size(id))
	}
	w := &bigWalk{sizesOf: sizesOf, top: 10, progress: io.Discard}
	must(t, w.add(t.Context(), page))
	var got []string
	for _, s := range w.largest {
		got = append(got, fmt.Sprint(s.key, " ", s.members))
	}
	if want := []string{"season.s1 9", "season.s2 8", "game 7", "game.s0 6", "game.s1 5", "gap.s0 4", "gap.s1 4", "gap.s3 4", "split 3"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	w = &bigWalk{sizesOf: sizesOf, top: 1, progress: io.Discard, largest: []bigSet{{"large", 100, nil}}}
	asked = 0
	if must(t, w.add(t.Context(), page)); asked != 3 || len(w.largest) != 1 {
		t.Errorf("%d requests, want one for each first shard: others are too small to matter", asked)
	}
}

// TestRoomsCheckSplit: whole boards are listed, and their shards count in memory.
func TestRoomsCheckSplit(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rooms.yaml")
	must(t, os.WriteFile(file, []byte(`
rooms: [{uid: "88", mode: super-hot, boards: ["world:5", a]}]
classes: [{name: world, board: "world:{zone}", period: none, shards: 16, mode: super-hot, dims: {zone: ["7"]}}]
`), 0o600))
	var out bytes.Buffer
	must(t, cli.Run(t.Context(), NewCommand(), []string{"rooms", "check", file, "-o", "json", "--kafka", "kafka:9092"}, &out, &out))
	var got RoomsSummary
	must(t, json.Unmarshal(out.Bytes(), &got))
	if !slices.Equal(got.Boards, []rankcache.BoardID{"a", "world:5"}) || got.Classes[0].Shards != 16 || got.Memory.Running != 16+1+16 {
		t.Errorf("%+v", got)
	}
}

func TestPlanCountsShards(t *testing.T) {
	var members []int
	must(t, parseMembers(&members, "members", []string{"57000", "10/4"}))
	if !slices.Equal(members, []int{57000, 2, 2, 3, 3}) {
		t.Error(members)
	}
	for _, bad := range []string{"x", "10/0", "10/65", "10/x", "/4", ""} {
		if err := parseMembers(&members, "members", []string{bad}); cli.ExitCode(err) != cli.ExitUsage {
			t.Errorf("%q: %v", bad, err)
		}
	}
	q := plan.Question{Members: []int{16_000_000}, IDBytes: 10, Pods: 1}
	one := plan.Make(q)
	q.Members = nil
	must(t, parseMembers(&q.Members, "members", []string{"16000000/16"}))
	if split := plan.Make(q); split.PodHeapMiB != one.PodHeapMiB || split.PodMemoryMiB >= one.PodMemoryMiB { // filled one after the other
		t.Errorf("%v of %v MiB, %v of %v as the lowest limit", split.PodHeapMiB, one.PodHeapMiB, split.PodMemoryMiB, one.PodMemoryMiB)
	}
}
