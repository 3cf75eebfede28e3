package sidecar_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	v1 "rankcache/proto/rankcache/v1"
)

// recordedRequest is one request, and what asks it and returns the answer as text.
type recordedRequest struct {
	name   string
	answer func(t *testing.T) string
}

// requests returns all of them. They are asked one after the other.
func (w *recordedWorld) requests() []recordedRequest {
	return slices.Concat(w.pages(), w.members(), w.classes(), w.batches(), w.bounded(), w.mistakes(), w.withoutRedis(), w.older(), w.conditional(), w.calls(), w.streams(), w.commands())
}

// get is a GET of a data port.
func (w *recordedWorld) get(port, target string) recordedRequest {
	return w.ask(port, "GET", target, "", nil)
}

func (w *recordedWorld) ask(port, method, target, body string, header http.Header) recordedRequest {
	addr := map[string]string{"http": w.http, "away": w.away, "ledger": w.ledger, "rpc": w.rpc, "rpc away": w.rpcAway}[port]
	name := strings.TrimSpace(fmt.Sprint(port, " ", method, " ", target, " ", body))
	for _, k := range []string{"Accept-Encoding", "If-None-Match", "If-Match"} {
		if v := header.Get(k); v != "" {
			name += " " + k + "=" + v
		}
	}
	return recordedRequest{name, func(t *testing.T) string { return askHTTP(t, addr, method, target, body, header) }}
}

var recordedClient = &http.Client{Transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 8}}

func askHTTP(t *testing.T, addr, method, target, body string, header http.Header) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://"+addr, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.URL.Opaque = target
	for k, v := range header {
		req.Header[k] = v
	}
	res, err := recordedClient.Do(req)
	if err != nil {
		t.Fatal(target, err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(target, err)
	}
	if res.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		if data, err = io.ReadAll(z); err != nil {
			t.Fatal(err)
		}
		res.Header.Del("Content-Length")
	}
	return fmt.Sprintf("%d\n%s%s\n", res.StatusCode, headerText(res.Header), steady(string(data)))
}

