package httpapi

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/valyala/fasthttp"

	"rankcache"
	"rankcache/sidecar/encode"
)

// Header fields in the form that fasthttp stores them in, so that it need not normalise them.
var (
	headerAge    = []byte("Rankcache-Age-Ms")
	headerLadder = []byte("Rankcache-Ladder-Age-Ms")
	headerSource = []byte("Rankcache-Source")
	headerETag   = []byte("Etag")
	headerVary   = []byte("Vary")
	headerCache  = []byte("Cache-Control")
	headerState  = []byte("Rankcache-State")
	headerNote   = []byte("Rankcache-Note")
	headerLacks  = []byte("Rankcache-Incomplete")
	valuePriming = []byte("priming")
	valueNoKey   = []byte("no such key in Redis")
	valueAccept  = []byte("Accept-Encoding")
	valueShared  = []byte("no-cache") // to be compared with us before each use
	valuePrivate = []byte("private, no-cache")
	valueSource  = [...][]byte{rankcache.SourceLocal: []byte("local"), rankcache.SourceHot: []byte("hot"), rankcache.SourceRedis: []byte("redis"), rankcache.SourceLedger: []byte("ledger"), rankcache.SourceFinal: []byte("final")}
)

type responder struct {
	counters  *counters
	durations *durations
	packer    *packer
}

// count counts and measures a request whose answer is ready.
func (s *responder) count(ctx *fasthttp.RequestCtx, r route, o outcome) {
	s.counters.add(ctx.ConnID(), r, o)
	if begun := ctx.Time(); !begun.IsZero() { // it could be parsed
		s.durations.observe(r, o, time.Since(begun), 1)
	}
}

const contentJSON = "application/json"

// What answers of each source have in common: to copy these fields takes half as long as to set them one by one.
var (
	sharedFields  = newFields(valueShared)
	privateFields = newFields(valuePrivate)
)

func newFields(caches []byte) *[len(valueSource)]fasthttp.ResponseHeader {
	var fields [len(valueSource)]fasthttp.ResponseHeader
	for source := range fields {
		h := &fields[source]
		h.SetNoDefaultContentType(true)
		h.SetContentType(contentJSON)
		h.SetCanonical(headerCache, caches)
		h.SetCanonical(headerSource, valueSource[source])
	}
	return &fields
}

// sendBody answers with a kept body, packed if the caller takes that, and returns what the caller takes.
func (s *responder) sendBody(ctx *fasthttp.RequestCtx, c *call, b *body, asked *lists) coding {
	a := &c.as[0]
	takes := accepted(asked.acceptEncoding)
	e := b.in(takes, s.packer)
	e.fields.CopyTo(&ctx.Response.Header)
	stamp(ctx, c)
	if !s.conditional(ctx, c, e.etag, asked) {
		ctx.Response.SetBodyRaw(e.data)
		s.count(ctx, c.route, outcome(a.Source))
	}
	return takes
}

// sendOut answers with c.out, which shows the state.
func (s *responder) sendOut(ctx *fasthttp.RequestCtx, c *call) {
	a := &c.as[0]
	c.etag = appendETag(c.etag, c.out, a.Source)
	var room [rankcache.MaxStateLen]byte
	setFields(&ctx.Response.Header, c.fields(a.Source), c.etag, appendState(room[:0], a.State))
	stamp(ctx, c)
	var asked lists
	if asked.read(&ctx.Request.Header); !s.conditional(ctx, c, c.etag, &asked) {
		ctx.Response.SetBodyRaw(c.out)
		s.count(ctx, c.route, outcome(a.Source))
	}
}

// sendBehind answers with a kept page whose closing brace c.out replaces, unpacked: two parts are no one packed answer.
func (s *responder) sendBehind(ctx *fasthttp.RequestCtx, c *call, b *body) {
	a := &c.as[0]
	c.etag = append(c.etag, b.etag[:len(b.etag)-1]...)
	c.etag = appendHash(append(c.etag, '-'), xxhash.Sum64(c.out))
	setFields(&ctx.Response.Header, c.fields(a.Source), c.etag, b.state)
	stamp(ctx, c)
	var asked lists
	if asked.read(&ctx.Request.Header); !s.conditional(ctx, c, c.etag, &asked) {
		ctx.Response.SetBody(b.data[:len(b.data)-1])
		ctx.Response.AppendBody(c.out)
		s.count(ctx, c.route, outcome(a.Source))
	}
}

