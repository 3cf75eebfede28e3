package encode

import "rankcache"

// AppendRow appends one row as pages of its board have it. profiles is whether pages have
// profiles; a nil profile is null. A nil trend is none.
func AppendRow(dst []byte, rank int, e *rankcache.Entry, data *rankcache.Data, form rankcache.ScoreForm, trend *Trend, profiles bool, profile []byte) []byte {
	s := Show{Form: form, Trend: trend}
	dst = s.appendPlace(append(dst, '{'), rankcache.Standing{Member: e.Member, Score: e.Score, Rank: rank}, rankcache.Ahead{}, 0, data)
	if profiles {
		j := Joined{Profiles: [][]byte{profile}}
		dst = AppendProfile(dst, &j, 0)
	}
	return append(dst, '}')
}

// AppendFrame appends a page without its rows, in two parts: what stands before them and what
// stands behind them. missing is how many profiles may still come, -1 if pages have none.
func AppendFrame(head, tail []byte, q *rankcache.Query, a *rankcache.Answer, missing int) ([]byte, []byte) {
	frame := *a
	frame.Entries = nil
	j := Joined{Missing: missing}
	if missing >= 0 {
		j.Profiles = [][]byte{}
	}
	from := len(head)
	head = AppendPage(head, q, &frame, &Show{}, &j)
	end := from + indexRows(head[from:])
	return head[:end], append(tail, head[end:]...)
}

// indexRows returns where the rows of a page without any begin.
func indexRows(page []byte) int {
	const empty = `"entries":[`
	for i := len(page) - len(empty); ; i-- { // a board's id has no quotes
		if string(page[i:i+len(empty)]) == empty {
			return i + len(empty)
		}
	}
}
