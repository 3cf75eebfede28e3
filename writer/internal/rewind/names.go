package rewind

import (
	"maps"
	"slices"
)

// servers are the positions of the masters by their eras, as the name of a master, and with it its hash, is another one
// when its lowest slot has moved. Then it has what it had.
type servers struct {
	names   map[Master]Era
	of      map[Era]map[int32]Position
	healed  map[Era]map[int32]bool // also if the hash is gone since
	damaged map[Era]bool           // the mark was there
	renamed map[Era]string         // life of the hash under another name, in which not all may be written yet
}

// published reports whether what was committed of a partition is published for certain, also what was applied again: on
// all masters the last rewind has ended.
func (s *servers) published(partition int32) bool {
	for _, era := range s.names {
		if !s.healed[era][partition] {
			return false
		}
	}
	return true
}

// take returns hashes with the positions of those that had other names, and knows all from then on. Of one that
// has got another's hash with a slot the lower position counts. The mark of a damaged one has gone with the slot, too.
func (s *servers) take(eras map[Master]Era, hashes map[Master]Hash) map[Master]Hash {
	all, of, healed := maps.Clone(hashes), make(map[Era]map[int32]Position, len(eras)), make(map[Era]map[int32]bool, len(eras))
	damaged, renamed := make(map[Era]bool), make(map[Era]string)
	for master, era := range eras {
		h := hashes[master]
		if had, known := s.of[era]; known && (s.names[master] != era || s.unwritten(era, &h)) {
			renamed[era] = h.Life
			h.Of, h.Renamed, h.WasDamaged = maps.Clone(h.Of), true, s.damaged[era]
			if h.Of == nil {
				h.Of = make(map[int32]Position)
			}
			for id, p := range had {
				if there, ok := h.Of[id]; !ok || there.Topic == p.Topic && p.Next < there.Next {
					h.Of[id] = p
				}
			}
			all[master] = h
		}
		damaged[era] = h.Damaged || h.WasDamaged
		if of[era] = maps.Clone(h.Of); h.Of == nil {
			of[era] = make(map[int32]Position)
		}
		if healed[era] = s.healed[era]; healed[era] == nil {
			healed[era] = make(map[int32]bool)
		}
		for id, p := range h.Of {
			healed[era][id] = healed[era][id] || p.Healed == era
		}
	}
	s.names, s.of, s.healed, s.damaged, s.renamed = eras, of, healed, damaged, renamed
	return all
}

// unwritten reports whether a hash is read again before all positions of its master were written under its new name.
func (s *servers) unwritten(era Era, h *Hash) bool {
	if h.Life == "" || h.Life != s.renamed[era] {
		return false
	}
	for id := range s.of[era] {
		if _, there := h.Of[id]; !there {
			return true
		}
	}
	return s.damaged[era] && !h.Damaged
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
		s.healed[w.Era][w.Partition] = true
	}
	s.of[w.Era][w.Partition] = p
}

// sameServers reports whether masters have the same histories, whatever their names.
func sameServers(x, y map[Master]Era) bool {
	return slices.Equal(slices.Sorted(maps.Values(x)), slices.Sorted(maps.Values(y)))
}