// sendProfiles answers with c.out, which speaks of no board.
func (s *responder) sendProfiles(ctx *fasthttp.RequestCtx, c *call) {
	ctx.Response.Header.SetCanonical(headerCache, valueShared)
	ctx.Response.Header.SetContentType(contentJSON)
	ctx.Response.SetBodyRaw(c.out)
	s.count(ctx, c.route, outcomeProfiles)
}

// sendBoards answers with c.out, which speaks of several boards.
func (s *responder) sendBoards(ctx *fasthttp.RequestCtx, c *call) {
	ctx.Response.Header.SetCanonical(headerCache, valuePrivate)
	ctx.Response.Header.SetContentType(contentJSON)
	ctx.Response.SetBodyRaw(c.out)
	s.count(ctx, c.route, outcomeNoSource)
}

// setFields sets the common fields, the tag and the state, if it is known, and drops all other fields.
func setFields(h, common *fasthttp.ResponseHeader, etag, state []byte) {
	common.CopyTo(h)
	h.SetCanonical(headerETag, etag)
	if len(state) > 0 {
		h.SetCanonical(headerState, state)
	}
}

// stamp adds the fields that are not of the body. An unknown age, of a copy never compared, is not sent.
func stamp(ctx *fasthttp.RequestCtx, c *call) {
	if c.noKey {
		ctx.Response.Header.SetCanonical(headerNote, valueNoKey)
	}
	if c.query().Mode == rankcache.Approx {
		stampLadder(ctx, c)
	}
	if c.as[0].Incomplete {
		ctx.Response.Header.SetCanonical(headerLacks, valuePriming)
	}
	if currentAt := c.as[0].CurrentAt; !currentAt.IsZero() {
		var room [20]byte
		ctx.Response.Header.SetCanonical(headerAge, appendAge(room[:0], ctx.Time(), currentAt))
	}
}

// stampLadder adds the age of the ladder that ranks are from.
func stampLadder(ctx *fasthttp.RequestCtx, c *call) {
	own := c.as[0].Own
	if i := slices.IndexFunc(own, func(o rankcache.Own) bool { return o.Ladder != nil }); i >= 0 {
		var room [20]byte
		ctx.Response.Header.SetCanonical(headerLadder, appendAge(room[:0], ctx.Time(), own[i].Ladder.At))
	}
}

// appendState appends the state as the header has it: nothing if its run is not known.
func appendState(dst []byte, s rankcache.State) []byte {
	if s.Run == 0 {
		return dst
	}
	return s.AppendState(dst)
}

func appendAge(dst []byte, now, currentAt time.Time) []byte {
	return strconv.AppendInt(dst, max(now.Sub(currentAt).Milliseconds(), 0), 10)
}

// conditional answers 412 when the caller wants other bytes, and 304 when he has these already.
func (s *responder) conditional(ctx *fasthttp.RequestCtx, c *call, etag []byte, asked *lists) bool {
	if len(asked.ifMatch)+len(asked.ifNoneMatch) == 0 || c.route.post() {
		return false
	}
	if want := asked.ifMatch; len(want) > 0 && !matches(want, etag, false) {
		p := &encode.Problem{Code: encode.CodePrecondition, Detail: "want If-Match: * or none: the page has changed"}
		ctx.Response.Header.SetContentEncoding("")
		setProblem(ctx, p)
		s.count(ctx, c.route, firstProblem+outcome(p.Code.Index()))
		return true
	}
	if !matches(asked.ifNoneMatch, etag, true) {
		return false
	}
	setNotModified(&ctx.Response.Header)
	s.count(ctx, c.route, outcomeNotModified+outcome(c.as[0].Source))
	return true
}

// lists are the fields of a request that are lists, each of all of its lines.
type lists struct{ acceptEncoding, ifMatch, ifNoneMatch []byte }

// read finds them in one pass: to look each up by its name took a seventh of an answer's CPU.
func (l *lists) read(h *fasthttp.RequestHeader) {
	for key, value := range h.All() {
		switch string(key) {
		case fasthttp.HeaderAcceptEncoding:
			l.acceptEncoding = joined(l.acceptEncoding, value)
		case fasthttp.HeaderIfMatch:
			l.ifMatch = joined(l.ifMatch, value)
		case fasthttp.HeaderIfNoneMatch:
			l.ifNoneMatch = joined(l.ifNoneMatch, value)
		}
	}
}

func joined(list, line []byte) []byte {
	if len(list) == 0 {
		return line
	}
	return slices.Concat(list, []byte(","), line)
}

