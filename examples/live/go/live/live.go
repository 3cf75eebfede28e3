// Package live is a recipe for apps in Go: it keeps the page of a board by the sidecar's
// stream of server-sent events.
package live

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	silence   = 15 * time.Second // the sidecar sends an event every 5 s
	leastWait = 100 * time.Millisecond
	mostWait  = time.Second
	maxEvent  = 4 << 20
)

// Page is the head of a board. It is never changed, so it may be shared.
type Page struct {
	ID      string  `json:"id"`
	Source  string  `json:"source"` // local, hot or redis
	Run     uint64  `json:"run"`    // history of the board in Redis; 0: not known
	Seq     uint64  `json:"seq"`    // changes in this run; 0: not known
	Total   int64   `json:"total"`
	Entries []Entry `json:"entries"`
}

// Entry is one row, the best first.
type Entry struct {
	Rank   int64   `json:"rank"`
	Member string  `json:"member"`
	Score  float64 `json:"score"`
}

// Event is news of the page.
type Event struct {
	Kind string // page, diff, age, end, or away: there is no stream now
	Page *Page  // the page to show; nil before the first, and when the board is blocked or deleted
	Data []byte // as the sidecar sent it, or why it is away
}

// Follower keeps a page. Run calls Changed for each event, one at a time.
type Follower struct {
	URL     string // such as http://127.0.0.1:8975/v1/boards/1_2_3/live?limit=50
	Changed func(Event)

	last  *Page // the stream's page, to which the next diff applies
	shown *Page // the same, or a newer one of another sidecar
	wait  time.Duration
}

var direct = &http.Client{Transport: &http.Transport{DisableCompression: true}} // no time-out: a stream lasts

// Run follows the stream until ctx ends.
func (f *Follower) Run(ctx context.Context) {
	f.wait = leastWait
	for {
		err := f.stream(ctx)
		if ctx.Err() != nil {
			return
		}
		f.Changed(Event{"away", f.shown, []byte(err.Error())})
		select { // jitter: all apps of a sidecar lose it at the same time
		case <-time.After(f.wait + rand.N(f.wait)):
			f.wait = min(2*f.wait, mostWait)
		case <-ctx.Done():
			return
		}
	}
}

// stream follows one connection until it ends.
func (f *Follower) stream(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	silent := time.AfterFunc(silence, cancel)
	defer silent.Stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, f.URL, nil)
	if err != nil {
		return err
	}
	if f.last != nil {
		req.Header.Set("Last-Event-ID", f.last.ID)
	}
	resp, err := direct.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return f.refused(resp)
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, maxEvent)
	var kind, data string
	for lines.Scan() {
		switch name, value, _ := strings.Cut(lines.Text(), ": "); name {
		case "event":
			kind, f.wait = value, leastWait
		case "data":
			data = value
		case "retry":
			ms, _ := strconv.Atoi(value)
			f.wait = max(leastWait, time.Duration(ms)*time.Millisecond)
		case "": // the event is whole
			silent.Reset(silence)
			if err := f.take(kind, []byte(data)); err != nil {
				return err
			}
		}
	}
	return cmp.Or(lines.Err(), io.EOF)
}

// refused returns why there is no stream. A page of a board that is blocked or unknown is dropped.
func (f *Follower) refused(resp *http.Response) error {
	if resp.StatusCode < 500 {
		f.last, f.shown = nil, nil
	}
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
	return fmt.Errorf("%s: %s", resp.Status, body)
}

func (f *Follower) take(kind string, data []byte) error {
	var ev struct {
		Page
		Base string
		Len  int
		Rows []struct {
			At int
			Entry
		}
		Code string
	}
	if err := json.Unmarshal(data, &ev); err != nil {
		return err
	}
	switch kind {
	case "page":
		f.last = &ev.Page
	case "diff":
		if f.last == nil || f.last.ID != ev.Base {
			f.last = nil // the next request has no Last-Event-ID, and gets a page
			return errors.New("a diff of another page")
		}
		entries := make([]Entry, ev.Len)
		copy(entries, f.last.Entries)
		for _, row := range ev.Rows {
			if row.At >= 0 && row.At < len(entries) {
				entries[row.At] = row.Entry
			}
		}
		ev.Entries = entries
		f.last = &ev.Page
	case "end":
		if ev.Code != "draining" { // blocked or deleted
			f.last, f.shown = nil, nil
		}
	}
	// Another sidecar may be behind: its page is shown when it is as new.
	if f.last == nil || f.shown == nil || f.last.Run != f.shown.Run || f.last.Seq >= f.shown.Seq {
		f.shown = f.last
	} else if kind == "page" || kind == "diff" {
		return nil
	}
	f.Changed(Event{kind, f.shown, data})
	return nil
}
