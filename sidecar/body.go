package sidecar

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"sync"
	"sync/atomic"

	"github.com/cespare/xxhash/v2"
)

// body is one encoded answer that many requests share.
type body struct {
	coded
	source Source
	// fresh says whether the profiles in it are still the newest; nil: there
	// are none, or they hold for good.
	fresh func() bool

	packed [codings]atomic.Pointer[coded] // made when first asked for
	mu     sync.Mutex                     // to make one
}

// coded is a body in one content coding. It has an ETag of its own, as it is other
// bytes.
type coded struct {
	coding     coding
	data, etag []byte
	// Of the answer with data and of the one that leaves it out; none for what Redis
	// answered, which is not asked for by the bytes of a request.
	whole, same head
}

// newBody returns a body that owns a copy of plain.
func newBody(plain []byte, source Source, fresh func() bool) *body {
	b := &body{coded: coded{coding: codingNone, data: bytes.Clone(plain), etag: appendETag(nil, plain, source)}, source: source, fresh: fresh}
	b.setHeads(source)
	return b
}

func (k *coded) setHeads(source Source) {
	if source != SourceRedis {
		k.whole, k.same = newHeads(k, source)
	}
}

// minPacked is the least body, in bytes, that packing is worth it.
const minPacked = 1 << 10

// in returns the body for a caller who takes the coding c.
func (b *body) in(c coding, p *packer) *coded {
	if c == codingNone || len(b.data) < minPacked {
		return &b.coded
	}
	return b.pack(c, p)
}

// pack returns the body in the coding c, which is not codingNone.
func (b *body) pack(c coding, p *packer) *coded {
	if k := b.packed[c].Load(); k != nil {
		return k
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if k := b.packed[c].Load(); k != nil {
		return k
	}
	etag := append(bytes.Clone(b.etag[:len(b.etag)-1]), '-', c.String()[0], '"')
	k := &coded{coding: c, data: p.pack(c, b.data), etag: etag}
	k.setHeads(b.source)
	b.packed[c].Store(k)
	return k
}

// appendETag appends the tag of an answer: a hash of its bytes. What Redis
// answers anew each time differs in published_at alone while the board stands
// still, so its tag is weak and leaves that out.
func appendETag(dst, plain []byte, source Source) []byte {
	if source != SourceRedis {
		return appendHash(append(dst, '"'), xxhash.Sum64(plain))
	}
	const field = `"published_at":`
	var h xxhash.Digest
	h.Reset()
	at := max(bytes.Index(plain, []byte(field)), 0)
	h.Write(plain[:at])
	h.Write(plain[min(at+len(field)+timeLen, len(plain)):])
	return appendHash(append(dst, `W/"`...), h.Sum64())
}

func appendHash(dst []byte, sum uint64) []byte {
	var b [8]byte
	return append(hex.AppendEncode(dst, binary.BigEndian.AppendUint64(b[:0], sum)), '"')
}
