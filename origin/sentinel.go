package origin

import (
	"cmp"
	"context"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/singleflight"
)

const (
	// sentinelTimeout bounds one question to one Sentinel.
	sentinelTimeout = 500 * time.Millisecond
	// sentinelEvery is the shortest time between two questions to all of them.
	sentinelEvery = 50 * time.Millisecond
)

// askAllSentinels has a client ask all its Sentinels when the master that one of them named
// can't be reached. By itself it believes one of them, which may hear of a failover a
// second or two after the others.
func askAllSentinels(client *redis.Client, o *redis.FailoverOptions) {
	client.AddHook(&sentinelHook{options: o, dial: redis.NewDialer(client.Options())})
}

// sentinelHook is the [redis.Hook] of a client that follows Sentinels.
type sentinelHook struct {
	options *redis.FailoverOptions
	dial    func(ctx context.Context, network, addr string) (net.Conn, error)

	asking  singleflight.Group // what follows is touched in it only
	named   []namedMaster
	namedAt time.Time
}

// DialHook tries what the other Sentinels name, the newest first. Where no master can be
// reached it returns a connection that fails, and no error.
func (h *sentinelHook) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := next(ctx, network, addr)
		if err == nil {
			return conn, nil
		}
		for _, master := range h.masters(ctx) {
			if conn, failed := h.dial(ctx, "tcp", master.addr); failed == nil {
				return conn, nil
			}
		}
		return newFailedConn(err), nil
	}
}

// failedConn is a connection that was not made: its first use returns why. An error of the
// dial would count in go-redis's pool, which after one for each of its connections
// answers by itself, and dials once a second only (tryDial): local boards that are
// compared with a new master would be unreadable for so long.
type failedConn struct {
	net.Conn // for its addresses and deadlines
	err      error
}

func newFailedConn(err error) *failedConn {
	conn, _ := net.Pipe()
	return &failedConn{conn, err}
}

func (c *failedConn) Read([]byte) (int, error)  { return 0, c.err }
func (c *failedConn) Write([]byte) (int, error) { return 0, c.err }

// ProcessHook changes nothing.
func (h *sentinelHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

// ProcessPipelineHook changes nothing.
func (h *sentinelHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// namedMaster is the master that a Sentinel names. The epoch rises with each failover.
type namedMaster struct {
	addr  string
	epoch int
}

// masters returns the masters that the Sentinels name, each once, the newest first. Dials that
// fail at the same time share a question.
func (h *sentinelHook) masters(ctx context.Context) []namedMaster {
	asked := h.asking.DoChan("", func() (any, error) {
		if time.Since(h.namedAt) > sentinelEvery {
			h.named = h.askAll(context.WithoutCancel(ctx))
			h.namedAt = time.Now()
		}
		return h.named, nil
	})
	select {
	case all := <-asked:
		return all.Val.([]namedMaster)
	case <-ctx.Done():
		return nil
	}
}

func (h *sentinelHook) askAll(ctx context.Context) (all []namedMaster) {
	var mu sync.Mutex
	var asked sync.WaitGroup
	for _, addr := range h.options.SentinelAddrs {
		asked.Go(func() {
			if m, err := h.ask(ctx, addr); err == nil {
				mu.Lock()
				defer mu.Unlock()
				all = append(all, m)
			}
		})
	}
	asked.Wait()
	slices.SortFunc(all, func(a, b namedMaster) int { return cmp.Or(cmp.Compare(b.epoch, a.epoch), cmp.Compare(a.addr, b.addr)) })
	return slices.CompactFunc(all, func(a, b namedMaster) bool { return a.addr == b.addr })
}

func (h *sentinelHook) ask(ctx context.Context, addr string) (m namedMaster, err error) {
	o := h.options
	client := redis.NewSentinelClient(&redis.Options{Addr: addr, Protocol: o.Protocol, Username: o.SentinelUsername, Password: o.SentinelPassword,
		TLSConfig: o.TLSConfig, DialTimeout: sentinelTimeout, ReadTimeout: sentinelTimeout, MaxRetries: -1, DisableIdentity: true})
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, sentinelTimeout)
	defer cancel()
	fields, err := client.Master(ctx, o.MasterName).Result()
	if err != nil {
		return m, err
	}
	m.addr = net.JoinHostPort(fields["ip"], fields["port"])
	m.epoch, err = strconv.Atoi(fields["config-epoch"])
	return m, err
}
