package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/hotkey"
	"rankcache/internal/doctor"
	"rankcache/internal/roomsync"
	"rankcache/origin"
	"rankcache/rooms"
)

// patient is what the settings name: the clients of the checks.
type patient struct {
	*doctorOptions
	redis  redis.UniversalClient
	origin *origin.Origin
	kafka  *doctor.Kafka
}

func newPatient(o *doctorOptions) (*patient, error) {
	origin.LogTo(slog.New(slog.DiscardHandler)) // what the clients would say is said by the checks
	p := &patient{doctorOptions: o}
	// A slow answer is an answer: the deadline is the check's.
	o.redisTimeout = max(o.redisTimeout, o.timeout)
	total, err := origin.ParseTotalSource(o.total)
	if err != nil {
		return nil, Usagef("--total: %w", err)
	}
	if p.redis, err = o.dialRedis(); err != nil {
		return nil, err
	}
	p.origin = origin.New(p.redis, o.names, origin.WithTotalSource(total), origin.WithTimeout(o.redisTimeout))
	if p.kafka, err = doctor.OpenKafka(o.kafka, o.kafkaKeys, o.names, o.total, p.superHot); err != nil {
		p.redis.Close()
		return nil, Usagef("%w", err)
	}
	return p, nil
}

func (p *patient) close() {
	p.kafka.Close()
	p.redis.Close()
}

// checks returns all checks in the order in which they are told: what others
// need comes first.
func (p *patient) checks() []doctor.Check {
	r := doctor.Redis{Client: p.redis, Mode: p.redisMode, Names: p.names, Total: p.total, Roles: p.roles}
	checks := append([]doctor.Check{{Name: "rooms", Look: p.roomsFile}}, r.Checks()...)
	checks = append(checks, p.kafka.Checks()...)
	if source := p.hotSource(r); source != nil {
		checks = append(checks, *source)
	}
	return append(checks, doctor.Check{Name: "memory", Needs: doctor.CheckRedis, Look: p.memory},
		doctor.Check{Name: "ports", Look: p.ports})
}

func (p *patient) roomsFile(context.Context) doctor.Verdict {
	if p.rooms == "" {
		return doctor.Verdict{Status: doctor.OK, Advice: "no rooms file: only rooms set at run time can be super-hot, pinned or blocked"}
	}
	data, err := os.ReadFile(p.rooms)
	if err != nil {
		return doctor.Verdict{Status: doctor.Fail, Advice: "--rooms: " + err.Error()}
	}
	parsed, err := rooms.Parse(data)
	if err != nil {
		return doctor.Verdict{Status: doctor.Fail, Advice: p.rooms + ": " + err.Error()}
	}
	return doctor.Verdict{Status: doctor.OK, Advice: fmt.Sprintf("%s names %d rooms and %d board rules", p.rooms, len(parsed.Rooms), len(parsed.Rules))}
}

// superHot returns the boards that serve would keep whole: of the file, of the
// rooms' sets in Redis and of what was set at run time.
func (p *patient) superHot(ctx context.Context) ([]rankcache.BoardID, error) {
	follower := roomsync.New(roomsync.Config{File: p.rooms, Every: 100 * time.Millisecond, Origin: p.origin, Shared: p.sharedRooms(p.redis),
		Log: slog.New(slog.DiscardHandler)}, prometheus.NewRegistry())
	if err := follower.Load(); err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() { defer close(done); _ = follower.Run(ctx) }() // ends with ctx, without an error
	defer func() { stop(); <-done }()
	for {
		status := follower.Status()
		if status.File.Resolved && !status.Dynamic.ReadAt.IsZero() {
			return follower.Tiers().Boards(rooms.ModeSuperHot), nil
		}
		if !sleep(ctx, 5*time.Millisecond) {
			return nil, fmt.Errorf("redis has not said which boards run in the rooms: %s", status.Dynamic.Error)
		}
	}
}

// hotSource returns the check of who says which keys are hot, nil for nobody.
func (p *patient) hotSource(r doctor.Redis) *doctor.Check {
	source, err := p.poll.newSource(p.redis, p.names)
	check := &doctor.Check{Name: "hot-source"}
	switch tencent := source.(type) {
	case *hotkey.Tencent:
		check.Look = func(ctx context.Context) doctor.Verdict { return askTencent(ctx, tencent) }
	case *hotkey.RedisHotKeys:
		*check = r.HotKeys()
	case nil:
		if err == nil {
			return nil
		}
		check.Look = func(context.Context) doctor.Verdict {
			return doctor.Verdict{Status: doctor.Fail, Advice: err.Error()}
		}
	}
	return check
}

// askTencent makes the one call that the poller makes, with the same rights.
func askTencent(ctx context.Context, source *hotkey.Tencent) doctor.Verdict {
	sample, err := source.Hot(ctx)
	var failed *hotkey.CallError
	switch {
	case err == nil:
		return doctor.Verdict{Status: doctor.OK, Advice: fmt.Sprintf("the cloud's API answers: %d hot boards", len(sample.Boards))}
	case errors.As(err, &failed) && failed.After == hotkey.AfterOperator:
		return doctor.Verdict{Status: doctor.Fail, Advice: err.Error()}
	}
	return doctor.Verdict{Status: doctor.Warn, Advice: err.Error()}
}

// ports says whether serve could listen. A sidecar that runs here already is
// what others look for.
func (p *patient) ports(ctx context.Context) doctor.Verdict {
	opened, err := openListeners(flagAddr{"data", p.data}, flagAddr{"socket", unixAddr(p.socket)}, flagAddr{"admin", p.admin}, flagAddr{"health", p.health})
	opened.close()
	if err == nil {
		return doctor.Verdict{Status: doctor.OK, Advice: "all addresses can be listened on"}
	}
	if isSidecar(ctx, p.health) {
		return doctor.Verdict{Status: doctor.OK, Advice: "a rankcache answers on the health port, so the ports are taken by it"}
	}
	return doctor.Verdict{Status: doctor.Fail, Advice: err.Error()}
}

// isSidecar says whether a rankcache answers liveness on the address.
func isSidecar(ctx context.Context, address string) bool {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(host, port)+"/livez", nil)
	if err != nil {
		return false
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	var alive struct{ State string }
	return json.NewDecoder(io.LimitReader(resp.Body, waitBody)).Decode(&alive) == nil && alive.State == "alive"
}
