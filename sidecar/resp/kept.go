package resp

import (
	"bytes"

	"rankcache"
)

// replyKey tells the replies of one top apart.
type replyKey struct {
	from, n int
	scores  bool
	proto   version
}

// kept holds the encoded replies of one top, as long as it is the newest of its board.
type kept struct {
	rankcache.Few[replyKey, []byte]
}

func newKept() any { return new(kept) }

// memo holds a connection's last reads by their bytes: parsing takes longer than answering. It has no answers.
type memo struct {
	entries [4]memoEntry
	next    int
}

type memoEntry struct {
	raw  []byte
	form form // in raw's memory
}

const maxMemo = 512 // the length of the longest command that is kept, in bytes

// find returns the read that p begins with.
func (m *memo) find(p []byte) *memoEntry {
	for i := range m.entries {
		if e := &m.entries[i]; len(e.raw) > 0 && bytes.HasPrefix(p, e.raw) {
			return e
		}
	}
	return nil
}

// add keeps a command that is a read by rank.
func (m *memo) add(raw []byte, q *form) {
	if q.byScore || q.members != nil || len(raw) > maxMemo {
		return
	}
	e := &m.entries[m.next]
	m.next = (m.next + 1) % len(m.entries)
	e.raw = append(e.raw[:0], raw...)
	e.form = *q
	e.form.key = within(e.raw, q.key)
	e.form.board = rankcache.BoardID(text(within(e.form.key, []byte(q.board))))
}

// within returns the place where part, which is in all, is first.
func within(all, part []byte) []byte {
	at := bytes.Index(all, part)
	return all[at : at+len(part)]
}
