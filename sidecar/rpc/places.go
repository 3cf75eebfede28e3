package rpc

import (
	"context"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"rankcache"
	v1 "rankcache/proto/rankcache/v1"
	"rankcache/sidecar/encode"
)

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
