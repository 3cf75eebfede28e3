// Package compare holds a served board against Redis, entry by entry.
package compare

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"rankcache"
	"rankcache/origin"
)

// ErrDiffers reports that both sides were read and are not the same; other errors, that one could not be read.
var ErrDiffers = errors.New("differs from Redis")

// Board compares the board that the sidecar serves with Redis's, entry by
// entry, once both have counted seq orders. The error names the first difference, as [ErrDiffers].
func Board(ctx context.Context, client *http.Client, base string, board rankcache.BoardID, redis *origin.Origin, seq uint64) (rows int, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := waitLevel(ctx, client, base, board, redis, seq); err != nil {
		return 0, err
	}
	for start := 0; ; start += rankcache.MaxTop {
		want := rankcache.One(ctx, redis, rankcache.Query{Board: board, Start: start, Limit: rankcache.MaxTop})
		if want.Err != nil {
			return rows, want.Err
		}
		url := fmt.Sprintf("%s/v1/boards/%s/top?start=%d&limit=%d", base, board, start, rankcache.MaxTop)
		got, err := Fetch(ctx, client, url)
		if err != nil {
			return rows, err
		}
		if err := samePage(got, &want); err != nil {
			return rows, fmt.Errorf("%w: %w", ErrDiffers, err)
		}
		if rows += len(want.Entries); len(want.Entries) < rankcache.MaxTop {
			return rows, nil
		}
	}
}

// waitLevel waits until Redis and the served board have counted seq orders.
func waitLevel(ctx context.Context, client *http.Client, base string, board rankcache.BoardID, redis *origin.Origin, seq uint64) error {
	for {
		want := rankcache.One(ctx, redis, rankcache.Query{Board: board, Limit: 1})
		if want.Err != nil {
			return want.Err
		}
		got, err := Fetch(ctx, client, fmt.Sprintf("%s/v1/boards/%s/top?limit=1", base, board))
		if err != nil {
			return err
		}
		if want.Seq == seq && got.Seq == seq {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: of %d orders Redis has counted %d, the local board %d", ErrDiffers, seq, want.Seq, got.Seq)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func samePage(got *Page, want *rankcache.Answer) error {
	if got.Source != "local" {
		return fmt.Errorf("answered from %s, want local", got.Source)
	}
	if len(got.Entries) != len(want.Entries) || got.Total != want.Members {
		return fmt.Errorf("from %d: %d rows of %d members, Redis has %d of %d", want.Start, len(got.Entries), got.Total, len(want.Entries), want.Members)
	}
	for i, e := range want.Entries {
		if g := got.Entries[i]; g.Member != e.Member || g.Score != e.Score || g.Rank != want.Start+i+1 {
			return fmt.Errorf("rank %d: %s with %v, Redis has %s with %v", want.Start+i+1, g.Member, g.Score, e.Member, e.Score)
		}
	}
	return nil
}

// Page is what the demo's screen reads of an answer: the same bytes that an
// app gets.
type Page struct {
	Board   string `json:"board"`
	Source  string `json:"source"`
	Seq     uint64 `json:"seq"`
	Total   int    `json:"total"`
	Entries []struct {
		Rank    int             `json:"rank"`
		Member  string          `json:"member"`
		Score   float64         `json:"score"`
		Profile json.RawMessage `json:"profile"`

		PreviousRank *int `json:"previous_rank"` // with trend=1
	} `json:"entries"`
	TrendError string `json:"trend_error"`
	Age        string `json:"-"` // Rankcache-Age-Ms
}

// Fetch asks the sidecar as an app does.
func Fetch(ctx context.Context, client *http.Client, url string) (*Page, error) {
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
	page := &Page{Age: resp.Header.Get("Rankcache-Age-Ms")}
	return page, json.Unmarshal(body, page)
}
