package bench

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"rankcache"
	"rankcache/internal/lab/load"
	"rankcache/wire"
)

const (
	manyMembers = 4096 // different members requested in turn
	batchSize   = 20   // members of one batch
	// manyTraces is so many requests, each with a trace of its own, that none is the
	// same as one that a server may remember.
	manyTraces = 1 << 14
)

// getRequest composes a GET; fields are whole header lines.
func getRequest(path string, fields ...string) []byte {
	return []byte("GET " + path + " HTTP/1.1\r\nHost: localhost\r\n" + strings.Join(append(fields, ""), "\r\n") + "\r\n")
}

// firstReply asks once and returns the reply, its body read.
func firstReply(t load.Target, request []byte) (*http.Response, []byte, error) {
	raw, err := load.Once(t, request)
	if err != nil {
		return nil, nil, err
	}
	return parseReply(raw)
}

func parseReply(raw []byte) (*http.Response, []byte, error) {
	resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(raw)), nil)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp, body, err
}

const sourceWait = 20 * time.Second // a hot board is promoted within a second or two

// awaitSource waits until the target answers from where it is to be measured: a
// hot page that was not requested lately has to be read again.
func awaitSource(t load.Target, request []byte, source string) error {
	for until := time.Now().Add(sourceWait); source != ""; time.Sleep(10 * time.Millisecond) {
		resp, body, err := firstReply(t, request)
		if err != nil {
			return err
		}
		got := resp.Header.Get("Rankcache-Source")
		if got == source {
			return nil
		}
		if time.Now().After(until) {
			return fmt.Errorf("answers come from %q, want %q: %.80q", got, source, body)
		}
	}
	return nil
}

// askPage asks for bytes that stay the same: those that were written down.
func askPage(path string) func(*readBench, load.Target) (load.Question, error) {
	return func(b *readBench, t load.Target) (q load.Question, err error) {
		q = load.Question{Requests: [][]byte{getRequest(path)}, Status: http.StatusOK}
		want := b.servers.bodies["/"+filepath.Base(path)]
		_, body, err := firstReply(t, q.Requests[0])
		if err == nil && !bytes.Equal(body, want) {
			err = fmt.Errorf("answered %d bytes, want the %d of rankcache's page: %.80s", len(body), len(want), body)
		}
		q.Length = len(body)
		return q, err
	}
}

// askTop asks for the first n rows.
func askTop(path string, n int) func(*readBench, load.Target) (load.Question, error) {
	return func(b *readBench, t load.Target) (load.Question, error) {
		q := load.Question{Requests: [][]byte{getRequest(path)}, Status: http.StatusOK}
		_, body, err := firstReply(t, q.Requests[0])
		if err != nil {
			return q, err
		}
		q.Length = len(body)
		return q, checkRows(body, b.servers.top[:n])
	}
}

// askTraced asks for the first 50 rows with other bytes each time, as an app does that
// traces its requests.
func askTraced(b *readBench, t load.Target) (load.Question, error) {
	q, err := askTop(top50Path, 50)(b, t)
	q.Requests = make([][]byte, manyTraces)
	for i := range q.Requests {
		q.Requests[i] = getRequest(top50Path, fmt.Sprintf("traceparent: 00-%032x-%016x-01", i+1, i+1))
	}
	return q, err
}

// checkRows reports whether a page has these rows.
func checkRows(body []byte, want []rankcache.Entry) error {
	var page plainPage
	if err := json.Unmarshal(body, &page); err != nil {
		return fmt.Errorf("the first answer is %.80q: %w", body, err)
	}
	if page.Source == "" || len(page.Entries) != len(want) {
		return fmt.Errorf("the first answer has %d rows, want %d: %.80q", len(page.Entries), len(want), body)
	}
	for i, e := range want {
		if (page.Entries[i] != plainRow{i + 1, e.Member, e.Score}) {
			return fmt.Errorf("row %d of the first answer is %+v, want %+v", i+1, page.Entries[i], e)
		}
	}
	return nil
}

// askNotModified asks with the tag of the page that the caller has.
func askNotModified(_ *readBench, t load.Target) (q load.Question, err error) {
	resp, _, err := firstReply(t, getRequest(top50Path))
	if err != nil {
		return q, err
	}
	q = load.Question{Requests: [][]byte{getRequest(top50Path, "If-None-Match: "+resp.Header.Get("ETag"))}, Status: http.StatusNotModified}
	if resp, _, err = firstReply(t, q.Requests[0]); err == nil && resp.StatusCode != q.Status {
		err = fmt.Errorf("the first answer has status %d", resp.StatusCode)
	}
	return q, err
}

