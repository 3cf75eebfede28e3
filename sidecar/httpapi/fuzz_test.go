package httpapi

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"rankcache"
	"rankcache/sidecar"
	"rankcache/sidecar/internal/apijson"
)

// FuzzTarget gives paths and queries to the parser. What it accepts must be
// within limits, and a member must be what net/url reads.
func FuzzTarget(f *testing.F) {
	f.Add("/v1/boards/1_2_3/top", "start=0&limit=50&order=desc&me=a%20b&profiles=1&room=88")
	f.Add("/v1/boards/1_2_3/members/a%2Fb", "around=4")
	f.Add("/v1/boards/x/members:batch", "&&order=asc")
	f.Add("/v1/profiles/%E5%90%8D+", "")
	f.Add("/v1/boards/%/top", "limit=%zz&=&+=+")
	f.Fuzz(func(t *testing.T, path, query string) {
		c := new(call)
		if p := c.parsePath([]byte(path)); p != nil {
			checkFuzzed(t, p)
			return
		}
		member := c.member[0]
		if c.route == routeMember || c.route == routeProfile {
			raw := path[strings.LastIndexByte(path, '/')+1:]
			if want, err := url.PathUnescape(raw); err != nil || member != want {
				t.Fatalf("member %q of %q, want %q, %v", member, raw, want, err)
			}
		}
		if p := c.parseArgs([]byte(query)); p != nil {
			checkFuzzed(t, p)
			return
		}
		a := c.args
		if a.limit < 1 || a.limit > rankcache.MaxTop || a.start < 0 || a.start > sidecar.MaxStart || a.around < -1 || a.around > sidecar.MaxAround {
			t.Fatalf("%+v", a)
		}
		if (a.me || c.route == routeMember) && rankcache.CheckMember(c.member[0]) != nil {
			t.Fatalf("member %q", c.member[0])
		}
		plain := strings.ReplaceAll(query, ";", "%3B") // net/url refuses one; it is a character as any other
		if got, err := url.ParseQuery(plain); a.me && (err != nil || got.Get("me") != c.member[0]) {
			t.Fatalf("me %q, want %q, %v", c.member[0], got.Get("me"), err)
		}
	})
}

// checkFuzzed checks that a refusal is one that can be answered.
func checkFuzzed(t *testing.T, p *apijson.Problem) {
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

// FuzzPage: whatever members and scores are, the body is JSON that reads back.
func FuzzPage(f *testing.F) {
	f.Add("a", 1.5, "b\"\\", -1.0, uint64(7))
	f.Add("\xff\x00", 1e300, "名", 1e-300, uint64(0))
	f.Fuzz(func(t *testing.T, m1 string, s1 float64, m2 string, s2 float64, seq uint64) {
		if rankcache.CheckScore(s1) != nil || rankcache.CheckScore(s2) != nil {
			t.Skip()
		}
		a := sidecar.Answer{Page: rankcache.Page{Start: 3, Entries: []rankcache.Entry{{Member: m1, Score: s1}, {Member: m2, Score: s2}}}}
		a.Seq = seq
		body := apijson.AppendPage(nil, sidecar.Query{Board: "b"}, 50, &a, &apijson.Joined{})
		body = apijson.AppendMe(body[:len(body)-1], rankcache.Standing{Member: m1, Score: s1, Rank: 4}, seq, &apijson.Joined{})
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
