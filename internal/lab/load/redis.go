package load

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
)

// tryFirst is how many commands redis-benchmark sends to find out how many a window is.
const tryFirst = 2000

// setCalls sets how many commands fill the window.
func (c *Config) setCalls(ctx context.Context) error {
	if c.Calls > 0 {
		return nil
	}
	rate, err := redisBenchmark(ctx, c, tryFirst)
	c.Calls = max(tryFirst, int(rate*c.Window.Seconds()))
	return err
}

// runRedisBenchmark has redis-benchmark send the command.
func runRedisBenchmark(ctx context.Context, cfg *Config) (*Result, error) {
	if cfg.Rate > 0 {
		return nil, errors.New("redis-benchmark has no timetable")
	}
	rate, err := redisBenchmark(ctx, cfg, cfg.Calls)
	if err != nil {
		return nil, err
	}
	return &Result{Requests: cfg.Calls, Window: time.Duration(float64(cfg.Calls) / rate * float64(time.Second))}, nil
}

// redisBenchmark sends n commands and returns how many were answered a second. It ends with an error at the first
// that the server answers with one.
func redisBenchmark(ctx context.Context, cfg *Config, n int) (rate float64, err error) {
	args := []string{"-s", cfg.Target.Addr}
	if cfg.Target.Network == "tcp" {
		host, port, err := net.SplitHostPort(cfg.Target.Addr)
		if err != nil {
			return 0, err
		}
		args = []string{"-h", host, "-p", port}
	}
	args = append(args, "--csv", "-n", fmt.Sprint(n), "-c", fmt.Sprint(cfg.Connections), "-P", fmt.Sprint(max(1, cfg.Question.Pipeline)))
	out, err := output(ctx, "redis-benchmark", append(args, cfg.Question.Command...)...)
	if err != nil {
		return 0, err
	}
	_, table, _ := strings.Cut(out, `"test","rps",`)
	if rows, err := csv.NewReader(strings.NewReader(`"test","rps",` + table)).ReadAll(); err == nil && len(rows) == 2 {
		rate, _ = strconv.ParseFloat(rows[1][1], 64)
	}
	if rate <= 0 {
		err = fmt.Errorf("redis-benchmark prints what is not understood: %.500q", out)
	}
	return rate, err
}