func headerText(h http.Header) string {
	var lines []string
	for k, v := range h {
		text := strings.Join(v, " | ")
		switch k {
		case "Date":
			continue
		case "Etag": // a hash of a time, too
			text = regexp.MustCompile(`[0-9a-f]{16}`).ReplaceAllString(text, "*")
		case "Rankcache-Age-Ms":
			text = "*"
		}
		lines = append(lines, k+": "+text+"\n")
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

var varying = []struct{ from, to string }{
	{`"(published_at|publishedAt)": ?"[^"]*"`, `"$1":"*"`}, {`"age_ms":[0-9]+`, `"age_ms":*`}, {`,? ?"ageMs": ?"[0-9]+"`, ``}, {`id: \S+`, `id: *`}, {`"id":"[0-9a-f]+\.1"`, `"id":"*"`},
	{`of [0-9.]+(ms|s|µs) ago`, `of * ago`},
}

// steady leaves out what varies.
func steady(text string) string {
	for _, v := range varying {
		text = regexp.MustCompile(v.from).ReplaceAllString(text, v.to)
	}
	return text
}

func recordedIDs() (ids []string) {
	for _, b := range recordedBoards {
		if !strings.HasPrefix(string(b.id), "hourly") {
			ids = append(ids, string(b.id))
		}
	}
	return append(ids, "missing", "shut", "wrong")
}

func (w *recordedWorld) pages() (all []recordedRequest) {
	args := []string{"", "?limit=5", "?limit=3&start=2", "?limit=4&start=498", "?limit=2&start=100000", "?limit=3&order=asc", "?limit=3&start=1&order=asc",
		"?limit=5&profiles=1", "?limit=3&me=m002", "?limit=3&me=m050", "?limit=3&me=nobody", "?limit=3&me=m002&profiles=1", "?limit=3&me=m050&order=asc", "?limit=3&start=600&me=m000",
		"?limit=3&me=m040&around=2", "?limit=3&me=m001&around=0&gap=1", "?limit=3&me=m007&gap=1", "?limit=3&me=m010&around=3&gap=1&order=asc", "?limit=3&me=nobody&around=2&gap=1",
		"?limit=2&me=m007&around=1&profiles=1", "?limit=6&rank_mode=competition", "?limit=6&rank_mode=dense", "?limit=3&start=4&rank_mode=dense&percentile=1", "?limit=4&percentile=1", "?limit=4&order=asc&rank_mode=competition&percentile=1",
		"?limit=3&me=m003&rank_mode=competition", "?limit=3&me=m003&rank_mode=dense&around=2", "?limit=3&me=m060&percentile=1&around=1&gap=1", "?limit=2&me=m003&percentile=1&profiles=1&rank_mode=competition",
		"?limit=4&room=88", "?limit=4&room=99", "?limit=4&room=77&me=m003", "?limit=500&start=0", "?limit=2&rank_mode=ordinal"}
	for _, id := range recordedIDs() {
		for _, a := range args {
			if a == "?limit=500&start=0" && id != "whole" && id != "hot" {
				continue
			}
			all = append(all, w.get("http", "/v1/boards/"+id+"/top"+a))
		}
	}
	for _, id := range []string{"whole", "hot", "small"} { // kept pages, and known bytes
		for i := range 3 {
			r := w.get("http", "/v1/boards/"+id+"/top?limit=7")
			r.name = fmt.Sprint(r.name, " again ", i)
			all = append(all, r)
		}
	}
	return append(all, w.ask("http", "HEAD", "/v1/boards/whole/top?limit=3", "", nil), w.ask("http", "HEAD", "/v1/boards/small/top?limit=3", "", nil))
}

func (w *recordedWorld) members() (all []recordedRequest) {
	args := []string{"", "?order=asc", "?profiles=1", "?around=2", "?around=0", "?around=3&order=asc&profiles=1", "?rank_mode=competition", "?rank_mode=dense&around=1", "?percentile=1", "?percentile=1&rank_mode=competition&around=2&profiles=1", "?room=99", "?room=88&around=1"}
	for _, id := range recordedIDs() {
		for _, m := range []string{"m000", "m005", "m055", "nobody", "m%30%301"} {
			for i, a := range args {
				if i > 3 && m == "m005" {
					break
				}
				all = append(all, w.get("http", "/v1/boards/"+id+"/members/"+m+a))
			}
		}
	}
	return all
}

func (w *recordedWorld) classes() (all []recordedRequest) {
	tops := []string{"", "limit=3", "limit=3&me=m003", "limit=3&me=m020&around=1&gap=1", "limit=3&trend=1", "limit=3&me=m004&trend=1", "limit=3&me=m004&around=1&trend=1&profiles=1", "limit=3&trend=1&rank_mode=competition&percentile=1",
		"limit=2&trend=1&rank_mode=dense", "limit=3&order=asc&trend=1", "limit=2&profiles=1&trend=1", "limit=2&room=88", "limit=500"}
	members := []string{"", "around=2", "trend=1", "trend=1&around=1", "trend=1&rank_mode=competition&percentile=1", "profiles=1&order=asc"}
	named := []string{"act/%s?x=7", "act/%s?x=8", "shown/%s?", "far/%s?zone=9", "tie/%s?x=1", "tie/%s?x=2", "trimmed/%s?zone=1", "two/%s?x=1&y=2", "unknown/%s?", "act/%s?", "two/%s?x=1", "act/%s?x=7&x=8", "act/%s?x=a%%20b"}
	for _, at := range []string{"", "&at=now", "&at=previous", "&at=20261123-H08", "&at=20261123-H11", "&at=2026-11-23T09:10:00Z", "&at=20261101-H01", "&at=nonsense"} {
		for _, zone := range []string{"1", "2"} {
			named = append(named, "hourly/%s?zone="+zone+at)
		}
	}
	for _, name := range append(named, "act/%s?x=7&at=now", "act/%s?x=7&at=previous") {
		for _, a := range tops {
			all = append(all, w.get("http", "/v1/classes/"+strings.TrimSuffix(fmt.Sprintf(name, "top")+"&"+a, "&")))
		}
		for _, m := range []string{"m004", "nobody"} {
			for _, a := range members {
				all = append(all, w.get("http", "/v1/classes/"+strings.TrimSuffix(fmt.Sprintf(name, "members/"+m)+"&"+a, "&")))
			}
		}
	}
	return append(all, w.get("http", "/v1/classes"))
}

func (w *recordedWorld) post(port, target, body string) recordedRequest {
	return w.ask(port, "POST", target, body, nil)
}

func (w *recordedWorld) batches() (all []recordedRequest) {
	for _, id := range recordedIDs() {
		for _, a := range []string{"", "?order=asc", "?profiles=1", "?rank_mode=competition&percentile=1", "?rank_mode=dense", "?percentile=1&order=asc"} {
			all = append(all, w.post("http", "/v1/boards/"+id+"/members:batch"+a, `{"members":["m003","nobody","m000","m003","m041"]}`))
		}
		all = append(all, w.post("http", "/v1/boards:batch", `{"boards":[{"board":"`+id+`","limit":3},{"board":"`+id+`","limit":2,"start":1,"me":"m004","around":1,"gap":true},{"board":"`+id+`","limit":2,"order":"asc","me":"m070","profiles":true},{"board":"`+id+`","limit":2,"rank_mode":"competition","percentile":true,"me":"m003"}]}`))
	}
	for _, body := range []string{`{"members":[]}`, `{}`, `{"members":["a"]} x`, `{"members":["a\u0000"]}`, `{"members":"a"}`, `{"membres":["a"]}`} {
		all = append(all, w.post("http", "/v1/boards/whole/members:batch", body))
	}
	for _, body := range []string{`{"boards":[]}`, `{}`, `{"boards":[{"board":"a b"}]}`, `{"boards":[{"board":"whole","limit":0}]}`, `{"boards":[{"board":"whole","around":1}]}`, `{"boards":[{"board":"whole","limit":2},{"board":"missing"},{"board":"shut"},{"board":"wrong","limit":2},{"board":"hot","limit":2,"me":"m000"},{"board":"small","limit":2,"me":"m000"},{"board":"small","limit":2,"rank_mode":"dense"},{"board":"foreign","limit":1}]}`, `{"boards":[{"board":"whole","rank_mode":"x"}]}`} {
		all = append(all, w.post("http", "/v1/boards:batch", body))
	}
	all = append(all, w.get("http", "/v1/profiles/m003"), w.get("http", "/v1/profiles/m007"), w.get("http", "/v1/profiles/m011"), w.post("http", "/v1/profiles:batch", `{"members":["m003","m007","m011"]}`), w.post("http", "/v1/profiles:batch", `{"members":[]}`))
	return all
}

// bounded asks with bounds that the copies meet, that Redis meets alone, and that nothing does.
func (w *recordedWorld) bounded() (all []recordedRequest) {
	states := func(id string) []string {
		state := w.states[id]
		i := strings.LastIndexByte(state, '-')
		run, seq, _ := strings.Cut(state[:i], "-")
		return []string{"min_state=" + state, "min_state=" + state[:i+1], "min_state=" + run + "-1-", "min_state=" + run + "-" + seq + "-00000000beef", "min_state=" + run + "-99999-", "min_state=99-1-", "min_state=9999999999999-1-"}
	}
	for _, id := range []string{"whole", "tiny", "old", "unproved", "tie:1", "hot", "hotwhole", "small", "foreign", "missing", "final"} {
		bounds := []string{"min_seq=1", "min_seq=99999", "max_age_ms=0", "max_age_ms=60000", "max_age_ms=60000&min_seq=2", "min_seq=99999&wait_ms=1", "min_seq=99999&room=99"}
		if id != "foreign" && id != "missing" {
			bounds = append(bounds, states(id)...)
		}
		for _, b := range bounds {
			all = append(all, w.get("http", "/v1/boards/"+id+"/top?limit=2&"+b), w.get("http", "/v1/boards/"+id+"/members/m001?"+b), w.get("http", "/v1/boards/"+id+"/members/m001?around=1&"+b), w.get("http", "/v1/boards/"+id+"/members/nobody?"+b),
				w.get("http", "/v1/boards/"+id+"/top?limit=2&me=m040&"+b), w.get("http", "/v1/boards/"+id+"/top?limit=2&me=m140&gap=1&"+b), w.get("http", "/v1/boards/"+id+"/members/m002?rank_mode=competition&"+b),
				w.post("http", "/v1/boards/"+id+"/members:batch?"+b, `{"members":["m001","nobody"]}`), w.get("http", "/v1/boards/"+id+"/top?limit=2&start=560&"+b))
		}
	}
	return all
}

func (w *recordedWorld) mistakes() (all []recordedRequest) {
	for _, target := range []string{"/", "/v1", "/v1/boards", "/v1/boards/whole", "/v1/boards/whole/", "/v1/boards/whole/members", "/v1/boards/whole/members/", "/v1/boards/whole/members/a/b", "/v1/boards//top", "/v1/boards/a%20b/top", "/v1/boards/%zz/top",
		"/v1/boards/whole/top?limit=0", "/v1/boards/whole/top?limit=501", "/v1/boards/whole/top?limit=x", "/v1/boards/whole/top?start=-1", "/v1/boards/whole/top?start=100000001", "/v1/boards/whole/top?order=up", "/v1/boards/whole/top?me=", "/v1/boards/whole/top?me=%00", "/v1/boards/whole/top?me=a&me=b",
		"/v1/boards/whole/top?profiles=2", "/v1/boards/whole/top?around=1", "/v1/boards/whole/top?gap=1", "/v1/boards/whole/top?me=a&around=101", "/v1/boards/whole/top?rank_mode=x", "/v1/boards/whole/top?trend=1", "/v1/boards/whole/top?at=now", "/v1/boards/whole/top?x=1", "/v1/boards/whole/top?min_state=x", "/v1/boards/whole/top?min_state=0-1-",
		"/v1/boards/whole/top?min_seq=x", "/v1/boards/whole/top?wait_ms=9999", "/v1/boards/whole/top?room=%00", "/v1/boards/whole/members/m001?limit=2", "/v1/boards/whole/members/m001?around=101", "/v1/boards/whole/members/m001?gap=1", "/v1/classes/", "/v1/classes/x", "/v1/classes/act/members:batch", "/v1/profiles", "/v1/profiles/a/b", "/openapi.yml"} {
		all = append(all, w.get("http", target))
	}
	for _, r := range []string{"POST /v1/boards/whole/top", "PUT /v1/boards/whole/members/m001", "GET /v1/boards/whole/members:batch", "GET /v1/boards:batch", "DELETE /v1/classes"} {
		method, target, _ := strings.Cut(r, " ")
		all = append(all, w.ask("http", method, target, "", nil))
	}
	return all
}

func (w *recordedWorld) withoutRedis() (all []recordedRequest) {
	for _, port := range []string{"away", "ledger"} {
		for _, id := range []string{"whole", "old", "hot", "hotwhole", "small", "missing", "tie:2", "final"} {
			for _, a := range []string{"top?limit=2", "top?limit=2&start=3&order=asc", "top?limit=2&me=m001", "top?limit=2&me=m040", "top?limit=2&me=m149", "top?limit=2&me=m040&around=2&gap=1", "top?limit=2&me=m149&around=2", "top?limit=3&rank_mode=competition&percentile=1", "top?limit=2&rank_mode=dense", "top?limit=2&start=600",
				"top?limit=2&min_seq=5", "top?limit=2&min_seq=99999", "top?limit=2&max_age_ms=0", "top?limit=2&me=m149&min_seq=99999", "members/m001", "members/m001?around=2", "members/nobody", "members/nobody?around=1", "members/m003?rank_mode=competition&percentile=1", "members/m001?min_seq=99999", "members/m001?max_age_ms=1000&around=1"} {
				all = append(all, w.get(port, "/v1/boards/"+id+"/"+a))
			}
			all = append(all, w.post(port, "/v1/boards/"+id+"/members:batch", `{"members":["m001","nobody"]}`), w.post(port, "/v1/boards/"+id+"/members:batch?percentile=1", `{"members":["m001","nobody"]}`))
		}
		all = append(all, w.post(port, "/v1/boards:batch", `{"boards":[{"board":"whole","limit":2},{"board":"missing"},{"board":"shut"},{"board":"hot","limit":2,"me":"m000","gap":true},{"board":"small","limit":2,"me":"m000"}]}`),
			w.get(port, "/v1/classes/hourly/top?zone=1&limit=2&trend=1"), w.get(port, "/v1/classes/hourly/top?zone=1&limit=2&trend=1&at=previous"), w.get(port, "/v1/classes/hourly/members/m003?zone=1&at=previous&trend=1"), w.get(port, "/v1/classes/hourly/top?zone=2&limit=2&me=m001&trend=1"),
			w.post(port, "/compat/rank/list", `{"actId":1,"rankObj":{"rankId":3,"objId":9},"limit":1,"tid":"m001"}`), w.get(port, "/v1/scores?board=small&limit=2"))
	}
	return all
}

func (w *recordedWorld) older() (all []recordedRequest) {
	for _, board := range []string{`"rankId":1,"objId":7`, `"rankId":2`, `"rankId":3,"objId":9`, `"rankId":4,"objId":1`, `"rankId":4,"objId":2`, `"rankId":5,"objId":1`, `"rankId":3`, `"rankId":77`} {
		for _, more := range []string{``, `,"limit":2`, `,"limit":2,"tid":"m004"`, `,"limit":2,"tid":"m100","need_total":true`, `,"limit":2,"tid":"nobody"`, `,"limit":2,"start":3,"order_type":1`, `,"limit":2,"tid":"m004","needDataFilter":["INFO"]`, `,"limit":2,"needDataFilter":["ALL_GROUP"]`, `,"limit":2,"needDataFilter":["RAW","SPEC_GROUP"],"groups":["m001","x"]`, `,"limit":2,"noCache":true,"tid":"m002"`, `,"limit":9999`, `,"start":-1`} {
			all = append(all, w.post("http", "/compat/rank/list", `{"actId":1,"rankObj":{`+board+`}`+more+`}`))
		}
	}
	for _, at := range []string{"1795428599", "1795424400", "1795410000", "0"} {
		all = append(all, w.post("http", "/compat/rank/list", `{"actId":2,"rankObj":{"rankId":1,"objId":"1"},"limit":2,"tid":"m001","t_time":`+at+`}`))
	}
	for _, name := range []string{"whole", "tiny", "hot", "small", "tie", "act", "shut", "missing", "hourly", "a b", "foreign", "trimmed"} {
		for _, kind := range []string{"", `,"rank_type":"1"`, `,"rank_type":"7"`} {
			all = append(all, w.post("http", "/compat/getScore", `{"rank_name":"`+name+`","rank_item":"m002"`+kind+`}`), w.post("http", "/compat/getScore", `{"rank_name":"`+name+`","rank_item":"nobody"`+kind+`}`),
				w.post("http", "/compat/topScore", `{"rank_name":"`+name+`","limit":3`+kind+`}`), w.post("http", "/compat/topScore", `{"rank_name":"`+name+`"`+kind+`}`))
		}
		if !strings.Contains(name, " ") {
			all = append(all, w.get("http", "/v1/scores?board="+name+"&limit=3"), w.get("http", "/v1/scores?board="+name+"&limit=2&start=2"), w.get("http", "/v1/scores/m003?board="+name), w.get("http", "/v1/scores/nobody?board="+name))
		}
	}
	return append(all, w.get("http", "/v1/scores?limit=2"), w.get("http", "/v1/scores/m001"), w.get("http", "/v1/scores?limit=501"), w.get("http", "/v1/scores?me=x"), w.ask("http", "POST", "/v1/scores", "", nil))
}

// conditional asks with tags and codings.
func (w *recordedWorld) conditional() (all []recordedRequest) {
	for _, id := range []string{"whole", "hot", "small"} {
		for _, a := range []string{"top?limit=30", "top?limit=3&me=m001", "top?limit=3&me=m001&gap=1", "members/m001"} {
			target := "/v1/boards/" + id + "/" + a
			all = append(all, w.ask("http", "GET", target, "", http.Header{"Accept-Encoding": {"gzip"}}), w.ask("http", "GET", target, "", http.Header{"If-None-Match": {"*"}}), w.ask("http", "GET", target, "", http.Header{"If-Match": {`"x"`}}),
				recordedRequest{"http GET " + target + " with its tag", func(t *testing.T) string { return w.again(t, target) }})
		}
	}
	return all
}

// again asks with the tag of the answer before.
func (w *recordedWorld) again(t *testing.T, target string) string {
	res, err := recordedClient.Get("http://" + w.http + target)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, res.Body)
	_ = res.Body.Close()
	return askHTTP(t, w.http, "GET", target, "", http.Header{"If-None-Match": {res.Header.Get("ETag")}})
}

// calls asks by Connect's JSON and by two protocols of protobuf.
func (w *recordedWorld) calls() (all []recordedRequest) {
	var bodies []struct{ method, body string }
	add := func(method, format string, args ...any) {
		bodies = append(bodies, struct{ method, body string }{method, fmt.Sprintf(format, args...)})
	}
	for _, id := range recordedIDs() {
		address := fmt.Sprintf(`"address":{"board":%q}`, id)
		add("GetTop", `{%s,"limit":3}`, address)
		add("GetTop", `{%s,"limit":2,"start":"3","order":"DIRECTION_ASCENDING","profiles":true}`, address)
		add("GetTop", `{%s,"limit":2,"start":"560","bounds":{"minSeq":"3"}}`, address)
		add("GetTop", `{%s,"limit":2,"bounds":{"minSeq":"99999"}}`, address)
		for _, m := range []string{"m002", "nobody"} {
			add("GetStanding", `{%s,"member":%q}`, address, m)
			add("GetStanding", `{%s,"member":%q,"around":2,"profiles":true}`, address, m)
			add("GetStanding", `{%s,"member":%q,"order":"DIRECTION_ASCENDING","profiles":true,"bounds":{"maxAgeMs":"60000"}}`, address, m)
		}
		add("BatchStandings", `{%s,"members":["m001","nobody","m040"],"profiles":true}`, address)
		add("GetBoards", `{"boards":[{%s,"limit":2},{%s,"limit":2,"start":"2","profiles":true},{"address":{"board":"shut"}},{"address":{"board":"hot"},"limit":1}]}`, address, address)
	}
	for _, address := range []string{`{"class":"act","dimensions":{"x":"7"}}`, `{"class":"tie","dimensions":{"x":"2"}}`, `{"class":"hourly","dimensions":{"zone":"1"},"at":"previous"}`, `{"class":"hourly","dimensions":{"zone":"2"}}`, `{"class":"act"}`, `{"class":"x"}`, `{"board":"whole","room":"99"}`, `{"board":"whole","class":"act"}`, `{}`} {
		add("GetTop", `{"address":%s}`, address)
		add("GetTop", `{"address":%s,"limit":2,"profiles":true}`, address)
		add("GetTop", `{"address":%s,"limit":501}`, address)
		add("GetStanding", `{"address":%s,"member":"m003"}`, address)
		add("GetStanding", `{"address":%s,"member":"m003","around":1}`, address)
		add("BatchStandings", `{"address":%s,"members":["m003"]}`, address)
	}
	add("GetStanding", `{"address":{"board":"whole"},"member":"m003","around":101}`)
	add("GetStanding", `{"address":{"board":"small"},"member":"\u0000"}`)
	add("GetStanding", `{"address":{"board":"whole"},"member":"m003","bounds":{"minState":"x"}}`)
	add("BatchStandings", `{"address":{"board":"whole"}}`)
	add("BatchStandings", `{"address":{"board":"whole"},"members":[%s"a"]}`, strings.Repeat(`"a",`, 500))
	add("GetBoards", `{"boards":[]}`)
	for _, port := range []string{"rpc", "rpc away"} {
		for i, b := range bodies {
			if port == "rpc" || i%3 == 0 {
				all = append(all, w.call(port, b.method, b.body))
			}
			if port == "rpc" && i%4 == 0 {
				all = append(all, w.callBy("Connect", b.method, b.body), w.callBy("gRPC", b.method, b.body, connect.WithGRPC()))
			}
		}
	}
	return all
}

// call is a POST of Connect's JSON, whose spaces vary.
func (w *recordedWorld) call(port, method, body string) recordedRequest {
	r := w.ask(port, "POST", "/rankcache.v1.Boards/"+method, body, http.Header{"Content-Type": {"application/json"}})
	asked := r.answer
	r.answer = func(t *testing.T) string {
		text := asked(t)
		i := strings.Index(text, "\n{")
		head := regexp.MustCompile(`Content-Length: \d+\n`).ReplaceAllString(text[:i+1], "")
		return head + compacted(t, text[i+1:]) + "\n"
	}
	return r
}

func compacted(t *testing.T, text string) string {
	var b bytes.Buffer
	if err := json.Compact(&b, []byte(text)); err != nil {
		t.Fatalf("%v: %q", err, text)
	}
	text = regexp.MustCompile(`"value":"[^"]*",?`).ReplaceAllString(b.String(), "") // of the detail, which debug repeats
	return steady(text)
}

var recordedMessages = map[string][2]func() proto.Message{
	"GetTop":         {func() proto.Message { return new(v1.GetTopRequest) }, func() proto.Message { return new(v1.GetTopResponse) }},
	"GetStanding":    {func() proto.Message { return new(v1.GetStandingRequest) }, func() proto.Message { return new(v1.GetStandingResponse) }},
	"BatchStandings": {func() proto.Message { return new(v1.BatchStandingsRequest) }, func() proto.Message { return new(v1.BatchStandingsResponse) }},
	"GetBoards":      {func() proto.Message { return new(v1.GetBoardsRequest) }, func() proto.Message { return new(v1.GetBoardsResponse) }},
}

// callBy calls by a client of protobuf.
func (w *recordedWorld) callBy(protocol, method, body string, options ...connect.ClientOption) recordedRequest {
	return recordedRequest{protocol + " " + method + " " + body, func(t *testing.T) string {
		kinds := recordedMessages[method]
		req, res := kinds[0](), kinds[1]()
		if err := protojson.Unmarshal([]byte(body), req); err != nil {
			t.Fatal(err)
		}
		err := invoke(t.Context(), "http://"+w.rpc+"/rankcache.v1.Boards/"+method, req, res, options)
		if e, ok := errors.AsType[*connect.Error](err); ok {
			text := fmt.Sprint(e.Code(), ": ", e.Message(), "\n")
			for _, d := range e.Details() {
				v, err := d.Value()
				text += fmt.Sprint(asJSON(t, v), err, "\n")
			}
			return text
		}
		if err != nil {
			t.Fatal(err)
		}
		return asJSON(t, res) + "\n"
	}}
}

var recordedHTTP2 = func() *http.Client {
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	return &http.Client{Transport: &http.Transport{Protocols: &protocols}}
}()

func invoke(ctx context.Context, url string, req, res proto.Message, options []connect.ClientOption) error {
	switch req := req.(type) {
	case *v1.GetTopRequest:
		return invokeAs(ctx, url, req, res.(*v1.GetTopResponse), options)
	case *v1.GetStandingRequest:
		return invokeAs(ctx, url, req, res.(*v1.GetStandingResponse), options)
	case *v1.BatchStandingsRequest:
		return invokeAs(ctx, url, req, res.(*v1.BatchStandingsResponse), options)
	case *v1.GetBoardsRequest:
		return invokeAs(ctx, url, req, res.(*v1.GetBoardsResponse), options)
	}
	return errors.New("no such method")
}

func invokeAs[Req, Res any](ctx context.Context, url string, req *Req, res *Res, options []connect.ClientOption) error {
	answer, err := connect.NewClient[Req, Res](recordedHTTP2, url, options...).CallUnary(ctx, connect.NewRequest(req))
	if err == nil {
		proto.Merge(any(res).(proto.Message), any(answer.Msg).(proto.Message))
	}
	return err
}

func asJSON(t *testing.T, m proto.Message) string {
	data, err := protojson.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return compacted(t, string(data))
}

// streams takes the first event of each.
func (w *recordedWorld) streams() (all []recordedRequest) {
	for _, target := range []string{"/v1/boards/whole/live?limit=3", "/v1/boards/tiny/live?profiles=1", "/v1/boards/hot/live?limit=2&order=asc", "/v1/boards/small/live?limit=3&profiles=1", "/v1/boards/old/live", "/v1/classes/tie/live?x=1&limit=4", "/v1/classes/hourly/live?zone=1&limit=2", "/v1/classes/hourly/live?zone=1&limit=2&at=previous", "/v1/boards/missing/live?limit=2"} {
		all = append(all, recordedRequest{"first event of " + target, func(t *testing.T) string { return w.firstEvent(t, target) }})
	}
	return append(all, w.get("rpc", "/v1/boards/shut/live"), w.get("rpc", "/v1/boards/whole/live?limit=0"), w.get("rpc", "/v1/classes/x/live"), w.get("rpc away", "/v1/boards/small/live"))
}

func (w *recordedWorld) firstEvent(t *testing.T, target string) string {
	res, err := recordedClient.Get("http://" + w.rpc + target)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text := fmt.Sprintln(res.StatusCode)
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		if text += lines.Text() + "\n"; lines.Text() == "" && strings.Contains(text, "data: ") {
			break
		}
	}
	return steady(text)
}

