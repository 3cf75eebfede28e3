package rewind

import (
	"maps"
	"slices"
)

// servers are the masters by their eras, as the name of a master, and with it its hash, is another one when its lowest slot
// has moved. Then it has what it had, if its former hash is still there, wherever it is: else its keys were deleted before.
type servers map[Era]*server

// server is what is known of one master.
type server struct {
	name    Master
	life    string // of the hash under that name
	of      map[int32]Position
	healed  map[int32]bool // also if the hash is gone since
	damaged bool           // the mark was there
	renamed bool           // not all may be written under its name yet
}

// former returns the names that masters had before. Their hashes are read, too.
func (s servers) former(eras map[Master]Era) (names []Master) {
	for name, era := range eras {
		if had := s[era]; had != nil && had.name != name {
			names = append(names, had.name)
		}
	}
	slices.Sort(names)
	return names
}

// published reports whether what was committed of a partition is published for certain, also what was applied again: on
// all masters the last rewind has ended.
func (s servers) published(partition int32) bool {
	for _, of := range s {
		if !of.healed[partition] {
			return false
		}
	}
	return true
}

// take returns hashes with the positions of those that had other names, and the masters as they are known from then on.
// Lives are those of the former hashes.
func (s servers) take(eras map[Master]Era, hashes map[Master]Hash, lives map[Master]string) (servers, map[Master]Hash) {
	all, known := maps.Clone(hashes), make(servers, len(eras))
	for master, era := range eras {
		h, had := hashes[master], s[era]
		renamed := had != nil && had.isElsewhere(master, &h, lives)
		if renamed {
			h = had.with(h)
			all[master] = h
		}
		known[era] = &server{master, h.Life, maps.Clone(h.Of), make(map[int32]bool), h.Damaged || h.WasDamaged, renamed}
		known[era].heal(had, era)
	}
	return known, all
}

// isElsewhere reports whether a master has more than its hash tells: it had another name, and what it had there is not lost and
// not yet written here.
func (s *server) isElsewhere(name Master, h *Hash, lives map[Master]string) bool {
	if s.name != name {
		return s.life != "" && lives[s.name] == s.life
	}
	if !s.renamed || h.Life != s.life {
		return false
	}
	for id := range s.of {
		if _, there := h.Of[id]; !there {
			return true
		}
	}
	return s.damaged && !h.Damaged
}

// with returns a hash with what its master had. Of one that has got another's hash with a slot the lower position counts. The mark
// of a damaged one has gone with the slot, too.
func (s *server) with(h Hash) Hash {
	h.Renamed, h.WasDamaged = true, s.damaged
	if h.Of = maps.Clone(h.Of); h.Of == nil {
		h.Of = make(map[int32]Position)
	}
	for id, p := range s.of {
		if there, ok := h.Of[id]; !ok || there.Topic == p.Topic && p.Next < there.Next {
			h.Of[id] = p
		}
	}
	return h
}

// heal notes what is healed in an era, by the positions or as it was known.
func (s *server) heal(had *server, era Era) {
	if had != nil {
		maps.Copy(s.healed, had.healed)
	}
	for id, p := range s.of {
		s.healed[id] = s.healed[id] || p.Healed == era
	}
}

// wrote notes a position that was written.
func (s servers) wrote(w *WritePosition) {
	of := s[w.Era]
	if of == nil || of.of[w.Partition].Topic == w.Topic && of.of[w.Partition].Next > w.Next && !w.Reset {
		return
	}
	p := Position{w.Topic, w.Next, of.of[w.Partition].Healed}
	if w.Heal {
		p.Healed, of.healed[w.Partition] = w.Era, true
	}
	if of.of == nil {
		of.of = make(map[int32]Position)
	}
	of.of[w.Partition] = p
}

// sameServers reports whether masters have the same histories, whatever their names.
func sameServers(x, y map[Master]Era) bool {
	return slices.Equal(slices.Sorted(maps.Values(x)), slices.Sorted(maps.Values(y)))
}
