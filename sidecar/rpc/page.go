package rpc

import (
	"context"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"rankcache"
	v1 "rankcache/proto/rankcache/v1"
	"rankcache/sidecar/internal/apijson"
	"rankcache/sidecar/internal/live"
)

// maxPages is how many encoded pages are kept for one top.
const maxPages = 16

// pageKey tells the pages of one top apart.
type pageKey struct {
	live.Key
	start  int
	source rankcache.Source
	form   rankcache.ScoreForm
}

// page is a page in both formats, each encoded when it is needed first.
type page struct {
	message *v1.Page
	fresh   func() bool // nil: no profiles

	mu   sync.Mutex
	data [2][]byte
}

func (p *page) encoded(json bool) ([]byte, error) {
	i := 0
	if json {
		i = 1
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.data[i] == nil {
		data, err := appendMessage([]byte{}, p.message, json)
		if err != nil {
			return nil, err
		}
		p.data[i] = data
	}
	return p.data[i], nil
}

// pages is what the listener keeps for one top.
type pages struct {
	mu   sync.Mutex
	kept map[pageKey]*page
}

func newPages() any { return &pages{kept: make(map[pageKey]*page)} }

// pageMaker makes the messages of pages, and keeps them as long as their top is the newest.
type pageMaker struct{ *Server }

// pageOf returns the page with the rows of a, encoded at most once for all callers.
func (s pageMaker) pageOf(f *found, start int, a *rankcache.Answer) *page {
	if a.Kept == nil {
		return s.newPage(f, start, a)
	}
	key := pageKey{f.Key, start, a.Source, a.Form}
	key.Room = ""
	all := a.Kept.By(s.Server, newPages).(*pages)
	all.mu.Lock()
	p := all.kept[key]
	all.mu.Unlock()
	if p != nil && (p.fresh == nil || p.fresh()) {
		return p
	}
	p = s.newPage(f, start, a)
	all.mu.Lock()
	defer all.mu.Unlock()
	if len(all.kept) >= maxPages {
		clear(all.kept)
	}
	all.kept[key] = p
	return p
}

func (s pageMaker) newPage(f *found, start int, a *rankcache.Answer) *page {
	m := head(&f.Key, a.Source, a.Stamp)
	m.Start, m.Limit = int64(start), int32(f.Limit)
	j := s.join(f.Profiles, a.Entries)
	m.ProfilesMissing = int32(j.Missing)
	m.Rows = rowsOf(a.Entries, start, a.Form, &j)
	return &page{message: m, fresh: j.Fresh}
}

// join returns the profiles of entries, if they are asked for.
func (s pageMaker) join(profiles bool, entries []rankcache.Entry) apijson.Joined {
	if !profiles {
		return apijson.Joined{}
	}
	return apijson.Join(context.Background(), s.reader.Profiles(), entries)
}

// head returns a page without rows.
func head(k *live.Key, source rankcache.Source, s rankcache.Stamp) *v1.Page {
	m := &v1.Page{Board: string(k.Board), Source: source.String(), Seq: s.Seq, Run: s.Run, Total: int64(s.Members),
		PublishedAt: timestamppb.New(s.At), Order: v1.Direction_DIRECTION_DESCENDING, Class: k.Class.Name}
	if s.Run != 0 {
		m.State = s.State.String()
	}
	if k.Order == rankcache.Ascending {
		m.Order = v1.Direction_DIRECTION_ASCENDING
	}
	if k.Class.Name != "" {
		m.Locked = k.Class.Locked(s.Life).String()
	}
	if p := k.Class.Period; p.Tag != "" {
		m.Period = &v1.Period{Tag: p.Tag, Start: timestamppb.New(p.Start), End: timestamppb.New(p.End), State: p.State}
	}
	return m
}

func rowsOf(entries []rankcache.Entry, start int, form rankcache.ScoreForm, j *apijson.Joined) []*v1.Row {
	rows := make([]*v1.Row, len(entries))
	for i := range entries {
		rows[i] = &v1.Row{Rank: proto.Int64(int64(start + i + 1)), Member: entries[i].Member, Score: proto.Float64(form.Shown(entries[i].Score))}
		if j.Profiles != nil {
			rows[i].Profile = profileText(j.Profiles[i])
		}
	}
	return rows
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
