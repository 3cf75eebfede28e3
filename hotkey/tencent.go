package hotkey

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	"rankcache/wire"
)

// Defaults of [TencentConfig].
const (
	DefaultTencentEndpoint = "https://redis.tencentcloudapi.com"
	DefaultTencentMinCount = 500 // per 5 s: 100 requests/s of the whole fleet
)

// TencentConfig configures the source of one instance of Tencent Cloud's Redis. Zero fields take the defaults.
type TencentConfig struct {
	Instance    string // instance id, such as crs-1234abcd
	Region      string // such as ap-guangzhou
	Endpoint    string // a URL; http is accepted on loopback only
	Credentials string // one of TencentAuto, TencentEnv, TencentTKE and TencentCVM
	MinCount    int64  // from how many requests in 5 s on a key is hot: the API lists the busiest, however few
}

func (c TencentConfig) withDefaults() TencentConfig {
	c.Endpoint = cmp.Or(c.Endpoint, DefaultTencentEndpoint)
	c.Credentials = cmp.Or(c.Credentials, TencentAuto)
	c.MinCount = cmp.Or(c.MinCount, DefaultTencentMinCount)
	return c
}

func (c TencentConfig) check() error {
	if c.Instance == "" || c.Region == "" {
		return errors.New("tencent hot keys: set the instance (crs-...) and the region (such as ap-guangzhou)")
	}
	u, err := url.Parse(c.Endpoint)
	if err != nil || u.Host == "" || u.User != nil || strings.Trim(u.Path, "/")+u.RawQuery != "" {
		return errors.New("tencent hot keys: endpoint is not a URL such as " + DefaultTencentEndpoint)
	}
	ip := net.ParseIP(u.Hostname())
	local := u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
	if u.Scheme != "https" && !(u.Scheme == "http" && local) {
		return fmt.Errorf("tencent hot keys: endpoint %s: want https", c.Endpoint)
	}
	return nil
}

// Tencent calls DescribeInstanceMonitorHotKey (5 s, up to 20 s old). Any goroutine may call Hot; one call at a time.
type Tencent struct {
	api      *tencentAPI
	names    wire.Names
	minCount int64
	busy     chan struct{} // has a token while the SDK works: its look-up of credentials ignores the context
}

// NewTencent returns the source of one instance. It makes no call and looks up no credentials yet.
func NewTencent(cfg TencentConfig, names wire.Names) (*Tencent, error) {
	cfg = cfg.withDefaults()
	if err := cfg.check(); err != nil {
		return nil, err
	}
	keys, err := newTencentKeys(cfg.Credentials)
	if err != nil {
		return nil, err
	}
	return &Tencent{api: newTencentAPI(cfg, keys), names: names, minCount: cfg.MinCount, busy: make(chan struct{}, 1)}, nil
}

func (t *Tencent) Name() string { return "tencent" }

// Hot returns the hot keys' boards; Count is in 5 s. The error is a [*CallError] without credentials.
func (t *Tencent) Hot(ctx context.Context) (HotBoards, error) {
	select {
	case t.busy <- struct{}{}:
	case <-ctx.Done():
		return HotBoards{}, tencentTimeout(ctx)
	}
	type reply struct {
		keys []*tencentHotKey
		err  error
	}
	done := make(chan reply, 1)
	go func() {
		keys, err := t.api.hotKeys(ctx)
		<-t.busy
		done <- reply{keys, err}
	}()
	select {
	case r := <-done:
		if r.err != nil && ctx.Err() != nil { // the SDK's error does not wrap its cause
			return HotBoards{}, tencentTimeout(ctx)
		}
		return t.hotBoards(r.keys), r.err
	case <-ctx.Done():
		return HotBoards{}, tencentTimeout(ctx)
	}
}

func (t *Tencent) hotBoards(keys []*tencentHotKey) (s HotBoards) {
	for _, k := range keys {
		switch {
		case k == nil || k.Key == nil || k.Count == nil || !k.mayBeBoard():
			s.Ignored++
		case *k.Count >= t.minCount:
			s.addKey(t.names, *k.Key, *k.Count)
		}
	}
	return s
}

func tencentTimeout(ctx context.Context) error {
	return &CallError{"timeout", AfterPause, fmt.Errorf("tencent %s did not answer in time: check the network path to the API "+
		"and, with role credentials, to the metadata service: %w", tencentAction, context.Cause(ctx))}
}
