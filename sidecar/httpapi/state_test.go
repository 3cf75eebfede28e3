package httpapi

import (
	"fmt"
	"strings"
	"testing"

	"rankcache"
	"rankcache/internal/testkit/fixture"
)

// TestStateOfEveryBoardAnswer: answers of all sources carry the state that they show, with and
// without a body, made for one request or kept, packed or not.
func TestStateOfEveryBoardAnswer(t *testing.T) {
	s := start(t, newEnv(), Config{})
	for path, seq := range map[string]uint64{"/v1/boards/local": 917, "/v1/boards/tiny": 7, "/v1/boards/hot": 33, "/v1/boards/1_2_3": 12} {
		want := fixture.Written.StateAt(seq).String()
		for _, read := range []string{"/top", "/top?limit=3", "/top?me=m000001", "/top?order=asc", "/members/m000001", "/members/m000001?around=1"} {
			if seq == 33 && (read == "/top?order=asc" || strings.HasPrefix(read, "/members")) {
				continue // answered by Redis
			}
			for _, header := range [][]string{nil, {"Accept-Encoding", "gzip"}} {
				full := s.do(t, "GET", path+read, "", header...)
				if got := full.header.Get("Rankcache-State"); full.status != 200 || got != want {
					t.Errorf("%s %v: %d with the state %q, want %q", path+read, header, full.status, got, want)
				}
				same := s.do(t, "GET", path+read, "", append(header, "If-None-Match", full.header.Get("Etag"))...)
				if got := same.header.Get("Rankcache-State"); same.status != 304 || got != want {
					t.Errorf("%s %v: %d with the state %q, want %q", path+read, header, same.status, got, want)
				}
			}
		}
		batch := s.do(t, "POST", path+"/members:batch", `{"members":["m000001"]}`)
		if got := batch.header.Get("Rankcache-State"); seq != 33 && got != want {
			t.Errorf("%s/members:batch: state %q, want %q", path, got, want)
		}
	}
}

// TestUnknownStates: a board of an unknown sum has a state without it, one of an unknown
// run has none, and neither have errors and profiles.
func TestUnknownStates(t *testing.T) {
	env := newEnv()
	env.Tiny.Head.Load().HasSum = false
	env.Origin.History = fixture.History{}
	s := start(t, env, Config{})
	for path, want := range map[string]string{
		"/v1/boards/tiny/top":            fmt.Sprintf("%d-7-", fixture.Written.Run),
		"/v1/boards/1_2_3/top":           "",
		"/v1/boards/1_2_3/top?limit=501": "",
		"/v1/boards/tiny/members/nobody": "",
		"/v1/profiles/m000001":           "",
	} {
		for range 3 { // the third time from the request cache
			if got, there := s.get(t, path).header["Rankcache-State"]; there != (want != "") || there && got[0] != want {
				t.Errorf("%s: state %q, want %q", path, got, want)
			}
		}
	}
}

// TestStateIsOfTheNewestPage: the request cache composes the header of the page that is
// the newest.
func TestStateIsOfTheNewestPage(t *testing.T) {
	env := newEnv()
	s := start(t, env, Config{})
	for _, history := range []fixture.History{fixture.Written, {Run: fixture.Written.Run, Salt: 1}} { // as after lost writes
		env.Local.History = history
		for seq := uint64(918); seq < 930; seq++ {
			env.Local.Publish(seq)
			for range 3 {
				a := s.get(t, "/v1/boards/local/top")
				if got, err := rankcache.ParseState(a.header.Get("Rankcache-State")); err != nil || got != history.StateAt(seq) {
					t.Fatalf("at seq %d: state %v, %v", seq, got, err)
				}
			}
		}
	}
}
