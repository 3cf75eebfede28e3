// Command go is a recipe for apps in Go: it reads the page of a board from the sidecar,
// and from Redis while the sidecar is away. Each line of its input is a read; a line
// with a state, such as the writer answers, reads a page that has that write. With a member
// the page has its row, neighbours and profiles, and a line such as +5 gives it points first.
package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

const limit = 50 // rows of a page

// Page is the head of a board. It is never changed, so it may be shared.
type Page struct {
	Source  string // local, hot or redis; direct if the app itself asked Redis
	Entries []Entry
	Me      *Me    // nil if nobody was asked for, or is not on the board
	State   string `json:"-"` // of the board; empty if not known
	ETag    string `json:"-"`
}

// Entry is one row, the best first.
type Entry struct {
	Member  string
	Score   float64
	Profile map[string]any // nil if the profile service has none, or was late
}

// Me is the row of the member that the page is for.
type Me struct {
	Entry
	Rank       *int    // nil beyond the best that the board keeps
	Neighbours []Entry // with the member itself
}

// Client has the connections: make one for the whole process.
type Client struct {
	Me, Writer, Token string // optional: the member that pages are for; the writer's host:port; its token

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
	return &Client{http: &http.Client{Transport: transport, Timeout: time.Second}, redis: direct, integers: integers}
}

var errAway = errors.New("the sidecar or the writer does not answer")

var posts = &http.Client{Timeout: 6 * time.Second} // a writer waits up to 5 s for Redis

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
	if c.Me != "" {
		target += "&around=4&profiles=1&me=" + url.QueryEscape(c.Me)
	}
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

// Post adds to the score of Me and returns the board's state after it, for the next read.
func (c *Client) Post(ctx context.Context, board string, delta float64) (state string, err error) {
	body, err := json.Marshal(map[string]any{"order": rand.Text(), "board": board, "member": c.Me,
		"op": "incr", "delta": delta, "at": time.Now().UnixMilli()})
	if err != nil {
		return "", err
	}
	for range 2 { // the same order and at: it counts once
		if state, err = c.post(ctx, body); !errors.Is(err, errAway) {
			break
		}
	}
	return state, err // errAway: it may have been counted; post the same body again later
}

func (c *Client) post(ctx context.Context, body []byte) (state string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+c.Writer+"/v1/scores", bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+c.Token)
	resp, err := posts.Do(req)
	if err != nil {
		return "", fmt.Errorf("%w: %w", errAway, err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode == http.StatusServiceUnavailable {
		return "", errAway
	}
	if resp.StatusCode != http.StatusOK { // refused: so is a repeat
		return "", fmt.Errorf("post: %s: %s", resp.Status, answer)
	}
	var done struct{ State string }
	return done.State, json.Unmarshal(answer, &done)
}

// direct reads from Redis itself.
func (c *Client) direct(ctx context.Context, board string) (*Page, error) {
	rows, err := c.redis.ZRangeArgsWithScores(ctx, redis.ZRangeArgs{Key: board, Start: 0, Stop: limit - 1, Rev: true}).Result()
	page := &Page{Source: "direct"}
	for _, row := range rows {
		if c.integers { // the fraction is a tie-break, which the sidecar doesn't show
			row.Score = math.Floor(row.Score)
		}
		page.Entries = append(page.Entries, Entry{Member: row.Member.(string), Score: row.Score})
	}
	return page, err
}

func main() {
	args := append(os.Args[1:], make([]string, 6)...)
	if args[2] == "" {
		fmt.Fprintln(os.Stderr, "usage: go SIDECAR REDIS BOARD [integer|number [MEMBER [WRITER]]]")
		os.Exit(2)
	}
	few := &redis.Options{Addr: args[1], PoolSize: 4, DialTimeout: time.Second, ReadTimeout: time.Second}
	client := NewClient(args[0], redis.NewClient(few), args[3] == "integer")
	client.Me, client.Writer, client.Token = args[4], args[5], os.Getenv("RANKCACHE_WRITE_TOKEN")
	var page *Page
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		next, err := client.line(args[2], page, lines.Text())
		if err != nil {
			fmt.Println("error:", err)
			continue
		}
		show(next, next == page)
		page = next
	}
}

// line reads the page, behind a write if the line is one.
func (c *Client) line(board string, known *Page, line string) (page *Page, err error) {
	if points, ok := strings.CutPrefix(line, "+"); ok {
		delta, err := strconv.ParseFloat(points, 64)
		if err == nil {
			line, err = c.Post(context.Background(), board, delta)
		}
		if err != nil {
			return nil, err
		}
	}
	return c.Top(context.Background(), board, known, line)
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
	if me := page.Me; me != nil && me.Rank != nil {
		fmt.Printf(" | rank %d, %d near, %v", *me.Rank, len(me.Neighbours), me.Profile["nick"])
	}
	fmt.Println()
}
