package rpc

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"rankcache"
	v1 "rankcache/proto/rankcache/v1"
	"rankcache/sidecar/encode"
	"rankcache/sidecar/live"
)

type pageMaker struct{ *Server }

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

// listOf returns the members of a request, with me among them.
func listOf(r *v1.BatchStandingsRequest) ([]string, *encode.Problem) {
	switch {
	case r.Sort < 0 || r.Sort > v1.Sort_SORT_RANK:
		return nil, encode.BadArgument("sort", "want SORT_RANK, or nothing")
	case r.Sort != v1.Sort_SORT_RANK && (r.Limit != 0 || r.Me != ""):
		return nil, encode.BadArgument("sort", "limit and me are of a list by rank: want SORT_RANK, too")
	case r.Limit < 0 || r.Limit > rankcache.MaxTop:
		return nil, encode.BadArgument("limit", fmt.Sprintf("is %d: want 1 to %d, or 0 for all", r.Limit, rankcache.MaxTop))
	case r.Me == "" || slices.Contains(r.Members, r.Me):
		return r.Members, nil
	}
	return append(slices.Clone(r.Members), r.Me), nil
}

// shownOf returns what rows show: members that are listed by their ranks have exact ones.
func shownOf(r *v1.BatchStandingsRequest) *v1.Show {
	mode := modeOf[r.Show.GetRankMode()]
	if r.Sort != v1.Sort_SORT_RANK || mode != rankcache.Ordinal && mode != rankcache.Approx {
		return r.Show
	}
	return &v1.Show{RankMode: v1.RankMode_RANK_MODE_ORDINAL, Percentile: r.Show.GetPercentile(), Trend: r.Show.GetTrend()}
}

// places returns the members best first, as many as are wanted, and me.
func (s services) places(ctx context.Context, f *found, a *rankcache.Answer, r *v1.BatchStandingsRequest) *v1.BatchStandingsResponse {
	sorted := a.Places(f.mode)
	me := slices.IndexFunc(sorted, func(p rankcache.Place) bool { return a.Own[p.At].Member == r.Me })
	shown := sorted
	if r.Limit > 0 {
		shown = sorted[:min(int(r.Limit), len(sorted))]
	}
	list := slices.Clone(shown)
	if r.Me != "" && sorted[me].Place > 0 {
		list = append(list, sorted[me])
	}
	of := *a
	of.Own = make([]rankcache.Own, len(list))
	for i, p := range list {
		of.Own[i] = a.Own[p.At]
	}
	res := s.standings(ctx, f, &of)
	for i, p := range list {
		if p.Place > 0 {
			res.Standings[i].Place = proto.Int64(int64(p.Place))
		}
	}
	if len(list) > len(shown) {
		res.Me = res.Standings[len(shown)]
	}
	res.Standings = res.Standings[:len(shown)]
	return res
}
