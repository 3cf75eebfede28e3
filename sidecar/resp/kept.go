package resp

import "rankcache"

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
