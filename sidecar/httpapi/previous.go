package httpapi

import (
	"context"
	"strings"
	"sync"
	"time"

	"rankcache"
	"rankcache/sidecar"
	"rankcache/sidecar/encode"
)

// maxReuse is how long profiles are copied from page to page before they are looked up
// in the profile cache again, which counts them as used.
const maxReuse = time.Second

// previousPages has for each board the profiles of the page that was encoded last, which the next
// top's page reuses. A board that is written to has a hundred tops a second, with nearly always
// the same members. Looking up and copying 50 profiles, which are in no processor's
// cache, took 100 of the 125 µs in which such a page was encoded (in a server under
// load), and with one core every request waited for it.
type previousPages struct{ boards sync.Map } // *previousPage by board

// previousPage has the profiles of one page.
type previousPage struct {
	entries  []rankcache.Entry
	profiles [][]byte // of the entries, as slices of the encoded page
	fresh    func() bool
	asked    time.Time // when the profile cache was
}

// joinRows returns the profiles of a page's rows: those of the previous page, if it had
// the same members, otherwise those of the profile cache.
func (p *previousPages) joinRows(board rankcache.BoardID, profiles sidecar.Profiles, entries []rankcache.Entry) encode.Joined {
	if v, ok := p.boards.Load(board); ok {
		if old := v.(*previousPage); time.Since(old.asked) < maxReuse {
			if j, ok := old.join(entries); ok {
				if len(entries) >= len(old.entries) { // a top 3 does not replace the profiles of the top 50
					j.Offsets = make([]int, len(entries))
				}
				return j
			}
		}
	}
	j := encode.Join(context.Background(), profiles, entries)
	j.Offsets = make([]int, len(entries))
	return j
}

// drop forgets pages that are too old to be reused.
func (p *previousPages) drop() {
	p.boards.Range(func(board, v any) bool {
		if time.Since(v.(*previousPage).asked) >= maxReuse {
			p.boards.Delete(board)
		}
		return true
	})
}

// join returns false if one of the rows is not in the page, or has another profile now.
func (p *previousPage) join(entries []rankcache.Entry) (encode.Joined, bool) {
	j := encode.Joined{Profiles: make([][]byte, len(entries)), Fresh: p.fresh, Asked: p.asked}
	for i := range entries {
		at := p.find(entries[i].Member, i)
		if at < 0 {
			return encode.Joined{}, false
		}
		j.Profiles[i] = p.profiles[at]
	}
	return j, p.fresh()
}

// find returns the row of member, -1 if it has none. It searches from row i outwards:
// from one top to the next few members move far.
func (p *previousPage) find(member string, i int) int {
	for d := range max(i+1, len(p.entries)-i) {
		if up := i - d; up >= 0 && up < len(p.entries) && p.entries[up].Member == member {
			return up
		}
		if down := i + d; down < len(p.entries) && p.entries[down].Member == member {
			return down
		}
	}
	return -1
}

// keep leaves the profiles of an encoded page to the next one, unless some are still missing.
func (p *previousPages) keep(board rankcache.BoardID, entries []rankcache.Entry, j *encode.Joined, b *body) {
	if j.Offsets == nil || j.Missing > 0 || j.Fresh == nil {
		return
	}
	page := &previousPage{entries: entries, profiles: j.Profiles, fresh: j.Fresh, asked: j.Asked}
	for i, profile := range page.profiles {
		if profile != nil { // a slice of the new page, so that the one before can be freed
			from, to := j.Offsets[i], j.Offsets[i]+len(profile)
			page.profiles[i] = b.data[from:to:to]
		}
	}
	p.boards.Store(rankcache.BoardID(strings.Clone(string(board))), page)
}
