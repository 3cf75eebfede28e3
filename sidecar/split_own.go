package sidecar

import (
	"context"
	"slices"

	"rankcache"
	"rankcache/class"
)

// readPlaces asks each shard where the others' members would stand in it, and unasked ones for their states.
func (s *splitRead) readPlaces(ctx context.Context) error {
	return s.ask(ctx, &s.places, func(shard int, ask *rankcache.Query) bool {
		ask.Uncounted = true
		for i, h := range s.homes {
			if own := s.member(i); h.shard != shard && own.Rank > 0 {
				ask.Members, ask.Scores = append(ask.Members, own.Member), append(ask.Scores, own.Score)
			}
		}
		if len(ask.Members) == 0 && !s.known[shard] {
			ask.Limit = 1
		}
		return len(ask.Members) > 0 || ask.Limit > 0
	})
}

// member returns a member of the query as its shard has answered it.
func (s *splitRead) member(i int) *rankcache.Own {
	h := s.homes[i]
	return &s.parts[h.shard].Own[h.at]
}

// addOwn adds the members, each with the other shards' rows before it; err is why these could not be read.
func (s *splitRead) addOwn(a *rankcache.Answer, err error) {
	var next [class.MaxShards]int // of the answers about places
	for i, h := range s.homes {
		to := &a.Own[i]
		name, stamp := to.Member, to.Stamp
		*to = *s.member(i)
		to.Member, to.Stamp = name, stamp
		to.Source = max(to.Source, a.Source)
		if to.Err != nil || to.Rank == 0 {
			continue
		}
		if to.Err = err; err != nil {
			continue
		}
		rows := slices.Clone(to.Neighbours)
		for k, shard := range s.places.shards {
			if shard == h.shard {
				continue
			}
			place := &s.places.as[k].Own[next[shard]]
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