// matches compares a list of tags with ours, weakly or strongly (RFC 9110). Tags of ours hold no comma.
func matches(list, etag []byte, weakly bool) bool {
	if weakly {
		etag = bytes.TrimPrefix(etag, []byte("W/"))
	} else if bytes.HasPrefix(etag, []byte("W/")) {
		etag = nil
	}
	for len(list) > 0 {
		var tag []byte
		tag, list, _ = bytes.Cut(list, []byte(","))
		tag = bytes.TrimSpace(tag)
		if string(tag) == "*" {
			return true
		}
		if weakly {
			tag = bytes.TrimPrefix(tag, []byte("W/"))
		}
		if len(etag) > 0 && bytes.Equal(tag, etag) {
			return true
		}
	}
	return false
}

// setNotModified drops what tells of a body.
func setNotModified(h *fasthttp.ResponseHeader) {
	h.SetContentEncoding("")
	h.SetContentType("")
	h.SetStatusCode(fasthttp.StatusNotModified)
}

// writeProblem makes p the answer and drops anything set before.
func writeProblem(ctx *fasthttp.RequestCtx, p *encode.Problem) {
	ctx.Response.Reset()
	setProblem(ctx, p)
}

func setProblem(ctx *fasthttp.RequestCtx, p *encode.Problem) {
	status := p.Info().Status
	ctx.SetStatusCode(status)
	ctx.Response.Header.SetContentType("application/problem+json")
	if p.Allow != "" {
		ctx.Response.Header.Set("Allow", p.Allow)
	}
	if status == fasthttp.StatusServiceUnavailable {
		ctx.Response.Header.Set("Retry-After", encode.RetryAfter)
	}
	ctx.Response.SetBodyRaw(p.Append(nil))
}

// body is one encoded answer that many requests share.
type body struct {
	encoded
	source     rankcache.Source
	state      []byte // of the board that it shows, empty if unknown
	incomplete bool
	// fresh returns whether the profiles in it are still the newest; nil: there are none, or they never change.
	fresh func() bool

	packed [codings]atomic.Pointer[encoded] // made at the first request
	mu     sync.Mutex                       // to make one
}

// encoded is a body in one content coding. It has an ETag of its own, as it is other bytes.
type encoded struct {
	coding     coding
	data, etag []byte
	fields     fasthttp.ResponseHeader // of an answer with data, but for its age
	// Headers of the answer with data and of the one without it; none for what Redis
	// answered, because such requests are not cached.
	full, notModified header
}

// newBody returns a body that owns a copy of plain.
func newBody(plain []byte, a *rankcache.Answer, fresh func() bool) *body {
	b := &body{encoded: encoded{coding: codingNone, data: bytes.Clone(plain), etag: appendETag(nil, plain, a.Source)},
		source: a.Source, state: appendState(nil, a.State), incomplete: a.Incomplete, fresh: fresh}
	b.encoded.setHeaders(b)
	return b
}

func (e *encoded) setHeaders(of *body) {
	source := of.source
	setFields(&e.fields, &sharedFields[source], e.etag, of.state)
	e.fields.SetCanonical(headerVary, valueAccept)
	if of.incomplete {
		e.fields.SetCanonical(headerLacks, valuePriming)
	}
	if e.coding != codingNone {
		e.fields.SetContentEncoding(e.coding.String())
	}
	if source.IsCopy() {
		e.full, e.notModified = newHeaders(&e.fields, len(e.data))
	}
}

const minPacked = 1 << 10 // the least body, in bytes, that packing is worth it

func (b *body) in(c coding, p *packer) *encoded {
	if c == codingNone || len(b.data) < minPacked {
		return &b.encoded
	}
	return b.pack(c, p)
}

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
	e.setHeaders(b)
	b.packed[c].Store(e)
	return e
}

// appendETag appends an answer's tag, a hash. That of Redis's answers is weak and leaves published_at out.
func appendETag(dst, plain []byte, source rankcache.Source) []byte {
	if source.IsCopy() {
		return appendHash(append(dst, '"'), xxhash.Sum64(plain))
	}
	const field = `"published_at":`
	var h xxhash.Digest
	h.Reset()
	at := max(bytes.Index(plain, []byte(field)), 0)
	h.Write(plain[:at])
	h.Write(plain[min(at+len(field)+encode.TimeLen, len(plain)):])
	return appendHash(append(dst, `W/"`...), h.Sum64())
}

func appendHash(dst []byte, sum uint64) []byte {
	var b [8]byte
	return append(hex.AppendEncode(dst, binary.BigEndian.AppendUint64(b[:0], sum)), '"')
}
