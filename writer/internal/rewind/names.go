package rewind

import (
	"maps"
	"math"
	"slices"
)

// servers are the masters by their eras: a master, and its hash, is called otherwise when its lowest slot has moved.
// Then it has what its former hash tells, wherever that is: else its keys were deleted before.
type servers map[Era]*server

// server is what is known of one master.
type server struct {
	name    Master
	life    string // of the hash under that name
	of      map[int32]Position
	told    map[int32]Position // everything before is published in its era and life for certain
	damaged bool               // the mark was there
	renamed bool               // not all may be written under its name yet
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

// told returns up to where a partition is published for certain, also what was applied again: on all masters.
func (s servers) told(partition int32, topic string) int64 {
	next := int64(math.MaxInt64)
	for _, of := range s {
		next = min(next, of.toldOf(partition, topic))
	}
	return next
}

func (s *server) toldOf(partition int32, topic string) int64 {
	if of := s.told[partition]; of.Topic == topic {
		return of.Next
	}
	return -1
}

// tell notes up to where a partition is published in the server's era.
func (s *server) tell(partition int32, topic string, next int64) {
	s.told[partition] = Position{Topic: topic, Next: max(next, s.toldOf(partition, topic))}
}

// take returns hashes with positions of former names, and the masters as known from then on.
func (s servers) take(eras map[Master]Era, hashes map[Master]Hash, lives map[Master]string) (servers, map[Master]Hash) {
	all, known := maps.Clone(hashes), make(servers, len(eras))
	for master, era := range eras {
		h, had := hashes[master], s[era]
		renamed := had != nil && had.isElsewhere(master, &h, lives)
		if renamed {
			h = had.with(h)
			all[master] = h
		}
		known[era] = &server{master, h.Life, maps.Clone(h.Of), make(map[int32]Position), h.Damaged || h.WasDamaged, renamed}
		if renamed || had != nil && had.life == h.Life { // else its keys were deleted: what is applied anew is not published
			maps.Copy(known[era].told, had.told)
		}
		known[era].heal(era)
	}
	return known, all
}

// isElsewhere reports whether a master has more than its hash tells: under a former name, and not lost.
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

// with returns a hash with what its master had. After a slot's move the lower position counts, and no mark.
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

// heal notes what is published in an era, by the positions.
func (s *server) heal(era Era) {
	for id, p := range s.of {
		if p.Healed == era {
			s.tell(id, p.Topic, p.Next)
		}
	}
}

func (s servers) wrote(w *WritePosition) {
	of := s[w.Era]
	if of == nil || of.of[w.Partition].Topic == w.Topic && of.of[w.Partition].Next > w.Next && !w.Reset {
		return
	}
	p := Position{w.Topic, w.Next, of.of[w.Partition].Healed}
	if w.Heal {
		p.Healed = w.Era
	}
	if p.Healed == w.Era {
		of.tell(w.Partition, w.Topic, w.Next)
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
