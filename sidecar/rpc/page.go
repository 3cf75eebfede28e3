package rpc

import (
	"context"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"rankcache"
	v1 "rankcache/proto/rankcache/v1"
	"rankcache/sidecar/encode"
	"rankcache/sidecar/live"
)

// pageMaker makes the messages of pages.
type pageMaker struct{ *Server }

// pageOf returns the page with the rows of a.
func (s pageMaker) pageOf(ctx context.Context, f *found, start int, a *rankcache.Answer) *v1.Page {
	m := head(&f.Key, a.Source, a.Stamp, a.Shards)
	m.Incomplete = a.Incomplete
	m.Start, m.Limit = int64(start), int32(f.Limit)
	j := s.join(f.Profiles, a.Entries)
	m.ProfilesMissing = int32(j.Missing)
	rows := s.rowsOf(ctx, f, a)
	m.Rows = rows.rows(a.Entries, start, a.Ahead, a.Members, a.Data, &j)
	rows.tell(m)
	return m
}

// join returns the profiles of entries, if they are asked for.
func (s pageMaker) join(profiles bool, entries []rankcache.Entry) encode.Joined {
	if !profiles {
		return encode.Joined{}
	}
	return encode.Join(context.Background(), s.reader.Profiles(), entries)
}

// head returns a page without rows; shards are the seqs of those of a split board.
func head(k *live.Key, source rankcache.Source, s rankcache.Stamp, shards []uint64) *v1.Page {
	m := &v1.Page{Board: string(k.Board), Shards: shards, Source: source.String(), Seq: s.Seq, Run: s.Run, Total: int64(s.Members),
		PublishedAt: timestamppb.New(s.At), Order: v1.Direction_DIRECTION_DESCENDING, Class: k.Class.Name}
	if s.Run != 0 {
		m.State = s.State.String()
	}
	if k.Order == rankcache.LowestFirst {
		m.Order = v1.Direction_DIRECTION_ASCENDING
	}
	if k.Class.Name != "" {
		m.Locked = k.Class.State.Locked(s.Life).String()
	}
	if p := k.Class.Period; p.Tag != "" {
		m.Period = &v1.Period{Tag: p.Tag, Start: timestamppb.New(p.Start), End: timestamppb.New(p.End), State: k.Class.State.String()}
	}
	return m
}

// profileText returns a profile as a string of protobuf, which is UTF-8.
func profileText(profile []byte) *string {
	if profile == nil || string(profile) == "null" {
		return nil
	}
	text := strings.ToValidUTF8(string(profile), "\uFFFD")
	return &text
}

// ageMs returns how long ago a copy was known to be current.
func ageMs(currentAt time.Time) int64 { return max(0, time.Since(currentAt).Milliseconds()) }
