package bench

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"time"

	"rankcache"
	"rankcache/internal/lab/load"
	"rankcache/wire"
)

const (
	manyMembers = 4096 // different members requested in turn
	batchSize   = 20   // members of one batch
	// manyDifferent is so many requests that none is the same as one that a server may remember.
	manyDifferent = 1 << 14
)

const sourceWait = 20 * time.Second // a hot board is promoted within a second or two

// awaitSource waits until the target answers from where it is to be measured: a
// hot page that was not requested lately has to be read again.
func awaitSource(t load.Target, q *load.Question, source string) error {
	for until := time.Now().Add(sourceWait); source != ""; time.Sleep(10 * time.Millisecond) {
		resp, body, err := load.Ask(t, q)
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

// get asks for a path and expects status 200; fields are whole header lines.
func get(path string, fields ...string) load.Question {
	return load.Question{Paths: []string{path}, Fields: fields, Status: http.StatusOK}
}

// askPage asks for bytes that stay the same: those that were written down.
func askPage(path string) func(*readBench, load.Target) (load.Question, error) {
	return func(b *readBench, t load.Target) (q load.Question, err error) {
		q = get(path)
		want := b.servers.bodies["/"+filepath.Base(path)]
		_, body, err := load.Ask(t, &q)
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
		q := get(path)
		_, body, err := load.Ask(t, &q)
		if err != nil {
			return q, err
		}
		q.Length = len(body)
		return q, checkRows(body, b.servers.top[:n])
	}
}

// askDifferent asks for the first 50 rows with other bytes each time, as callers do that trace their requests.
func askDifferent(b *readBench, t load.Target) (load.Question, error) {
	q, err := askTop(top50Path, 50)(b, t)
	q.Paths = make([]string, manyDifferent)
	for i := range q.Paths {
		q.Paths[i] = fmt.Sprint(top50Path, "&max_age_ms=", 100_000+i)
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
	q = get(top50Path)
	resp, _, err := load.Ask(t, &q)
	if err != nil {
		return q, err
	}
	q.Fields, q.Status = []string{"If-None-Match: " + resp.Header.Get("ETag")}, http.StatusNotModified
	if resp, _, err = load.Ask(t, &q); err == nil && resp.StatusCode != q.Status {
		err = fmt.Errorf("the first answer has status %d", resp.StatusCode)
	}
	return q, err
}

func askGzip(b *readBench, t load.Target) (load.Question, error) {
	q := get(top50Path, "Accept-Encoding: gzip")
	resp, packed, err := load.Ask(t, &q)
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
		best := b.servers.top[0]
		q := get(memberPath + best.Member + query)
		_, body, err := load.Ask(t, &q)
		if err != nil {
			return q, err
		}
		var got plainRow
		if err := json.Unmarshal(body, &got); err != nil || (got != plainRow{1, best.Member, best.Score}) {
			return q, fmt.Errorf("the best member's standing is %+v (%v), want %+v: %.200s", got, err, best, body)
		}
		for _, member := range someMembers(b.members) {
			q.Paths = append(q.Paths, memberPath+member+query)
		}
		return q, nil
	}
}

// askBatch asks for the same members each time: h2load sends one body.
func askBatch(b *readBench, t load.Target) (load.Question, error) {
	q := get(batchPath)
	q.Body, _ = json.Marshal(map[string][]string{"members": someMembers(b.members)[:batchSize]})
	resp, body, err := load.Ask(t, &q)
	if err == nil && (resp.StatusCode != q.Status || bytes.Count(body, []byte(`"rank":`)) != batchSize || bytes.Contains(body, []byte(`"rank":null`))) {
		err = fmt.Errorf("the first answer is not %d standings: %.200s", batchSize, body)
	}
	return q, err
}

func askRange(b *readBench, t load.Target) (load.Question, error) {
	q := load.Question{Command: respTop50}
	raw, err := load.AskRedis(t, q.Command...)
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
	return q, err
}

// askRank asks for one member's rank: redis-benchmark sends one command.
func askRank(b *readBench, t load.Target) (load.Question, error) {
	q := load.Question{Command: []string{"ZREVRANK", string(benchBoardID), b.servers.top[0].Member}}
	raw, err := load.AskRedis(t, q.Command...)
	if err == nil && string(raw) != ":0\r\n" {
		err = fmt.Errorf("the best member's rank is %q", raw)
	}
	q.Command[2] = someMembers(b.members)[0]
	return q, err
}
