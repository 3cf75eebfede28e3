// Command go is a recipe for apps in Go: it reads the page of a board from the sidecar,
// and from Redis while the sidecar is away. Each line of its input is a read; a line
// with a state, such as the writer answers, reads a page that has that write.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

const limit = 50 // rows of a page

// Page is the head of a board. It is never changed, so it may be shared.
type Page struct {
	Source  string // local, hot or redis; direct if the app itself asked Redis
	Entries []Entry
	State   string `json:"-"` // of the board; empty if not known
	ETag    string `json:"-"`
}

// Entry is one row, the best first.
type Entry struct {
	Member string
	Score  float64
}

// Client has the connections: make one for the whole process.
type Client struct {
	http     *http.Client
	redis    *redis.Client
	integers bool
}

// NewClient returns a client of the sidecar at a socket's path or a host:port. integers tells
// that the class of the boards has ties or integer scores.
func NewClient(sidecar string, direct *redis.Client, integers bool) *Client {
	network := "tcp"
	if strings.HasPrefix(sidecar, "/") {
		network = "unix"
	}
	dialer := net.Dialer{Timeout: 100 * time.Millisecond}
	transport := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, network, sidecar)
		},
		MaxIdleConnsPerHost: 64,          // the default keeps 2 of them open
		IdleConnTimeout:     time.Minute, // the sidecar closes after 90 s
		DisableCompression:  true,        // on one machine it costs more than it saves
	}
	return &Client{&http.Client{Transport: transport, Timeout: time.Second}, direct, integers}
}

var errAway = errors.New("the sidecar does not answer")

// Top returns the page of the board. If that has not changed since known, an earlier
// page or nil, it returns known itself. With a state the page has that write.
func (c *Client) Top(ctx context.Context, board string, known *Page, state string) (*Page, error) {
	for range 2 { // a connection that was kept may have died with the last process
		page, err := c.ask(ctx, board, known, state)
		if !errors.Is(err, errAway) {
			return page, err
		}
	}
	return c.direct(ctx, board)
}

func (c *Client) ask(ctx context.Context, board string, known *Page, state string) (*Page, error) {
	target := fmt.Sprintf("http://localhost/v1/boards/%s/top?limit=%d", url.PathEscape(board), limit)
	if state != "" {
		target += "&wait_ms=200&min_state=" + url.QueryEscape(state)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return nil, err
	}
	if known != nil && known.ETag != "" {
		req.Header.Set("If-None-Match", known.ETag)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errAway, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body) // all of it: else the connection is closed
	switch {
	case err != nil || resp.StatusCode == http.StatusServiceUnavailable:
		return nil, errAway
	case resp.StatusCode == http.StatusNotModified:
		return known, nil
	case resp.StatusCode != http.StatusOK: // 403 blocked, 412 write_lost: not for Redis
		return nil, fmt.Errorf("read %s: %s: %s", board, resp.Status, body)
	}
	page := &Page{State: resp.Header.Get("Rankcache-State"), ETag: resp.Header.Get("ETag")}
	return page, json.Unmarshal(body, page)
}

// direct reads from Redis itself.
func (c *Client) direct(ctx context.Context, board string) (*Page, error) {
	rows, err := c.redis.ZRangeArgsWithScores(ctx, redis.ZRangeArgs{Key: board, Start: 0, Stop: limit - 1, Rev: true}).Result()
	page := &Page{Source: "direct"}
	for _, row := range rows {
		if c.integers { // the fraction is a tie-break, which the sidecar doesn't show
			row.Score = math.Floor(row.Score)
		}
		page.Entries = append(page.Entries, Entry{row.Member.(string), row.Score})
	}
	return page, err
}

func main() {
	if len(os.Args) < 4 || len(os.Args) > 5 {
		fmt.Fprintln(os.Stderr, "usage: go SIDECAR REDIS BOARD [integer]")
		os.Exit(2)
	}
	few := &redis.Options{Addr: os.Args[2], PoolSize: 4, DialTimeout: time.Second, ReadTimeout: time.Second}
	client := NewClient(os.Args[1], redis.NewClient(few), len(os.Args) == 5)
	var page *Page
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		next, err := client.Top(context.Background(), os.Args[3], page, lines.Text())
		if err != nil {
			fmt.Println("error:", err)
			continue
		}
		show(next, next == page)
		page = next
	}
}

func show(page *Page, unchanged bool) {
	source := page.Source
	if unchanged {
		source = "unchanged"
	}
	fmt.Print(source, " ", page.State, ":")
	for _, e := range page.Entries {
		fmt.Printf(" %s=%v", e.Member, e.Score)
	}
	fmt.Println()
}
