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
	sentinelTimeout = 500 * time.Millisecond // bounds one question to one Sentinel
	sentinelEvery   = 50 * time.Millisecond  // the shortest time between two questions to all of them
)

// askAllSentinels has a client ask all Sentinels when the master that one named can't be reached: it may be behind.
func askAllSentinels(client *redis.Client, o *redis.FailoverOptions) {
	dial := o.Dialer
	if dial == nil {
		dial = redis.NewDialer(client.Options())
	}
	client.AddHook(&sentinelHook{options: o, dial: dial})
}

type sentinelHook struct {
	options *redis.FailoverOptions
	dial    func(ctx context.Context, network, addr string) (net.Conn, error)

	asking  singleflight.Group // what follows is touched in it only
	named   []namedMaster
	namedAt time.Time
}

// DialHook tries what the other Sentinels name, the newest first. Without a master it returns a failing connection.
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

// failedConn is a connection that was not made: its first use returns why. Errors of dials would count in go-redis's
// pool, which then answers by itself and dials once a second (tryDial): local boards would be unreadable.
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

func (h *sentinelHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (h *sentinelHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// namedMaster is the master that a Sentinel names. The epoch rises with each failover.
type namedMaster struct {
	addr  string
	epoch int
}

// masters returns the masters that Sentinels name, the newest first. Dials that fail together share a question.
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
		Dialer: o.Dialer, TLSConfig: o.TLSConfig, DialTimeout: sentinelTimeout, ReadTimeout: sentinelTimeout, MaxRetries: -1, DisableIdentity: true})
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
