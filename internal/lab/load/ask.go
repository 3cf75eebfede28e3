package load

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/tidwall/redcon"
)

const askTimeout = 10 * time.Second // of one request on a connection of its own

// Ask sends the first request of an HTTP question over a connection of its own and returns the reply, its body read
// and also still in it. It works on every system.
func Ask(t Target, q *Question) (*http.Response, []byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
	defer cancel()
	method := http.MethodGet
	if q.Body != nil {
		method = http.MethodPost
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://localhost"+q.Paths[0], bytes.NewReader(q.Body))
	if err != nil {
		return nil, nil, err
	}
	for _, field := range q.Fields {
		name, value, _ := strings.Cut(field, ": ")
		req.Header.Set(name, value)
	}
	transport := &http.Transport{DisableCompression: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, t.Network, t.Addr)
	}}
	defer transport.CloseIdleConnections()
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, body, err
}

// AskRedis sends one command over a connection of its own and returns the reply as it came over the wire.
func AskRedis(t Target, command ...string) ([]byte, error) {
	conn, err := net.DialTimeout(t.Network, t.Addr, askTimeout)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(askTimeout)) // fails on a closed connection only, and then so does Write
	request := redcon.AppendArray(nil, len(command))
	for _, arg := range command {
		request = redcon.AppendBulkString(request, arg)
	}
	if _, err := conn.Write(request); err != nil {
		return nil, err
	}
	var reply []byte
	for buf := make([]byte, 64<<10); ; {
		n, err := conn.Read(buf)
		if err != nil {
			return nil, fmt.Errorf("after %d bytes of the reply: %w", len(reply), err)
		}
		reply = append(reply, buf[:n]...)
		switch size, value := redcon.ReadNextRESP(reply); {
		case size > 0 && value.Type == redcon.Error:
			return nil, errors.New(value.String())
		case size > 0:
			return reply, nil
		}
	}
}
