package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"rankcache"
	"rankcache/origin"
)

// checkDemo compares the board that the sidecar serves with Redis's, entry by
// entry, once both have counted seq orders. The error says the first difference.
func checkDemo(ctx context.Context, client *http.Client, base string, board rankcache.BoardID, redis *origin.Origin, seq uint64) (rows int, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := waitLevel(ctx, client, base, board, redis, seq); err != nil {
		return 0, err
	}
	for start := 0; ; start += rankcache.MaxTop {
		want, err := redis.Page(ctx, board, start, rankcache.MaxTop, rankcache.Descending)
		if err != nil {
			return rows, err
		}
		url := fmt.Sprintf("%s/v1/boards/%s/top?start=%d&limit=%d", base, board, start, rankcache.MaxTop)
		got, err := fetchPage(ctx, client, url)
		if err != nil {
			return rows, err
		}
		if err := samePage(got, want); err != nil {
			return rows, err
		}
		if rows += len(want.Entries); len(want.Entries) < rankcache.MaxTop {
			return rows, nil
		}
	}
}

// waitLevel waits until Redis and the served board have counted seq orders.
func waitLevel(ctx context.Context, client *http.Client, base string, board rankcache.BoardID, redis *origin.Origin, seq uint64) error {
	for {
		want, err := redis.Page(ctx, board, 0, 1, rankcache.Descending)
		if err != nil {
			return err
		}
		got, err := fetchPage(ctx, client, fmt.Sprintf("%s/v1/boards/%s/top?limit=1", base, board))
		if err != nil {
			return err
		}
		if want.Seq == seq && got.Seq == seq {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("of %d orders Redis has counted %d, the local board %d: %w", seq, want.Seq, got.Seq, ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func samePage(got *demoPage, want rankcache.Page) error {
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
