package httpapi

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"rankcache"
	"rankcache/sidecar"
	"rankcache/sidecar/encode"
)

// FuzzTarget gives paths and queries to the parser. What it accepts must be
// within limits, and a member must be what net/url reads.
func FuzzTarget(f *testing.F) {
	f.Add("/v1/boards/1_2_3/top", "start=0&limit=50&order=desc&me=a%20b&profiles=1&room=88")
	f.Add("/v1/boards/1_2_3/members/a%2Fb", "around=4")
	f.Add("/v1/classes/gift-day/top", "zone=7&at=2026-11-22T09:20:00Z")
	f.Add("/v1/classes/%67ift/members/a", "at=previous")
	f.Add("/v1/boards/x/members:batch", "&&order=asc")
	f.Add("/v1/profiles/%E5%90%8D+", "")
	f.Add("/v1/boards/%/top", "limit=%zz&=&+=+")
	env := newClassEnv(f)
	half := &knownClass{Class: env.file.Load().Class("gift-half-hour"), dims: []string{"zone"}}
	f.Fuzz(func(t *testing.T, path, query string) {
		c := new(call)
		if p := c.parsePath([]byte(path)); p != nil {
			checkFuzzed(t, p)
			return
		}
		member := c.member[0]
		if c.route.byClass() {
			c.class = half
		}
		if c.route == routeMember || c.route == routeClassMember || c.route == routeProfile {
			raw := path[strings.LastIndexByte(path, '/')+1:]
			if want, err := url.PathUnescape(raw); err != nil || member != want {
				t.Fatalf("member %q of %q, want %q, %v", member, raw, want, err)
			}
		}
		if p := c.parseArgs([]byte(query)); p != nil {
			checkFuzzed(t, p)
			return
		}
		if c.class != nil {
			if p := c.nameBoard(env.settings().Now()); p != nil {
				checkFuzzed(t, p)
				return
			}
			if b, ok := half.Parse(c.query().Board); !ok || b.Dims["zone"] != c.dims[0] {
				t.Fatalf("board %q of the zone %q", c.query().Board, c.dims[0])
			}
		}
		q := c.query()
		if c.route.page() != (q.Limit > 0) || q.Limit > rankcache.MaxTop || q.Start < 0 || q.Start > rankcache.MaxStart || q.Around < 0 || q.Around > 0 && q.Neighbours() > sidecar.MaxAround {
			t.Fatalf("%+v", q)
		}
		if (c.me() || c.route == routeMember || c.route == routeClassMember) && rankcache.CheckMember(c.member[0]) != nil {
			t.Fatalf("member %q", c.member[0])
		}
		plain := strings.ReplaceAll(query, ";", "%3B") // net/url refuses one; it is a character as any other
		if got, err := url.ParseQuery(plain); c.me() && (err != nil || got.Get("me") != c.member[0]) {
			t.Fatalf("me %q, want %q, %v", c.member[0], got.Get("me"), err)
		}
	})
}

// checkFuzzed checks that a refusal is one that can be answered.
func checkFuzzed(t *testing.T, p *encode.Problem) {
	t.Helper()
	body := p.Append(nil)
	if !json.Valid(body) || !utf8.Valid(body) || len(body) > 2000 {
		t.Fatalf("problem %q", body)
	}
}

