package operate

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rankcache/internal/cli"
)

func TestRoomsCheck(t *testing.T) {
	file, kafka := filepath.Join(t.TempDir(), "rooms.yaml"), "kafka:9092"
	var out bytes.Buffer
	must := func(content string) error {
		out.Reset()
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		return cli.Run(t.Context(), NewCommand(), []string{"rooms", "check", file, "-o", "json", "--kafka", kafka}, &out, &out)
	}
	if err := must("rooms:\n- {uid: \"88\", mode: super-hot, boards: [\"a\"]}\n"); err != nil {
		t.Fatal(err)
	}
	var got RoomsSummary
	if err := json.Unmarshal(out.Bytes(), &got); err != nil || got.Rooms["super-hot"] != 1 || len(got.Boards) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	if err := must("rooms:\n- {uid: 88, mode: hot}\n"); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("got %v, want the line", err)
	}
	kafka = ""
	if err := must("rooms:\n- {uid: \"88\", mode: super-hot}\n"); err == nil || !strings.Contains(err.Error(), `room "88" is super-hot, which needs Kafka`) {
		t.Errorf("without Kafka: got %v, want the room refused", err)
	}
	if err := must("rooms:\n- {uid: \"88\", mode: hot}\n"); err != nil {
		t.Error("without Kafka:", err)
	}
}

// What takes something away tells that it did.
func TestDeletionsTellWhatTheyDid(t *testing.T) {
	admin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	defer admin.Close()
	for line, want := range map[string]string{
		"rooms delete 88":          "what was set for room 88 is taken back on all sidecars\n",
		"rooms delete --match 9_*": "what was set for boards 9_* is taken back on all sidecars\n",
		"rooms bypass a --off":     "board a is no longer bypassed on any sidecar\n",
		"rooms bypass --all --off": "no board is bypassed any more on any sidecar\n",
		"classes delete":           "the classes that were set at run time are taken away on all processes\n",
	} {
		var out bytes.Buffer
		if err := cli.Run(t.Context(), NewCommand(), append(strings.Fields(line), "--admin", admin.URL), &out, &out); err != nil || out.String() != want {
			t.Errorf("%s: %q, %v; want %q", line, out.String(), err, want)
		}
	}
}

func TestRoomsCheckShowsClasses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rooms.yaml")
	classes := `classes:
- {name: gift-half-hour, board: "gift:{zone}:{period}", period: 30m, tz: Asia/Shanghai, mode: super-hot, dims: {zone: ["1", "2"]}, linger: 40m}
- {name: total, board: total, period: none, durable: true}
- {name: fans, board: "fans_{host}", period: none, keep: 8760h}
- {name: ladder, board: "ladder:{period}", seasons: [{tag: s1, from: 2026-11-01T00:00:00Z, to: 2026-11-22T00:00:00Z}, {tag: s2, from: 2026-11-23T05:00:00Z, to: 2026-12-22T00:00:00Z}]}
- {name: cup, board: "cup:{period}", seasons: [{tag: c1, from: 2026-11-01T00:00:00Z, to: 2026-11-23T00:00:00Z}, {tag: c2, from: 2026-11-24T00:00:00Z, to: 2026-11-25T00:00:00Z}]}
- {name: old, board: "old:{period}", seasons: [{tag: o1, from: 2026-11-01T00:00:00Z, to: 2026-11-03T00:00:00Z}]}
`
	if err := os.WriteFile(file, []byte(classes), 0o644); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	now := time.Date(2026, 11, 22, 9, 20, 0, 0, time.UTC)
	if err := checkRooms(&out, file, "text", &cli.Options{Kafka: "k:1"}, now); err != nil {
		t.Fatal(err)
	}
	want := file + ` is good: 0 rooms (0 super-hot, 0 hot, 0 blocked), 0 board rules, 6 classes
CLASS           PERIOD   MODE       BOARD                    ENDS                       LINGERS  EXPIRES                                   DURABLE  NEXT BOARD
gift-half-hour  30m      super-hot  gift:{zone}:20261122-35  2026-11-22T17:30:00+08:00  40m0s    72h0m0s after the period                  false    gift:{zone}:20261122-36
total           none     none       total                    never                      -        never, or by --board-life of the writers  true     
fans            none     none       fans_{host}              never                      -        8760h0m0s after the last change           false    
ladder          seasons  none       -                        -                          -        72h0m0s after the period                  false    ladder:s2 from 2026-11-23T05:00:00Z
cup             seasons  none       cup:c1                   2026-11-23T00:00:00Z       -        72h0m0s after the period                  false    cup:c2 from 2026-11-24T00:00:00Z
old             seasons  none       -                        -                          -        72h0m0s after the period                  false    
Boards of no class expire never, or by --board-life of the writers.
In memory: 2 boards, before periods begin up to 2 more, and after they have ended up to 4 more that linger. rankcache plan computes the memory.
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
	out.Reset()
	var got RoomsSummary
	if err := checkRooms(&out, file, "json", &cli.Options{Kafka: "k:1"}, now); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil || len(got.Classes) != 6 || got.Memory != (boardsInMemory{2, 2, 4}) || got.Classes[2].Expires != "8760h0m0s after the last change" || !got.Classes[1].Durable || !got.Classes[0].Ends.Equal(time.Date(2026, 11, 22, 9, 30, 0, 0, time.UTC)) {
		t.Errorf("%s, %v", out.String(), err)
	}
}
