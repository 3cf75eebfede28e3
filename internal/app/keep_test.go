package app

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache/internal/testkit"
	"rankcache/wire"
)

// kept is a fixture with two keepers and two sidecars of one instance.
type kept struct {
	*fixture
	*testing.T
	client   *redis.Client
	instance string
	keepers  []*child
	sidecars []*child
}

func newKept(t *testing.T) *kept {
	k := &kept{fixture: newFixture(t), T: t, instance: testkit.Name(t)}
	k.client = k.redis(t)
	k.give(t, k.star, 40)
	k.common = append(k.common, "--hot-instance", k.instance)
	for range 2 {
		k.keepers = append(k.keepers, startListening(t, append([]string{"keep", "--health", "127.0.0.1:0", "--audit-rows", "20000"}, k.common...)...))
		k.sidecars = append(k.sidecars, k.serve(t, "--audit-rows", "20000", "--hot-promote-rate", "100000"))
	}
	for _, s := range k.sidecars {
		s.WaitReady(time.Minute)
	}
	return k
}

func (k *kept) key() string { return wire.DefaultNames().StatesKey(k.instance) }

// awaitSerial waits until the value has a serial that is higher by n, and returns that.
func (k *kept) awaitSerial(n uint64) (serial uint64) {
	k.Helper()
	first := uint64(0)
	testkit.Eventually(k, time.Minute, func() error {
		s, err := wire.ParseStates(k.client.Get(k.Context(), k.key()).Val(), k.instance)
		if err == nil && first == 0 {
			first = s.Serial
		}
		if serial = s.Serial; err != nil || serial < first+n {
			return fmt.Errorf("serial %d, it was %d: %v", serial, first, err)
		}
		if state, ok := s.Of(wire.StateKey(string(k.star))); !ok || !state.HasSum {
			return fmt.Errorf("state %+v, %v", state, ok)
		}
		return nil
	})
	return serial
}

// awaitMore waits until a metric of each process has grown by n.
func (k *kept) awaitMore(processes []*child, series string, n float64) {
	k.Helper()
	for _, c := range processes {
		before := c.series(k.T, series)
		testkit.Eventually(k, time.Minute, func() error {
			if now := c.series(k.T, series); now < before+n {
				return fmt.Errorf("%s is %v, it was %v", series, now, before)
			}
			return nil
		})
	}
}

// series returns the value of a series, with its labels.
func (c *child) series(t *testing.T, series string) (value float64) {
	t.Helper()
	_, text := c.Get("health", "/metrics")
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, series+" "); ok {
			if _, err := fmt.Sscan(rest, &value); err != nil {
				t.Fatal(err)
			}
			return value
		}
	}
	t.Fatalf("there is no %s", series)
	return 0
}

// awaitLocal waits until all sidecars answer from memory what Redis has.
func (k *kept) awaitLocal() {
	k.Helper()
	want := strings.ReplaceAll(k.rows(k.T), " ", "\n")
	for _, s := range k.sidecars {
		testkit.Eventually(k, time.Minute, func() error {
			_, body := s.Get("data", "/v1/boards/"+string(k.star)+"/top?limit=50")
			if !strings.Contains(body, `"source":"local"`) {
				return errors.New(body)
			}
			for _, row := range strings.Fields(want) {
				member, score, _ := strings.Cut(row, "=")
				if !strings.Contains(body, fmt.Sprintf(`"member":%q,"score":%s`, member, score)) {
					return fmt.Errorf("no %s in %s", row, body)
				}
			}
			return nil
		})
	}
}

const (
	ofKeeper = `rankcache_replay_readings_total{source="keeper"}`
	ofRedis  = `rankcache_replay_readings_total{source="redis"}`
	rowsRead = `rankcache_audit_members_total`
)

