package httpapi

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"rankcache/internal/httpserve"
	"rankcache/rooms"
	"rankcache/sidecar/encode"
)

// Limits of the data listener, and the defaults of [Config].
const (
	maxHeader = httpserve.MaxHeader
	maxBody   = 256 << 10 // bytes; 500 members of 128 bytes, most of them escaped

	// maxBoardsBody is enough for as many boards as a batch has, all letters escaped.
	maxBoardsBody = 32 << 10 // bytes

	// A client that was refused may send so much and for so long before the connection
	// is closed: most clients read the answer when they have sent their body.
	maxUnread  = 8 << 20 // bytes
	lingerTime = 2 * time.Second

	// WriteBuffer is how long an answer, header included, may be to be sent by one system call, in bytes: 50 rows with
	// profiles take some 8 kB. Sent by two they took 1.6 times the CPU over TCP (docs/speed/READS.md).
	WriteBuffer = 16 << 10

	DefaultMaxConns     = 4096             // about 32 KiB each when idle
	DefaultReadTimeout  = 5 * time.Second  // a whole request, from its first byte
	DefaultWriteTimeout = 5 * time.Second  // one answer, or each part of a long one
	DefaultIdleTimeout  = 90 * time.Second // between requests
	DefaultDrainTimeout = 5 * time.Second  // unfinished requests when serving ends
)

// Config is how the data listener behaves; zeros take the defaults.
type Config struct {
	// Hosts are names, without port, that callers may use for a listener on
	// loopback, beside localhost and the loopback addresses.
	Hosts []string
	// MaxConns is for all listeners. At so many, one gives way to each new one: first the one that has waited for a
	// complete request for longest, then the one that has been idle for longest, then the one whose request has.
	MaxConns     int
	ReadTimeout  time.Duration
	WriteTimeout time.Duration
	IdleTimeout  time.Duration
	DrainTimeout time.Duration
	// Trace, if it is set, returns a context in which calls to Redis belong to the trace
	// of a request with these W3C headers.
	Trace   func(ctx context.Context, traceparent, tracestate string) context.Context
	Classes func() *rooms.File // returns the rooms file in force, never nil; nil: there are no classes
	Now     func() time.Time   // the clock that periods of classes run by; nil: time.Now
	// Compat, if it is set, is asked about paths that are none of the server's own.
	Compat Compat
	// Writer answers POST /v1/scores, :batch and :delete, with the Host checked; nil: there is no such path here.
	Writer         http.Handler
	NoRequestCache bool // has every request parsed, also one whose bytes came before
}

// Compat answers requests in older forms.
type Compat interface {
	// Answer returns the JSON that answers a request, or the problem with it, or both: then the JSON is the body of
	// that problem's answer. It returns false if the path is none of its own. It does not keep the body.
	Answer(ctx context.Context, method, path, query string, body []byte) (answer []byte, p *httpserve.Problem, ours bool)
}

// ProblemOf returns how the server answers an error of a [sidecar.Reader].
func ProblemOf(err error) httpserve.Problem { return encode.ProblemOf(err).HTTP() }

func (c Config) withDefaults() Config {
	c.MaxConns = cmp.Or(c.MaxConns, DefaultMaxConns)
	c.ReadTimeout = cmp.Or(c.ReadTimeout, DefaultReadTimeout)
	c.WriteTimeout = cmp.Or(c.WriteTimeout, DefaultWriteTimeout)
	c.IdleTimeout = cmp.Or(c.IdleTimeout, DefaultIdleTimeout)
	c.DrainTimeout = cmp.Or(c.DrainTimeout, DefaultDrainTimeout)
	if c.Classes == nil {
		none := new(rooms.File)
		c.Classes = func() *rooms.File { return none }
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}
