package bench

import (
	"context"
	"fmt"
	"maps"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"rankcache/internal/lab/load"
)

// fleetFigures are what was measured in a window, by name: CPU in % of a core, commands and bytes a second, MiB; of
// Redis's commands also each by its name.
type fleetFigures map[string]float64

const (
	redisCPU      = "redis_cpu_pct"
	redisCommands = "redis_commands"
	kafkaBytes    = "kafka_bytes"
	processCPU    = "cpu_pct"
	processMemory = "memory_mib" // private memory, without the program's own code
	oneCommand    = "redis_"     // and its name
)

// published is how often a keeper has published: its metric, and the figure.
const published = "rankcache_keeper_states_published_total"

// fleetKeys are what is compared.
var fleetKeys = []string{redisCPU, redisCommands, kafkaBytes, processCPU, processMemory}

// figures waits until all is at rest, and measures a window: the servers, and some processes together.
func (b *fleetBench) figures(ctx context.Context, pids []int) (fleetFigures, error) {
	if err := sleep(ctx, b.settle); err != nil {
		return nil, err
	}
	before, begun := fleetFigures{}, time.Now()
	if err := b.count(ctx, before, pids); err != nil {
		return nil, err
	}
	if err := sleep(ctx, b.window); err != nil {
		return nil, err
	}
	took, after := time.Since(begun).Seconds(), fleetFigures{}
	if err := b.count(ctx, after, pids); err != nil {
		return nil, err
	}
	for key := range after {
		after[key] = (after[key] - before[key]) / took
	}
	for _, pid := range pids {
		kib, err := procNumber(pid, "status", memoryLine)
		if err != nil {
			return nil, err
		}
		after[processMemory] += kib / 1024
	}
	return after, nil
}

// count reads the counters of servers and processes as they are now.
func (b *fleetBench) count(ctx context.Context, f fleetFigures, pids []int) error {
	for key, of := range map[string][]int{redisCPU: {b.redisPid}, processCPU: pids} {
		cpu, err := load.CPU(of)
		if err != nil {
			return err
		}
		f[key] = cpu.Seconds() * 100
	}
	for _, line := range []*regexp.Regexp{readLine, writtenLine} {
		n, err := procNumber(b.kafkaPid, "io", line)
		if err != nil {
			return err
		}
		f[kafkaBytes] += n
	}
	if b.keeper != "" {
		n, err := metricOf(ctx, b.keeper, published)
		if err != nil {
			return err
		}
		f[published] = n
	}
	text, err := b.redis.Info(ctx, "commandstats").Result()
	if err != nil {
		return err
	}
	for _, m := range commandLine.FindAllStringSubmatch(text, -1) {
		n, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			return fmt.Errorf("commandstats of Redis: %w", err)
		}
		f[oneCommand+m[1]] = n
		f[redisCommands] += n
	}
	return nil
}

var (
	memoryLine  = regexp.MustCompile(`(?m)^RssAnon:\s*(\d+)`)
	readLine    = regexp.MustCompile(`(?m)^rchar: (\d+)`)
	writtenLine = regexp.MustCompile(`(?m)^wchar: (\d+)`)
	commandLine = regexp.MustCompile(`(?m)^cmdstat_(\S+):calls=(\d+)`)
)

// procNumber returns a number from a file of /proc about a process.
func procNumber(pid int, file string, line *regexp.Regexp) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
	if err != nil {
		return 0, err
	}
	found := line.FindSubmatch(text)
	if found == nil {
		return 0, fmt.Errorf("/proc/%d/%s has no line %v", pid, file, line)
	}
	return strconv.ParseFloat(string(found[1]), 64)
}

// withoutKeeper takes off what a keeper did when it was alone, as often as it published now: on a busy machine it does
// so more rarely.
func (f fleetFigures) withoutKeeper(alone fleetFigures) fleetFigures {
	rest, often := maps.Clone(f), f[published]/alone[published]
	delete(rest, published)
	for key := range rest {
		if key != processCPU && key != processMemory {
			rest[key] -= alone[key] * often
		}
	}
	return rest
}

// perPod takes off what the servers do without the pods and divides the rest by their number.
func (f fleetFigures) perPod(without fleetFigures, pods int) fleetFigures {
	per := maps.Clone(f)
	for key := range per {
		if key != processCPU && key != processMemory {
			per[key] -= without[key]
		}
		if per[key] /= float64(pods); per[key] == 0 && strings.HasPrefix(key, oneCommand) {
			delete(per, key)
		}
	}
	return per
}

// ratios are those to others.
func (f fleetFigures) ratios(to fleetFigures) fleetFigures {
	ratios := fleetFigures{}
	for _, key := range fleetKeys {
		if to[key] > 0 {
			ratios[key] = f[key] / to[key]
		}
	}
	return ratios
}

// medianFigures returns the medians of the rounds; what a round lacks is 0 there.
func medianFigures(rounds []fleetFigures) fleetFigures {
	medians := fleetFigures{}
	for _, round := range rounds {
		for key := range round {
			values := make([]float64, len(rounds))
			for i := range rounds {
				values[i] = rounds[i][key]
			}
			medians[key] = median(values)
		}
	}
	return medians
}
