package rpc

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/grpc"

	v1 "rankcache/proto/rankcache/v1"
)

// nextName returns the name of the next event of a stream.
type nextName func() (string, error)

// TestQuietStreams: a board may be quiet for longer than one write may take. Each transport's
// stream tells its age meanwhile.
func TestQuietStreams(t *testing.T) {
	const deadline = 200 * time.Millisecond
	e := start(t, func(c *Config) { c.WriteTimeout, c.Heartbeat = deadline, 3*deadline }) // silent for 1.5 deadlines at least
	streams := make(map[string]nextName)
	for name, open := range e.transports() {
		streams[name] = open()
	}
	for name, next := range streams { // all of them have been quiet meanwhile
		for i, want := range []string{"page", "age", "age"} {
			if got, err := next(); err != nil || got != want {
				t.Errorf("%s: event %d is %q, %v, want %s", name, i, got, err, want)
				break
			}
		}
	}
}

// transports returns what opens a stream of the board "local", by the name of its transport.
func (e *env) transports() map[string]func() nextName {
	h2 := new(http.Protocols)
	h2.SetUnencryptedHTTP2(true)
	all := map[string]func() nextName{"gRPC": e.quietGRPC}
	for version, protocols := range map[string]*http.Protocols{"HTTP/1.1": nil, "HTTP/2": h2} {
		all["events over "+version] = func() nextName { return e.quietEvents(protocols, nil) }
		all["events of a request with a body over "+version] = func() nextName {
			return e.quietEvents(protocols, strings.NewReader("body"))
		}
		for name, options := range map[string][]connect.ClientOption{"Connect": nil, "Connect with JSON": {connect.WithProtoJSON()}, "gRPC-web": {connect.WithGRPCWeb()}} {
			all[name+" over "+version] = func() nextName { return e.quietConnect(protocols, options) }
		}
	}
	return all
}

func (e *env) quietEvents(protocols *http.Protocols, body io.Reader) nextName {
	s := e.watchBody("/v1/boards/local/live?limit=2", "", protocols, body)
	return func() (string, error) {
		ev, ok := s.next()
		if !ok {
			return "", fmt.Errorf("the stream has ended: %w", s.lines.Err())
		}
		return ev.name, nil
	}
}

func (e *env) quietConnect(protocols *http.Protocols, options []connect.ClientOption) nextName {
	transport := &http.Transport{Protocols: protocols}
	e.t.Cleanup(transport.CloseIdleConnections)
	client := connect.NewClient[v1.WatchRequest, v1.WatchResponse](&http.Client{Transport: transport}, e.url("/rankcache.v1.Boards/Watch"), options...)
	s, err := client.CallServerStream(e.t.Context(), connect.NewRequest(&v1.WatchRequest{Address: at("local"), Limit: 2}))
	if err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(func() { _ = s.Close() })
	return func() (string, error) {
		if !s.Receive() {
			return "", fmt.Errorf("the stream has ended: %w", s.Err())
		}
		return nameOf(s.Msg()), nil
	}
}

func (e *env) quietGRPC() nextName {
	s := e.watchGRPC(e.grpc(), &v1.WatchRequest{Address: at("local"), Limit: 2})
	return func() (string, error) {
		m := new(v1.WatchResponse)
		err := s.RecvMsg(m)
		return nameOf(m), err
	}
}

// nameOf returns the name that the event has as a server-sent one.
func nameOf(m *v1.WatchResponse) string {
	switch {
	case m.GetPage() != nil:
		return "page"
	case m.GetDiff() != nil:
		return "diff"
	case m.GetAge() != nil:
		return "age"
	}
	return "end"
}

// watchGRPC opens a stream by gRPC.
func (e *env) watchGRPC(conn *grpc.ClientConn, r *v1.WatchRequest) grpc.ClientStream {
	e.t.Helper()
	s, err := conn.NewStream(e.t.Context(), &grpc.StreamDesc{ServerStreams: true}, "/rankcache.v1.Boards/Watch")
	if err == nil {
		err = s.SendMsg(r)
	}
	if err == nil {
		err = s.CloseSend()
	}
	if err != nil {
		e.t.Fatal(err)
	}
	return s
}