// TestKeepers: one of two keepers reads Redis for all; sidecars read neither states nor rows; what is changed by hand or lost in
// Redis is right everywhere soon; a bad value and the death of the keepers change no answer.
func TestKeepers(t *testing.T) {
	t.Parallel()
	k := newKept(t)
	k.awaitSerial(3)
	k.awaitMore(k.sidecars, ofKeeper, 3)
	own, rows := make([]float64, 2), make([]float64, 2)
	for i, s := range k.sidecars {
		own[i], rows[i] = s.series(t, ofRedis), s.series(t, rowsRead)
	}
	k.awaitMore(k.sidecars, ofKeeper, 10)
	for i, s := range k.sidecars {
		if now := s.series(t, ofRedis); now > own[i]+1 {
			t.Errorf("sidecar %d has read %v states while it heard of 10", i, now-own[i])
		}
		if now := s.series(t, rowsRead); now > rows[i] {
			t.Errorf("sidecar %d has compared %v rows", i, now-rows[i])
		}
	}

	t.Run("ByHand", func(t *testing.T) {
		must(t, k.client.ZAdd(t.Context(), string(k.star), redis.Z{Member: "m1", Score: 7777}).Err())
		k.awaitLocal()
	})
	t.Run("Loss", func(t *testing.T) { k.loses() })
	t.Run("BadValue", func(t *testing.T) {
		good := k.client.Get(t.Context(), k.key()).Val()
		for _, bad := range []string{good[:len(good)-3], "\x02" + good[1:], strings.Repeat("\x01", 64<<20), string(wire.AppendStates(nil, "another", 1<<60, time.Second, nil))} {
			must(t, k.client.Set(t.Context(), k.key(), bad, 0).Err())
			k.awaitSerial(3)
		}
		k.awaitMore(k.sidecars, ofKeeper, 3)
		k.awaitLocal()
	})
	t.Run("Hot", func(t *testing.T) { k.promotes() })
	t.Run("Death", func(t *testing.T) {
		serial := k.awaitSerial(1)
		for i, c := range k.keepers {
			if c.series(t, "rankcache_keeper_elected") == 1 {
				c.Kill()
				k.keepers = append(k.keepers[:i:i], k.keepers[i+1:]...)
				break
			}
		}
		if now := k.awaitSerial(3); now < serial {
			t.Errorf("serial %d after %d", now, serial)
		}
		k.awaitMore(k.sidecars, ofKeeper, 3)
		k.keepers[0].Kill()
		k.awaitMore(k.sidecars, ofRedis, 2)
		k.awaitLocal()
	})
}

// promotes has all sidecars asked for a board, which gets hot though none of them would make it so alone.
func (k *kept) promotes() {
	t, board := k.T, testkit.Name(k)
	must(t, k.client.ZAdd(t.Context(), board, redis.Z{Member: "m1", Score: 1}).Err())
	load := startLoad(t, func(caller, _ int) (int, string) { // 100 a second of both are wanted
		resp, err := http.Get(k.sidecars[caller%2].URL("data", "/v1/boards/"+board+"/top?limit=1"))
		if err != nil {
			return 0, err.Error()
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(body)
	})
	defer load.stop(t)
	testkit.Eventually(t, time.Minute, func() error {
		for _, s := range k.sidecars {
			if _, rows := s.Get("admin", "/hotkeys"); !strings.Contains(rows, `"cause": "verdict"`) {
				return errors.New(rows)
			}
		}
		return nil
	})
}

// loses takes Redis back to an earlier state of the board, as a failover does.
func (k *kept) loses() {
	t := k.T
	keys := []string{string(k.star), wire.DefaultNames().MetaKey(k.star)}
	var kept []string
	for _, key := range keys {
		kept = append(kept, k.client.Dump(t.Context(), key).Val())
	}
	k.giveTo(t, k.star, "lost", 5)
	k.awaitLocal()
	k.awaitMore(k.sidecars, ofKeeper, 4)
	_, err := k.client.TxPipelined(t.Context(), func(p redis.Pipeliner) error {
		for i, key := range keys {
			p.RestoreReplace(t.Context(), key, 0, kept[i])
		}
		return nil
	})
	must(t, err)
	for _, s := range k.sidecars {
		testkit.Eventually(t, time.Minute, func() error {
			_, body := s.Get("data", "/v1/boards/"+string(k.star)+"/top?limit=50")
			if strings.Contains(body, `"lost"`) || !strings.Contains(body, `"source":"local"`) {
				return errors.New(body)
			}
			return nil
		})
	}
}
