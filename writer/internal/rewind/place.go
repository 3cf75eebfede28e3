package rewind

import (
	"maps"
	"slices"
)

// place is from where a partition is read.
type place struct {
	offset    int64
	published int64 // what came of everything before is published
	alerts    []Action
}

// find returns where a partition is read: the least of the masters'. All before is published.
func find(id int32, log *Log, hashes map[Master]Hash, eras map[Master]Era) place {
	at := place{offset: log.End, published: log.Committed}
	if log.Committed > log.End {
		at.published = 0
	}
	for _, master := range slices.Sorted(maps.Keys(hashes)) {
		next, damaged, other := has(id, log, hashes[master], eras[master])
		if damaged {
			at.alerts = append(at.alerts, Alert{Damaged, master, id, log.End - max(next, log.Start)})
		}
		if other {
			at.published = 0 // it is of the other topic
		}
		at.offset = min(at.offset, next)
	}
	if lost := log.Start - at.offset; lost > 0 {
		at.alerts = append(at.alerts, Alert{Kind: Lost, Partition: id, Commands: lost})
		at.offset = log.Start
	}
	return at
}

// has returns from where on a master may lack commands of a partition. A damaged one does not tell,
// or is so far behind that records of order ids may be forgotten. What is not committed may never have been read.
func has(id int32, log *Log, of Hash, era Era) (next int64, damaged, otherTopic bool) {
	back := max(min(log.LifeBack, log.Committed), log.Start)
	p, ok := of.Of[id]
	switch {
	case !ok: // a partition that is new, if nobody has noted that it had positions
		return back, log.Noted, false
	case p.Topic != log.Topic:
		return back, true, true
	case p.Next > log.End:
		return back, true, false
	case p.Next < log.HalfLifeBack && p.Healed != era:
		return min(p.Next, back), true, false
	}
	return p.Next, false, false
}