// commands are those of Redis's clients.
func (w *recordedWorld) commands() (all []recordedRequest) {
	for _, id := range recordedIDs() {
		for _, c := range []string{"ZREVRANGE %s 0 4", "ZREVRANGE %s 0 4 WITHSCORES", "ZREVRANGE %s 2 -1", "ZREVRANGE %s -3 -1 WITHSCORES", "ZREVRANGE %s 498 503 WITHSCORES", "ZREVRANGE %s 5 2", "ZRANGE %s 0 3 WITHSCORES", "ZRANGE %s -2 -1", "ZRANGE %s 0 3 REV WITHSCORES",
			"ZREVRANK %s m003", "ZRANK %s m003", "ZREVRANK %s nobody", "ZSCORE %s m003", "ZSCORE %s nobody", "ZMSCORE %s m001 nobody m002", "ZCARD %s", "ZCOUNT %s 2 30", "ZCOUNT %s (2 +inf", "ZRANGEBYSCORE %s 2 9 WITHSCORES", "ZREVRANGEBYSCORE %s 30 (2 LIMIT 1 4", "ZRANGEBYSCORE %s -inf +inf LIMIT 0 3", "EXISTS %s", "ZREVRANGE %s x y"} {
			for _, proto := range []string{"2", "3"} {
				if proto == "2" || strings.Contains(c, "SCORE") {
					command := fmt.Sprintf(c, id)
					all = append(all, recordedRequest{"RESP" + proto + " " + command, func(t *testing.T) string { return w.command(t, proto, command) }})
				}
			}
		}
	}
	return all
}

// command sends HELLO, the command and an ECHO, and returns what comes between.
func (w *recordedWorld) command(t *testing.T, proto, command string) string {
	nc, err := net.Dial("tcp", w.resp)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	_ = nc.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := fmt.Fprintf(nc, "HELLO %s\r\nECHO begin\r\n%s\r\nECHO end\r\n", proto, command); err != nil {
		t.Fatal(err)
	}
	const begin, end = "$5\r\nbegin\r\n", "$3\r\nend\r\n"
	var got []byte
	room := make([]byte, 64<<10)
	for !bytes.HasSuffix(got, []byte(end)) {
		n, err := nc.Read(room)
		if err != nil {
			t.Fatalf("%s: %v after %q", command, err, got)
		}
		got = append(got, room[:n]...)
	}
	_, got, _ = bytes.Cut(got, []byte(begin))
	return strings.ReplaceAll(string(bytes.TrimSuffix(got, []byte(end))), "\r\n", "\n")
}
