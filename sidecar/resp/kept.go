package resp

import (
	"bytes"
	"sync"
	"sync/atomic"

	"rankcache"
)

// maxKept is how many replies are kept for one top: clients that ask for every possible
// range must not fill the memory.
const maxKept = 16

// replyKey tells the replies of one top apart.
type replyKey struct {
	from, n int
	scores  bool
	encoder
}

// kept holds the encoded replies of one top, as long as it is the newest of its board.
type kept struct {
	// replies is replaced, never changed, so that readers need no lock.
	replies atomic.Pointer[[]keptReply]
	mu      sync.Mutex // held to encode a reply, and to replace replies
	next    int        // which is replaced when there are maxKept
}

type keptReply struct {
	key   replyKey
	bytes []byte // none: it is not known how a score is written
}

func newKept(any) any { return new(kept) }

// reply returns the kept reply of the key, or what encode returns.
func (k *kept) reply(key replyKey, encode func() []byte) []byte {
	if r := k.find(key); r != nil {
		return r.bytes
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if r := k.find(key); r != nil {
		return r.bytes
	}
	reply := encode()
	k.add(keptReply{key, reply})
	return reply
}

func (k *kept) find(key replyKey) *keptReply {
	if all := k.replies.Load(); all != nil {
		for i := range *all {
			if r := &(*all)[i]; r.key == key {
				return r
			}
		}
	}
	return nil
}

func (k *kept) add(r keptReply) {
	var all []keptReply
	if old := k.replies.Load(); old != nil {
		all = append(all, *old...)
	}
	if len(all) < maxKept {
		all = append(all, r)
	} else {
		all[k.next] = r
		k.next = (k.next + 1) % maxKept
	}
	k.replies.Store(&all)
}

// memo holds the reads that a connection sent last, by their bytes: an app sends the
// same ones again and again, and parsing takes longer than answering. The answer is never
// in it.
type memo struct {
	entries [4]memoEntry
	next    int
}

type memoEntry struct {
	raw  []byte
	form form // in raw's memory
}

// maxMemo is the length of the longest command that is kept, in bytes.
const maxMemo = 512

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
