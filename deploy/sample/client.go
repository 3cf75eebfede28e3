package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	// timeout is for an answer that Redis has to give; one from memory takes
	// microseconds.
	timeout = 2 * time.Second
	// maxBody is many times the size of 50 rows with profiles.
	maxBody = 1 << 20
)

// client asks the sidecar for one board. It may be used concurrently.
type client struct {
	id   string
	base string
	http *http.Client
}

// newClient returns a client of the sidecar at "http://host:port" or
// "unix:/path".
func newClient(at, board string) (*client, error) {
	transport := &http.Transport{MaxIdleConnsPerHost: 64} // kept open: a new connection costs more than an answer
	if path, ok := strings.CutPrefix(at, "unix:"); ok {
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", path)
		}
		at = "http://localhost"
	}
	if u, err := url.Parse(at); err != nil || u.Host == "" {
		return nil, fmt.Errorf("-rankcache %q: want http://host:port or unix:/path", at)
	}
	return &client{id: board, base: strings.TrimSuffix(at, "/"), http: &http.Client{Transport: transport, Timeout: timeout}}, nil
}

// answer is the sidecar's answer, of any status.
type answer struct {
	status      int
	contentType string
	age         string // Rankcache-Age-Ms, "" if there is none
	body        []byte
}

// top returns the first 50 rows, with the viewer's own if me names one. The
// error reports that there was no answer.
func (c *client) top(ctx context.Context, me string) (*answer, error) {
	query := url.Values{"limit": {"50"}}
	if me != "" {
		query.Set("me", me)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+"/v1/boards/"+url.PathEscape(c.id)+"/top?"+query.Encode(), nil)
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	return &answer{resp.StatusCode, resp.Header.Get("Content-Type"), resp.Header.Get("Rankcache-Age-Ms"), body}, err
}
