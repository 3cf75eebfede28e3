package rewind

import (
	"maps"
	"slices"
)

// servers are the positions of the masters by their eras, as the name of a master, and with it its hash, is another one
// when its lowest slot has moved. Then it has what it had.
type servers struct {
	names map[Master]Era
	of    map[Era]map[int32]Position
}

// take returns hashes with the positions of those that had other names, and knows all from then on. Of one that
// has got another's hash with a slot the lower position counts.
func (s *servers) take(eras map[Master]Era, hashes map[Master]Hash) map[Master]Hash {
	all, of := maps.Clone(hashes), make(map[Era]map[int32]Position, len(eras))
	for master, era := range eras {
		h := hashes[master]
		if had, known := s.of[era]; known && s.names[master] != era {
			h.Of, h.Renamed = maps.Clone(h.Of), true
			if h.Of == nil {
				h.Of = make(map[int32]Position)
			}
			for id, p := range had {
				if there, ok := h.Of[id]; !ok || there.Topic == p.Topic && p.Next < there.Next {
					h.Of[id] = p
				}
			}
			h.New = h.New && len(had) == 0
			all[master] = h
		}
		if of[era] = maps.Clone(h.Of); h.Of == nil {
			of[era] = make(map[int32]Position)
		}
	}
	s.names, s.of = eras, of
	return all
}

// wrote notes a position that was written.
func (s *servers) wrote(w *WritePosition) {
	p := s.of[w.Era][w.Partition]
	if s.of[w.Era] == nil || p.Topic == w.Topic && p.Next > w.Next && !w.Reset {
		return
	}
	p.Topic, p.Next = w.Topic, w.Next
	if w.Heal {
		p.Healed = w.Era
	}
	s.of[w.Era][w.Partition] = p
}

// sameServers reports whether masters have the same histories, whatever their names.
func sameServers(x, y map[Master]Era) bool {
	return slices.Equal(slices.Sorted(maps.Values(x)), slices.Sorted(maps.Values(y)))
}
