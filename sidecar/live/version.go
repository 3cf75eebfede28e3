package live

import (
	"bytes"
	"slices"
	"strings"
	"sync"
	"time"

	"rankcache"
	"rankcache/sidecar/encode"
	"rankcache/wire"
)

// Row is a row of a page, shared by versions with the same one. It holds no memory of its board.
type Row struct {
	Member  string
	Score   float64 // as it is shown
	Data    string  // what the member has beside it; "": nothing
	Before  int     // the rank in the period before; 0: it was not on that board, -1: not known
	JSON    []byte  // the row's object
	profile int     // where in it the profile begins; 0: none was asked for
	since   uint64  // the version that brought it
}

// Profile returns the member's profile as JSON, "null" if there is none, nil if none was asked for.
func (r *Row) Profile() []byte {
	if r.profile == 0 {
		return nil
	}
	return r.JSON[r.profile : len(r.JSON)-1]
}

// version is a page at one moment. Its fields don't change, but for encodings.
type version struct {
	publisher *publisher
	n         uint64
	since     uint64 // no diff is sent from versions before this one
	Meta
	rows       []*Row
	length     int    // of all rows as JSON
	head, tail []byte // of the page, before and behind its rows
	form       rankcache.ScoreForm

	mu        sync.Mutex // taken last
	encodings []encoding
}

// Meta is what a page tells of itself, beside its rows.
type Meta struct {
	Key             *Key
	Source          rankcache.Source
	State           rankcache.State
	Shards          []uint64 // as in [rankcache.Answer]
	Members         int
	At              time.Time // of publication
	Life            rankcache.Life
	Incomplete      bool   // as in [rankcache.Answer]
	ProfilesMissing int    // how many profiles may still come
	Trend           string // the tag of the period whose ranks the rows have; "": there are none
}

// encoding is a version as a server-sent event, from a version that is known to the client.
type encoding struct {
	base uint64 // 0: the whole page
	data []byte
	page bool // is the page, whatever base is
}

// newVersion encodes what was read and is not in old, which may be nil.
func (p *publisher) newVersion(old *version, a *rankcache.Answer, j encode.Joined, trend *encode.Trend) *version {
	v := &version{publisher: p, n: 1, since: 1, rows: make([]*Row, len(a.Entries)), form: a.Form,
		Meta: Meta{Key: &p.key, Source: a.Source, State: a.State, Shards: a.Shards, Members: a.Members, At: a.At, Life: a.Life, Incomplete: a.Incomplete}}
	if old != nil {
		v.n, v.since = old.n+1, old.since
		if v.Source != old.Source || v.State.Run != old.State.Run || v.State.Seq < old.State.Seq || v.form != old.form {
			v.since = v.n
		}
	}
	if trend != nil {
		v.Trend = p.key.Before.Tag
	}
	missing := -1
	if p.key.Profiles {
		missing, v.ProfilesMissing = j.Missing, j.Missing
	}
	for i := range v.rows {
		var profile []byte
		if j.Profiles != nil {
			if profile = j.Profiles[i]; profile == nil {
				profile = []byte("null")
			}
		}
		v.setRow(old, i, &a.Entries[i], a.Data, trend, profile)
		v.length += len(v.rows[i].JSON) + 1
	}
	var room [256]byte
	head, tail := encode.AppendFrame(p.scratch[:0], room[:0], &rankcache.Query{Board: p.key.Board, Order: p.key.Order, Limit: p.key.Limit}, a, missing)
	v.head, v.tail, p.scratch = bytes.Clone(head), bytes.Clone(v.appendMore(tail)), head
	return v
}

// setRow sets the row i: that of old if it is the same.
func (v *version) setRow(old *version, i int, e *rankcache.Entry, data *rankcache.Data, trend *encode.Trend, profile []byte) {
	score, text, before := v.form.Shown(e.Score), data.Of(e.Member), -1
	if trend != nil {
		before = trend.Ranks[e.Member]
	}
	if old != nil && i < len(old.rows) && old.form == v.form {
		if r := old.rows[i]; r.Score == score && r.Data == text && r.Before == before && r.Member == e.Member && bytes.Equal(r.Profile(), profile) {
			v.rows[i] = r
			return
		}
	}
	scratch := encode.AppendRow(v.publisher.scratch[:0], i+1, e, data, v.form, trend, profile != nil, profile)
	r := &Row{Member: strings.Clone(e.Member), Score: score, Data: strings.Clone(text), Before: before, JSON: bytes.Clone(scratch), since: v.n}
	v.publisher.scratch = scratch
	if profile != nil {
		r.profile = len(r.JSON) - 1 - len(profile)
	}
	v.rows[i] = r
}

// appendMore appends what streams have beside GET …/top: the run, and the class if it names the board.
func (v *version) appendMore(tail []byte) []byte {
	tail = appendNumber(append(tail[:len(tail)-1], `,"run":`...), v.State.Run)
	if v.Trend != "" {
		tail = wire.AppendString(append(tail, `,"trend":`...), v.Trend)
	} else if v.publisher.key.Before.Board != "" {
		tail = append(tail, `,"trend":null`...)
	}
	if class := &v.publisher.key.Class; class.Name != "" {
		tail = append(tail, encode.ClassTail(class.Name, class.Period, class.State)...)
		return append(append(tail, class.State.Locked(v.Life).String()...), `"}`...)
	}
	return append(tail, '}')
}

// isOf reports whether v was made of the same publication or the same answer.
func (v *version) isOf(a *rankcache.Answer) bool {
	return v.At.Equal(a.At) && v.State == a.State && slices.Equal(v.Shards, a.Shards) && v.Source == a.Source && v.Members == a.Members && v.Life == a.Life && v.Incomplete == a.Incomplete && v.form == a.Form
}

// equal reports whether clients would see no difference, the time of the answer aside.
func (v *version) equal(old *version) bool {
	if v.since != old.since || v.State != old.State || !slices.Equal(v.Shards, old.Shards) || v.Members != old.Members || v.Life != old.Life || v.Incomplete != old.Incomplete || v.ProfilesMissing != old.ProfilesMissing || v.Trend != old.Trend || len(v.rows) != len(old.rows) {
		return false
	}
	for i := range v.rows {
		if v.rows[i] != old.rows[i] {
			return false
		}
	}
	return true
}

// diffable reports whether a client that has the version n may be sent a diff to this one.
func (v *version) diffable(n uint64) bool { return v.since <= n && n <= v.n && v.n-n < history }

// appendChanged appends the positions whose rows have changed since the version n.
func (v *version) appendChanged(at []int, n uint64) []int {
	for i, r := range v.rows {
		if r.since > n {
			at = append(at, i)
		}
	}
	return at
}
