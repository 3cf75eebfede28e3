package rankcache

import (
	"cmp"
	"math"
	"slices"
)

// Place is one member of a list that is sorted by rank.
type Place struct {
	At    int // its index among the members of the list
	Place int // 1-based within the list; 0: it is not on the board
}

// Keys of members without a rank, behind all ranks.
const (
	keyTrimmed = math.MaxUint32 - 1
	keyAbsent  = math.MaxUint32
)

// Places returns an answer's members best first, each once, with places among each other, shared by equal scores but in
// [Ordinal] mode. Those [Standing.Trimmed] follow by raw score, then those not on the board.
func (a *Answer) Places(mode RankMode) []Place {
	keys := make([]uint64, len(a.Own))
	for i := range a.Own {
		key := uint64(a.Own[i].Rank)
		switch own := &a.Own[i]; {
		case own.Trimmed:
			key = keyTrimmed
		case !own.Found():
			key = keyAbsent
		}
		keys[i] = key<<32 | uint64(i)
	}
	slices.Sort(keys)
	places, ranked, trimmed := make([]Place, 0, len(keys)), 0, 0
	var unranked map[string]bool
	for i, key := range keys {
		at := int(uint32(key))
		switch {
		case key>>32 < keyTrimmed:
			if i > 0 && key>>32 == keys[i-1]>>32 {
				continue
			}
			ranked++
		case unranked[a.Own[at].Member]:
			continue
		default:
			if unranked == nil {
				unranked = make(map[string]bool)
			}
			if unranked[a.Own[at].Member] = true; key>>32 == keyTrimmed {
				trimmed++
			}
		}
		places = append(places, Place{At: at})
	}
	a.sortTrimmed(places[ranked : ranked+trimmed])
	var ahead Ahead
	for i := range places[:ranked+trimmed] {
		if i > 0 {
			ahead = ahead.Next(i, a.Own[places[i].At].Score, a.Own[places[i-1].At].Score, a.Form)
		}
		places[i].Place = ahead.Rank(mode, i)
	}
	return places
}

func (a *Answer) sortTrimmed(places []Place) {
	slices.SortStableFunc(places, func(x, y Place) int { return cmp.Compare(a.Own[y.At].Score, a.Own[x.At].Score) })
}
