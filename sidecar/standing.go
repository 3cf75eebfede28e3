package sidecar

import (
	"strconv"

	"rankcache"
)

// appendStanding appends what follows the head of an answer about one member.
func appendStanding(dst []byte, s *Standings, j *joined) []byte {
	row := &s.Rows[len(s.Rows)-1]
	dst = appendPlace(append(dst, ','), row.Rank, row.Member, row.Score)
	return append(appendMissing(appendProfile(dst, j, 0), j), '}')
}

// appendAround appends the answer about one member among its neighbours; the
// profile of row i is that of neighbour i.
func appendAround(dst []byte, q Query, a *Answer, rank int, j *joined) []byte {
	own := rank - 1 - a.Start
	dst = appendHead(dst, q, a.Source, a.Stamp)
	dst = appendPlace(append(dst, ','), rank, a.Entries[own].Member, a.Entries[own].Score)
	dst = appendProfile(dst, j, own)
	dst = appendRows(append(dst, `,"neighbours":`...), a.Page, j)
	return append(appendMissing(dst, j), '}')
}

// appendBatch appends what follows the head of an answer about several members, in the
// order asked for.
func appendBatch(dst []byte, s *Standings, j *joined) []byte {
	dst = append(dst, `,"members":[`...)
	for i := range s.Rows {
		if i > 0 {
			dst = append(dst, ',')
		}
		row := &s.Rows[i]
		dst = appendPlace(append(dst, '{'), row.Rank, row.Member, row.Score)
		dst = append(appendProfile(dst, j, i), '}')
	}
	return append(appendMissing(append(dst, ']'), j), '}')
}

// appendMe appends the caller's own standing behind a page that lost its closing
// brace. It says its own seq, because it may be newer than the page.
func appendMe(dst []byte, me rankcache.Standing, seq uint64, j *joined) []byte {
	dst = append(dst, `,"me":`...)
	if me.Rank == 0 {
		return append(dst, `null}`...)
	}
	dst = appendPlace(append(dst, '{'), me.Rank, me.Member, me.Score)
	dst = appendSeq(append(dst, `,"seq":`...), seq)
	return append(appendProfile(dst, j, 0), `}}`...)
}

// appendMeError says why a page lacks the caller's standing.
func appendMeError(dst []byte, code Code) []byte {
	dst = append(dst, `,"me":null,"me_error":"`...)
	return append(append(dst, code...), `"}`...)
}

// appendProfiles appends the answer about profiles alone.
func appendProfiles(dst []byte, members []string, j *joined) []byte {
	dst = append(dst, `{"profiles":[`...)
	for i, m := range members {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = rankcache.AppendString(append(dst, `{"member":`...), m)
		dst = append(appendProfile(dst, j, i), '}')
	}
	dst = append(dst, `],"profiles_missing":`...)
	return append(strconv.AppendInt(dst, int64(j.missing), 10), '}')
}
