package roomsync_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"rankcache/internal/roomsync"
	"rankcache/internal/testkit/apitest"
	"rankcache/sidecar"
)

// TestLimitsAreThoseOfTheDocument: /rooms and the document take the same requests,
// at both sides of each limit.
func TestLimitsAreThoseOfTheDocument(t *testing.T) {
	doc, err := apitest.Load(sidecar.OpenAPI())
	if err != nil {
		t.Fatal(err)
	}
	f := newFollower(roomsync.Config{File: writeFile(t, "rooms: []"), Origin: &running{}, Shared: newShared()})
	must(t, f.Load())
	check := func(method, target, body string, taken bool) {
		t.Helper()
		_, answer := request(f, method, target, body)
		if got := !strings.HasPrefix(answer, roomsync.CodeBadArgument); got != taken {
			t.Errorf("%s %.80s %.80s: the handler answers %s", method, target, body, answer)
		}
		if err := doc.CheckRequest(apitest.Exchange{Method: method, Target: target, RequestBody: body}); (err == nil) != taken {
			t.Errorf("%s %.80s %.80s and the document: %v, want it taken: %v", method, target, body, err, taken)
		}
	}
	for body, taken := range entryLimits() {
		check(http.MethodPost, "/rooms", body, taken)
	}
	for query, taken := range map[string]bool{
		"uid=" + strings.Repeat("8", 64):                  true,
		"uid=" + strings.Repeat("8", 65):                  false,
		"uid=" + url.QueryEscape(strings.Repeat("ü", 32)): true,
		"uid=" + url.QueryEscape(strings.Repeat("ü", 33)): false,
		"uid=8%0A":      false,
		"uid=":          false,
		"match=9_%2A":   true,
		"match=":        false,
		"uid=8&match=9": false,
		"":              false,
	} {
		check(http.MethodDelete, "/rooms?"+query, "", taken)
	}
	for body, taken := range bypassLimits() {
		check(http.MethodPost, "/rooms/bypass", body, taken)
	}
	for query, taken := range map[string]bool{
		"board=" + strings.Repeat("b", 200): true,
		"board=" + strings.Repeat("b", 201): false,
		"board=a%20b":                       false,
		"all=true":                          true,
		"all=1":                             false,
		"board=a&all=true":                  false,
		"":                                  false,
	} {
		check(http.MethodDelete, "/rooms/bypass?"+query, "", taken)
	}
}

// bypassLimits returns bodies and whether they are taken.
func bypassLimits() map[string]bool {
	x := strings.Repeat
	by := func(by string) string { return `{"board":"b","for_s":1,"by":"` + by + `"}` }
	return map[string]bool{
		by(x("a", 128)):                                true,
		by(x("a", 129)):                                false,
		by(x("ü", 64)):                                 true,
		by(x("ü", 65)):                                 false,
		by(`a\u007f`):                                  false,
		by(""):                                         false,
		`{"board":"b","for_s":1}`:                      false,
		`{"board":"b","for_s":0,"by":"a"}`:             false,
		`{"board":"b","for_s":86400,"by":"a"}`:         true,
		`{"board":"b","for_s":86401,"by":"a"}`:         false,
		`{"board":"b","for_s":1.5,"by":"a"}`:           false,
		`{"board":"b","by":"a"}`:                       false,
		`{"board":"a b","for_s":1,"by":"a"}`:           false,
		`{"all":true,"for_s":1,"by":"a"}`:              true,
		`{"all":false,"for_s":1,"by":"a"}`:             false,
		`{"board":"b","all":false,"for_s":1,"by":"a"}`: true,
		`{"board":"b","all":true,"for_s":1,"by":"a"}`:  false,
		`{"board":"b","for_s":1,"by":"a","x":1}`:       false,
		`{"for_s":1,"by":"a"}`:                         false,
	}
}

// entryLimits returns bodies and whether they are taken.
func entryLimits() map[string]bool {
	x := strings.Repeat
	uid := func(uid string) string { return `{"uid":"` + uid + `","mode":"hot"}` }
	match := func(match, mode string) string { return `{"match":"` + match + `","mode":"` + mode + `"}` }
	return map[string]bool{
		uid(x("8", 64)):                          true,
		uid(x("8", 65)):                          false,
		uid(x("ü", 32)):                          true,
		uid(x("ü", 33)):                          false,
		uid(`8\u007f`):                           false,
		uid(""):                                  false,
		`{"uid":"8"}`:                            false,
		`{"uid":"8","mode":"none"}`:              false,
		`{"uid":8,"mode":"hot"}`:                 false,
		`{"uid":"8","mode":"hot","ttl":1}`:       false,
		`{"uid":"8","mode":"hot","boards":null}`: true,
		`{"uid":"8","mode":"hot","boards":[]}`:   true,
		`{"uid":"8","mode":"hot","boards":["` + x("b", 200) + `"]}`: true,
		`{"uid":"8","mode":"hot","boards":["` + x("b", 201) + `"]}`: false,
		`{"uid":"8","mode":"hot","boards":["a b"]}`:                 false,
		`{"uid":"8","match":"9","mode":"hot"}`:                      false,
		`{"match":"9","mode":"hot","boards":["9"]}`:                 false,
		match(x("b", 200), "super-hot"):                             true,
		match(x("b", 201), "super-hot"):                             false,
		match(x("b", 201), "blocked"):                               true,
		match("9_*", "blocked"):                                     true,
		match("9_*", "hot"):                                         true,
		match("9_[0-9]", "blocked"):                                 true,
		match("9_[0-9", "blocked"):                                  false,
		match("", "blocked"):                                        false,
		`{"mode":"blocked"}`:                                        false,
		`null`:                                                      false,
	}
}
