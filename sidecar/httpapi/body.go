package httpapi

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"io"
	"sync"
	"sync/atomic"

	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"rankcache/sidecar"
	"rankcache/sidecar/internal/apijson"
)

// body is one encoded answer that many requests share.
type body struct {
	encoded
	source sidecar.Source
	// fresh returns whether the profiles in it are still the newest; nil: there are none,
	// or they never change.
	fresh func() bool

	packed [codings]atomic.Pointer[encoded] // made when first asked for
	mu     sync.Mutex                       // to make one
}

// encoded is a body in one content coding. It has an ETag of its own, as it is other
// bytes.
type encoded struct {
	coding     coding
	data, etag []byte
	// Headers of the answer with data and of the one without it; none for what Redis
	// answered, because such requests are not cached.
	full, notModified header
}

// newBody returns a body that owns a copy of plain.
func newBody(plain []byte, source sidecar.Source, fresh func() bool) *body {
	b := &body{encoded: encoded{coding: codingNone, data: bytes.Clone(plain), etag: appendETag(nil, plain, source)}, source: source, fresh: fresh}
	b.setHeaders(source)
	return b
}

func (e *encoded) setHeaders(source sidecar.Source) {
	if source != sidecar.SourceRedis {
		e.full, e.notModified = newHeaders(e, source)
	}
}

// minPacked is the least body, in bytes, that packing is worth it.
const minPacked = 1 << 10

// in returns the body for a caller that takes the coding c.
func (b *body) in(c coding, p *packer) *encoded {
	if c == codingNone || len(b.data) < minPacked {
		return &b.encoded
	}
	return b.pack(c, p)
}

// pack returns the body in the coding c, which is not codingNone.
func (b *body) pack(c coding, p *packer) *encoded {
	if e := b.packed[c].Load(); e != nil {
		return e
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if e := b.packed[c].Load(); e != nil {
		return e
	}
	etag := append(bytes.Clone(b.etag[:len(b.etag)-1]), '-', c.String()[0], '"')
	e := &encoded{coding: c, data: p.pack(c, b.data), etag: etag}
	e.setHeaders(b.source)
	b.packed[c].Store(e)
	return e
}

// appendETag appends the tag of an answer: a hash of its bytes. Answers of
// Redis differ in published_at alone while the board does not change, so their tag is weak
// and leaves that out.
func appendETag(dst, plain []byte, source sidecar.Source) []byte {
	if source != sidecar.SourceRedis {
		return appendHash(append(dst, '"'), xxhash.Sum64(plain))
	}
	const field = `"published_at":`
	var h xxhash.Digest
	h.Reset()
	at := max(bytes.Index(plain, []byte(field)), 0)
	h.Write(plain[:at])
	h.Write(plain[min(at+len(field)+apijson.TimeLen, len(plain)):])
	return appendHash(append(dst, `W/"`...), h.Sum64())
}

func appendHash(dst []byte, sum uint64) []byte {
	var b [8]byte
	return append(hex.AppendEncode(dst, binary.BigEndian.AppendUint64(b[:0], sum)), '"')
}

// coding is a content coding that answers can be packed in.
type coding uint8

const (
	codingZstd coding = iota
	codingGzip
	codings
	codingNone = codings
)

func (c coding) String() string { return [...]string{"zstd", "gzip", "identity"}[c] }

// packer compresses bodies. It may be used concurrently.
type packer struct {
	zstd *zstd.Encoder // EncodeAll keeps no state between calls
	gzip sync.Pool
}

func newPacker() (*packer, error) {
	z, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(128<<10))
	return &packer{zstd: z}, err
}

func (p *packer) pack(c coding, plain []byte) []byte {
	if c == codingZstd {
		return p.zstd.EncodeAll(plain, nil)
	}
	w, _ := p.gzip.Get().(*gzip.Writer)
	if w == nil {
		w, _ = gzip.NewWriterLevel(io.Discard, gzip.BestSpeed) // the level is valid
	}
	defer p.gzip.Put(w)
	var b bytes.Buffer
	w.Reset(&b)
	_, _ = w.Write(plain) // a bytes.Buffer takes everything
	_ = w.Close()
	return bytes.Clone(b.Bytes())
}

// accepted picks the coding for a caller that sent this Accept-Encoding: zstd
// before gzip before none. Weights other than 0 are not compared.
func accepted(header []byte) coding {
	best := codingNone
	for len(header) > 0 {
		var item []byte
		item, header, _ = bytes.Cut(header, []byte(","))
		name, params, _ := bytes.Cut(item, []byte(";"))
		for c := range best {
			if bytes.EqualFold(bytes.TrimSpace(name), []byte(c.String())) && !refused(params) {
				best = c
				break
			}
		}
	}
	return best
}

// refused reports whether the parameters of a coding give it the weight 0.
func refused(params []byte) bool {
	q, ok := bytes.CutPrefix(bytes.ToLower(bytes.TrimSpace(params)), []byte("q="))
	return ok && len(bytes.Trim(q, "0.")) == 0
}
