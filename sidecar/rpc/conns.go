package rpc

import (
	"net"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// conns counts the connections of the listener.
type conns struct {
	open atomic.Int64
	ever atomic.Uint64
}

func (c *conns) register(reg prometheus.Registerer) error {
	if reg == nil {
		return nil
	}
	return reg.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "rankcache_rpc_connections", Help: "Connections now open to the listener for live pages, Connect and gRPC.",
	}, func() float64 { return float64(c.open.Load()) }))
}

type countedListener struct {
	net.Listener
	conns *conns
}

func (l countedListener) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.conns.open.Add(1)
	l.conns.ever.Add(1)
	return &countedConn{Conn: accepted, conns: l.conns}, nil
}

type countedConn struct {
	net.Conn
	conns *conns
	once  sync.Once
}

func (c *countedConn) Close() error {
	c.once.Do(func() { c.conns.open.Add(-1) })
	return c.Conn.Close()
}