// FuzzBatch: what is accepted is what encoding/json reads, within limits.
func FuzzBatch(f *testing.F) {
	f.Add([]byte(`{"members":["a","b"]}`))
	f.Add([]byte(`{"members":["\u0061\n"]}`))
	f.Add([]byte(`{"members":null} `))
	f.Add([]byte("{\"members\":[\"\xff\"]}"))
	f.Add([]byte(`{"` + strings.Repeat("\xff", 900) + `":1}`)) // the decoder names it whole
	f.Fuzz(func(t *testing.T, data []byte) {
		members, p := parseBatch(data)
		if p != nil {
			checkFuzzed(t, p)
			return
		}
		if len(members) < 1 || len(members) > rankcache.MaxTop {
			t.Fatalf("%d members", len(members))
		}
		for _, m := range members {
			if err := rankcache.CheckMember(m); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// FuzzBoards: what is accepted is within limits, and a GET of each page would be, too.
func FuzzBoards(f *testing.F) {
	f.Add([]byte(`{"boards":[{"board":"a"},{"board":"b","start":3,"limit":5,"order":"asc","me":"m\u0061","around":4,"gap":true,"profiles":true,"room":"88"}]}`))
	f.Add([]byte(`{"boards":[{"board":"a","limit":null,"around":-0,"rank_mode":"dense","percentile":true}]} `))
	f.Add([]byte(`{"BOARDS":[{"board":"a","board":"b","start":1e2}]}`))
	f.Add([]byte(`{"boards":[` + strings.Repeat("[", 9000)))
	f.Add([]byte("{\"boards\":[{\"board\":\"a\",\"me\":\"\xff\"}]}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		calls, p := parseBoards(data)
		if p != nil {
			checkFuzzed(t, p)
			return
		}
		if len(calls) < 1 || len(calls) > sidecar.MaxBatch {
			t.Fatalf("%d boards", len(calls))
		}
		for i := range calls {
			checkBoardCall(t, &calls[i])
		}
	})
}

// checkBoardCall checks that a query with the same options gives the same call.
func checkBoardCall(t *testing.T, c *call) {
	t.Helper()
	q := c.query()
	query := url.Values{"start": {fmt.Sprint(q.Start)}, "limit": {fmt.Sprint(q.Limit)}, "order": {q.Order.String()}}
	set := func(name, value string, on bool) {
		if on {
			query.Set(name, value)
		}
	}
	set("me", c.member[0], c.me())
	set("around", fmt.Sprint(q.Neighbours()), q.Around > 0)
	set("gap", "1", q.Gap)
	set("rank_mode", q.Mode.String(), true)
	set("percentile", "1", q.Percentile)
	set("profiles", "1", c.args.profiles)
	set("room", q.Room, q.Room != "")
	var got call
	if p := got.parsePath([]byte("/v1/boards/" + string(q.Board) + "/top")); p != nil {
		t.Fatalf("board %q: %+v", q.Board, p)
	}
	if p := got.parseArgs([]byte(query.Encode())); p != nil {
		t.Fatalf("%v: %+v", query, p)
	}
	if q.Order == rankcache.Descending { // it names none
		q.Order = rankcache.HighestFirst
	}
	if diff := cmp.Diff(*q, *got.query()); diff != "" || got.args.profiles != c.args.profiles {
		t.Fatalf("%v (-want +got): %s", query, diff)
	}
}

// FuzzPage: whatever members and scores are, the body is JSON that reads back.
func FuzzPage(f *testing.F) {
	f.Add("a", 1.5, "b\"\\", -1.0, uint64(7))
	f.Add("\xff\x00", 1e300, "名", 1e-300, uint64(0))
	f.Fuzz(func(t *testing.T, m1 string, s1 float64, m2 string, s2 float64, seq uint64) {
		if rankcache.CheckScore(s1) != nil || rankcache.CheckScore(s2) != nil {
			t.Skip()
		}
		a := rankcache.Answer{Start: 3, Entries: []rankcache.Entry{{Member: m1, Score: s1}, {Member: m2, Score: s2}}}
		a.Seq = seq
		q := &rankcache.Query{Board: "b", Limit: 50}
		body := encode.AppendPage(nil, q, &a, &encode.Show{}, &encode.Joined{})
		me := &rankcache.Own{Standing: rankcache.Standing{Member: m1, Score: s1, Rank: 4}, Stamp: a.Stamp}
		body = encode.AppendMe(body[:len(body)-1], q, me, &encode.Show{}, &encode.Joined{})
		var p pageBody
		if err := json.Unmarshal(body, &p); err != nil {
			t.Fatalf("%v in %q", err, body)
		}
		same := func(m, got string) bool { return got == strings.ToValidUTF8(m, "\ufffd") || !utf8.ValidString(m) }
		if !same(m1, p.Entries[0].Member) || p.Entries[0].Score != s1 || !same(m2, p.Entries[1].Member) ||
			p.Entries[1].Score != s2 || p.Entries[1].Rank != 5 || p.Seq != seq || p.Me.Rank != 4 {
			t.Fatalf("%q", body)
		}
	})
}

func FuzzEncodings(f *testing.F) {
	f.Add("gzip;q=0.5, zstd", `W/"a", "b"`)
	f.Fuzz(func(t *testing.T, accept, match string) {
		_ = accepted([]byte(accept))
		if matches([]byte(match), []byte(`"0123456789abcdef"`), true) && !strings.Contains(match, "0123456789abcdef") && !strings.Contains(match, "*") {
			t.Fatalf("%q matches", match)
		}
	})
}

// FuzzFrame: where requests end does not depend on how their bytes are cut, and net/http
// finds the end of a first request in the same place if it can read it.
func FuzzFrame(f *testing.F) {
	const chunks = "2;a=b\r\nab\r\n0\r\nX: y\r\n\r\n"
	f.Add([]byte(request+batchLine+"Content-Length: 3\r\n\r\nabc"+request), uint8(5))
	f.Add([]byte(batchLine+chunked+"\r\n"+chunks+request), uint8(1))
	f.Add([]byte("\r\n"+batchLine+"Transfer-Encoding: gzip, chunked\r\n\r\n"+chunks), uint8(2))
	f.Add([]byte("GET / HTTP/1.0\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx"), uint8(3))
	f.Fuzz(func(t *testing.T, data []byte, size uint8) {
		ends, err := framed(data, len(data))
		pieces, errOfPieces := framed(data, max(int(size), 1))
		if !slices.Equal(ends, pieces) || fmt.Sprint(err) != fmt.Sprint(errOfPieces) {
			t.Fatalf("whole: %v, %v; by %d: %v, %v", ends, err, size, pieces, errOfPieces)
		}
		if len(ends) == 0 || ends[0] == 0 {
			return
		}
		in := bufio.NewReaderSize(bytes.NewReader(data), 16)
		req, readErr := http.ReadRequest(in)
		if readErr != nil {
			return
		}
		if _, readErr = io.Copy(io.Discard, req.Body); readErr != nil {
			return
		}
		rest, _ := io.ReadAll(in)
		if got := len(data) - len(rest); got != ends[0] {
			t.Fatalf("the first request ends at %d, for net/http at %d", ends[0], got)
		}
	})
}

// framed returns where requests end in data that comes in pieces of a size.
func framed(data []byte, size int) (ends []int, err error) {
	var f frame
	begun := 0
	for at := 0; at < len(data); {
		n, err := f.next(data[at:min(at+size, len(data))])
		if err != nil {
			return ends, err
		}
		at += n
		blank := len(bytes.Trim(data[begun:at], lineEnd)) == 0 // lines in front of a request
		if f.state == inRequestLine && len(f.line) == 0 && !blank {
			ends, begun = append(ends, at), at
		}
	}
	return ends, nil
}
