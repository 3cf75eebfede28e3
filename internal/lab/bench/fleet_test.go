package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"testing"
	"time"

	"rankcache/internal/cli"
	"rankcache/internal/testkit"
)

// The bench on few small boards: all figures are there.
func TestBenchFleet(t *testing.T) {
	testkit.FullOnly(t, "nine processes")
	testkit.Redis(t) // skips or fails where there is no redis-server
	t.Setenv(envRunMain, "1")
	t.Setenv("RANKCACHE_TEST_KAFKA_LIBS", t.TempDir()) // no Kafka there: kfake
	var out, progress bytes.Buffer
	err := cli.Run(t.Context(), benchOnly(), []string{"bench", "fleet", "-o", "json", "--pods", "2", "--boards", "3", "--members", "50", "--rounds", "1", "--settle", "0s", "--window", "1s"}, &out, &progress)
	if err != nil {
		t.Fatalf("%v\n%s", err, &progress)
	}
	var r fleetReport
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	for _, f := range []fleetFigures{r.None, r.Kept, r.Keeper} {
		for _, key := range fleetKeys {
			if _, there := f[key]; !there {
				t.Errorf("%s is missing: %v", key, f)
			}
		}
		if f[processCPU] <= 0 || f[processMemory] <= 0 {
			t.Errorf("a process has taken nothing: %v", f)
		}
	}
	if r.Kafka != "kfake" || r.Pods != 2 || r.None[redisCommands] <= 0 || r.Ratios[redisCommands] == 0 || r.Keeper[published] <= 0 {
		t.Errorf("%+v", r)
	}
}

// What a keeper does is taken off as often as it did it, and never a pod's own CPU.
func TestFleetFigures(t *testing.T) {
	idle := fleetFigures{redisCPU: 1}
	keeper := fleetFigures{redisCPU: 4, processCPU: 5, published: 3}
	both := fleetFigures{redisCPU: 11, processCPU: 6, published: 6}
	got := both.withoutKeeper(keeper).perPod(idle, 2)
	for key, want := range map[string]float64{redisCPU: 1, processCPU: 3, published: 0} {
		if math.Abs(got[key]-want) > 1e-9 {
			t.Errorf("%s is %v, want %v", key, got[key], want)
		}
	}
	b := &fleetBench{replayBench: replayBench{members: 2000}, pods: 20, boards: 100, statesEvery: 300 * time.Millisecond}
	r := fleetReport{None: b.planned(0), Kept: b.planned(1)}
	b.comparePlan(&r)
	for _, key := range fleetKeys {
		if r.PlanToNone[key] != 1 || r.PlanToKept[key] != 1 || r.PlanKept[key] > r.PlanNone[key] {
			t.Errorf("%s: plan expects %v, %v with a keeper", key, r.PlanNone[key], r.PlanKept[key])
		}
	}
	if r := got.ratios(fleetFigures{redisCPU: 4})[redisCPU]; r != 0.25 {
		t.Errorf("ratio %v", r)
	}
}

// Sidecars become ready beside a Redis that is held most of the time, from the log and from their files.
func TestBenchStart(t *testing.T) {
	testkit.Redis(t) // skips or fails where there is no redis-server
	t.Setenv(envRunMain, "1")
	t.Setenv("RANKCACHE_TEST_KAFKA_LIBS", t.TempDir()) // no Kafka there: kfake
	var out, progress bytes.Buffer
	err := cli.Run(t.Context(), benchOnly(), []string{"bench", "start", "-o", "json", "--boards", "3", "--members", "20", "--slow", "0.5"}, &out, &progress)
	var report startReport
	if err = errors.Join(err, json.Unmarshal(out.Bytes(), &report)); err != nil {
		t.Fatalf("%v\n%s", err, &progress)
	}
	if len(report.Rows) != 2 || report.Rows[0].Seconds <= 0 || report.Rows[1].Seconds <= 0 {
		t.Errorf("%+v", report)
	}
}
