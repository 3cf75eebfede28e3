package httpapi

import (
	"bytes"
	"io"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

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
