package sidecar

import (
	"context"
	"slices"

	"rankcache"
	"rankcache/class"
)

// places are the answers of shards about members of other shards: where they would stand.
type places struct {
	shards []int // that were asked
	as     []rankcache.Answer
	err    error
}

// readPlaces asks each shard where the members of the others would stand in it. Shards that have not been
// asked for anything yet are asked for their states, too.
func (s *splitRead) readPlaces(ctx context.Context) (p places, err error) {
	found, err := s.ask(ctx, func(shard int, ask *rankcache.Query) bool {
		ask.Uncounted = true
		for own, home := range s.members() {
			if home != shard && own.Rank > 0 {
				ask.Members, ask.Scores = append(ask.Members, own.Member), append(ask.Scores, own.Score)
			}
		}
		if len(ask.Members) == 0 && !s.parts[shard].known {
			ask.Limit = 1
		}
		return len(ask.Members) > 0 || ask.Limit > 0
	})
	switch {
	case err != nil && s.q.Limit == 0 && s.q.Range == nil:
		return p, err
	case err != nil: // the rows are there
		return places{err: err}, nil
	}
	p = places{shards: slices.Clone(s.asked), as: slices.Clone(found)}
	s.keep(found)
	return p, nil
}

// members yields each member of the query, as its shard has answered it, and which shard that is. It may be
// changed.
func (s *splitRead) members() func(func(*rankcache.Own, int) bool) {
	return func(yield func(*rankcache.Own, int) bool) {
		var next [class.MaxShards]int
		for _, m := range s.q.Members {
			home := class.ShardOf(m, len(s.parts))
			own := &s.parts[home].Own[next[home]]
			if next[home]++; !yield(own, home) {
				return
			}
		}
	}
}

// addOwn adds the members: each with the rows of the other shards that stand before it.
func (s *splitRead) addOwn(a *rankcache.Answer, p places) {
	var next [class.MaxShards]int // of the answers about places
	i := 0
	for own, home := range s.members() {
		to := &a.Own[i]
		i++
		name, stamp := to.Member, to.Stamp
		*to = *own
		to.Member, to.Stamp = name, stamp
		to.Source = max(to.Source, a.Source)
		if to.Err != nil || to.Rank == 0 {
			continue
		}
		if to.Err = p.err; to.Err != nil {
			continue
		}
		rows := slices.Clone(to.Neighbours)
		for k, shard := range p.shards {
			if shard == home {
				continue
			}
			place := &p.as[k].Own[next[shard]]
			next[shard]++
			s.addPlace(to, place)
			rows = append(rows, place.Neighbours...)
		}
		if s.q.Around > 0 {
			s.surround(to, rows)
		}
	}
}

// addPlace adds what stands before a member in another shard.
func (s *splitRead) addPlace(to, place *rankcache.Own) {
	if place.Err != nil {
		to.Err = place.Err
		return
	}
	to.Rank += place.Rank - 1
	to.Ahead.Members += place.Ahead.Members
	if s.q.Ranked() {
		to.Ahead.Scores = -1
	}
	if nearer := (place.Better < to.Better) == (s.q.Order == rankcache.Descending); place.HasBetter && (!to.HasBetter || nearer) {
		to.Better, to.HasBetter = place.Better, true
	}
}

// surround sets the neighbours: the nearest of those of all shards.
func (s *splitRead) surround(to *rankcache.Own, rows []rankcache.Entry) {
	slices.SortFunc(rows, func(x, y rankcache.Entry) int {
		switch {
		case before(&x, &y, s.q.Order):
			return -1
		case x.Member == y.Member:
			return 0
		}
		return 1
	})
	at := slices.IndexFunc(rows, func(e rankcache.Entry) bool { return e.Member == to.Member })
	n := s.q.Neighbours()
	from := max(at-n, 0)
	to.First, to.Neighbours = max(to.Rank-1-(at-from), 0), rows[from:min(at+n+1, len(rows))]
}