func askGzip(b *readBench, t load.Target) (load.Question, error) {
	q := load.Question{Requests: [][]byte{getRequest(top50Path, "Accept-Encoding: gzip")}, Status: http.StatusOK}
	resp, packed, err := firstReply(t, q.Requests[0])
	if err != nil {
		return q, err
	}
	if resp.Header.Get("Content-Encoding") != "gzip" {
		return q, errors.New("the first answer is not in gzip")
	}
	plain, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return q, err
	}
	body, err := io.ReadAll(plain)
	if err != nil {
		return q, err
	}
	q.Length = len(packed)
	return q, checkRows(body, b.servers.top[:50])
}

// someMembers draws members of a board with so many, the same in every run.
func someMembers(board int) []string {
	rng := rand.New(rand.NewPCG(13, 17))
	members := make([]string, manyMembers)
	for i := range members {
		members[i] = benchMember(rng.IntN(board))
	}
	return members
}

// askStandings asks for one member after the other. The query may add their
// neighbours.
func askStandings(query string) func(*readBench, load.Target) (load.Question, error) {
	return func(b *readBench, t load.Target) (load.Question, error) {
		q := load.Question{Status: http.StatusOK}
		for _, member := range someMembers(b.members) {
			q.Requests = append(q.Requests, getRequest(memberPath+member+query))
		}
		best := b.servers.top[0]
		_, body, err := firstReply(t, getRequest(memberPath+best.Member+query))
		if err != nil {
			return q, err
		}
		var got plainRow
		if err := json.Unmarshal(body, &got); err != nil || (got != plainRow{1, best.Member, best.Score}) {
			return q, fmt.Errorf("the best member's standing is %+v (%v), want %+v: %.200s", got, err, best, body)
		}
		return q, nil
	}
}

func askBatch(b *readBench, t load.Target) (load.Question, error) {
	q := load.Question{Status: http.StatusOK}
	for members := range slices.Chunk(someMembers(b.members), batchSize) {
		body, _ := json.Marshal(map[string][]string{"members": members})
		q.Requests = append(q.Requests, fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", batchPath, len(body), body))
	}
	resp, body, err := firstReply(t, q.Requests[0])
	if err == nil && (resp.StatusCode != q.Status || bytes.Count(body, []byte(`"rank":`)) != batchSize || bytes.Contains(body, []byte(`"rank":null`))) {
		err = fmt.Errorf("the first answer is not %d standings: %.200s", batchSize, body)
	}
	return q, err
}

// redisCommand composes a Redis command.
func redisCommand(args ...string) []byte {
	text := fmt.Appendf(nil, "*%d\r\n", len(args))
	for _, arg := range args {
		text = fmt.Appendf(text, "$%d\r\n%s\r\n", len(arg), arg)
	}
	return text
}

func askRange(b *readBench, t load.Target) (load.Question, error) {
	q := load.Question{Requests: [][]byte{redisCommand("ZREVRANGE", string(benchBoardID), "0", "49", "WITHSCORES")}}
	raw, err := load.Once(t, q.Requests[0])
	if err != nil {
		return q, err
	}
	want := fmt.Appendf(nil, "*%d\r\n", 100)
	for _, e := range b.servers.top[:50] {
		for _, field := range []string{e.Member, string(wire.AppendScore(nil, e.Score))} {
			want = fmt.Appendf(want, "$%d\r\n%s\r\n", len(field), field)
		}
	}
	if !bytes.Equal(raw, want) {
		err = fmt.Errorf("the first answer is %.200q", raw)
	}
	q.Length = len(want)
	return q, err
}

func askRank(b *readBench, t load.Target) (load.Question, error) {
	q := load.Question{Replies: 2}
	for _, member := range someMembers(b.members) {
		q.Requests = append(q.Requests, append(redisCommand("ZREVRANK", string(benchBoardID), member), redisCommand("ZSCORE", string(benchBoardID), member)...))
	}
	raw, err := load.Once(t, redisCommand("ZREVRANK", string(benchBoardID), b.servers.top[0].Member))
	if err == nil && string(raw) != ":0\r\n" {
		err = fmt.Errorf("the best member's rank is %q", raw)
	}
	return q, err
}
