package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// demoPage is what the demo's screen reads of an answer: the same bytes that an
// app gets.
type demoPage struct {
	Board   string `json:"board"`
	Source  string `json:"source"`
	Seq     uint64 `json:"seq"`
	Total   int    `json:"total"`
	Entries []struct {
		Rank    int             `json:"rank"`
		Member  string          `json:"member"`
		Score   float64         `json:"score"`
		Profile json.RawMessage `json:"profile"`
	} `json:"entries"`
	age string // Rankcache-Age-Ms
}

// fetchPage asks the sidecar as an app does.
func fetchPage(ctx context.Context, client *http.Client, url string) (*demoPage, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("GET %s: %s: %.200s", url, resp.Status, body)
	}
	page := &demoPage{age: resp.Header.Get("Rankcache-Age-Ms")}
	return page, json.Unmarshal(body, page)
}

// drawTop writes the live top 10. On a terminal it takes the place of the
// previous one.
func drawTop(to io.Writer, page *demoPage, again bool) {
	var b strings.Builder
	if again {
		fmt.Fprintf(&b, "\x1b[%dA\x1b[J", 12)
	}
	fmt.Fprintf(&b, "%s  %s  source %s  seq %d  %d members  age %s ms\n\n",
		time.Now().Format(time.TimeOnly), page.Board, page.Source, page.Seq, page.Total, page.age)
	for i := range 10 {
		if i >= len(page.Entries) {
			b.WriteString("\n")
			continue
		}
		e := page.Entries[i]
		fmt.Fprintf(&b, "%4d  %-20s %12.0f\n", e.Rank, nick(e.Member, e.Profile), e.Score)
	}
	io.WriteString(to, b.String())
}

// nick returns the profile's nick, or the member's id without one.
func nick(member string, profile json.RawMessage) string {
	var p struct{ Nick string }
	if json.Unmarshal(profile, &p) == nil && p.Nick != "" {
		return p.Nick
	}
	return member
}
