package reads

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"time"

	"rankcache"
)

const maxIdle = 32 // how many connections to the ledger are kept

// Client reads boards from a ledger that serves reads, concurrently. Errors wrap [rankcache.ErrUnavailable].
type Client struct {
	url     string
	http    *http.Client
	observe func(took time.Duration, err error)
}

// NewClient returns a client of the ledger at a URL such as http://rankcache-ledger:8976. It connects to nothing.
// observe, if not nil, is called after each call: with nil if the ledger has answered.
func NewClient(ledger string, observe func(took time.Duration, err error)) (*Client, error) {
	u, err := url.Parse(ledger)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.User != nil {
		return nil, errors.New("want the URL of a rankcache ledger --serve-reads, such as http://rankcache-ledger:8976")
	}
	transport := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // it is one
	transport.MaxIdleConnsPerHost, transport.Proxy = maxIdle, nil
	if observe == nil {
		observe = func(time.Duration, error) {}
	}
	return &Client{url: u.JoinPath(Path).String(), observe: observe, http: &http.Client{Transport: transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}, nil
}

// Read implements [rankcache.Reader].
func (c *Client) Read(ctx context.Context, qs []rankcache.Query, as []rankcache.Answer) {
	if slices.ContainsFunc(qs, func(q rankcache.Query) bool { return q.Scores != nil }) {
		for i := range as {
			as[i].Fail(fmt.Errorf("%w: the ledger does not know where a score would stand", rankcache.ErrUnavailable))
		}
		return
	}
	if len(qs) > MaxBoards { // the shards of a split board
		c.Read(ctx, qs[:MaxBoards], as[:MaxBoards])
		c.Read(ctx, qs[MaxBoards:], as[MaxBoards:])
		return
	}
	reads := make([]Read, len(qs))
	for i := range qs {
		reads[i] = readOf(&qs[i])
	}
	answers, began, err := c.ask(ctx, reads)
	for i := range as {
		if err == nil {
			answers[i].set(&qs[i], &as[i], began)
		} else {
			as[i].Fail(err)
		}
	}
}

func readOf(q *rankcache.Query) Read {
	r := Read{Board: q.Board, Order: q.Order.String(), Start: q.Start, Limit: q.Limit, Members: q.Members, Gap: q.Gap, Ranked: q.Ranked(), Integers: q.Form.Integer(), Scores: q.Trimmed}
	if q.Around > 0 {
		n := q.Neighbours()
		r.Around = &n
	}
	if q.Range != nil {
		r.Range = rangeOf(q.RawRange())
	}
	return r
}

// set sets to, which answers q, to the answer to a call that began at a time.
func (a *Answer) set(q *rankcache.Query, to *rankcache.Answer, began time.Time) {
	stamp, err := a.stamp(began)
	if err != nil {
		to.Fail(err)
		return
	}
	source := rankcache.SourceLedger
	if stamp.Life == rankcache.LifeFinal {
		source = rankcache.SourceFinal
	}
	to.Begin(q, source, stamp, stamp.At)
	ranked := q.Ranked()
	if q.Range != nil {
		to.Start, to.Matches = *a.Before+q.Start, *a.Within
	}
	to.Entries, to.Ahead = entriesOf(a.Entries), aheadOf(a.Ahead, ranked && len(a.Entries) > 0)
	to.Data = a.data()
	for i := range a.Own {
		from, own := &a.Own[i], &to.Own[i]
		own.Data = to.Data
		if from.Cut {
			own.Err = rankcache.ErrFinalCut
			continue
		}
		own.Score, own.Rank, own.Trimmed, own.First = from.raw(), from.Rank, from.Scored, from.First
		own.Neighbours, own.Ahead = entriesOf(from.Neighbours), aheadOf(from.Ahead, ranked && from.Rank > 0)
		if own.HasBetter = from.Better != nil; own.HasBetter {
			own.Better = (&Row{Score: *from.Better, Raw: from.BetterRaw}).raw()
		}
	}
}

// data returns what the members of an answer have beside their scores, nil if none has any.
func (a *Answer) data() (d *rankcache.Data) {
	add := func(rows []Row) {
		for i := range rows {
			d = d.With(rows[i].Member, rows[i].Data)
		}
	}
	add(a.Entries)
	for i := range a.Own {
		d = d.With(a.Own[i].Member, a.Own[i].Data)
		add(a.Own[i].Neighbours)
	}
	return d
}

// ask posts reads and returns their answers, which are as long as they must be, and when it began.
func (c *Client) ask(ctx context.Context, reads []Read) ([]Answer, time.Time, error) {
	began := time.Now()
	body, err := json.Marshal(Request{reads})
	if err != nil {
		return nil, began, err
	}
	data, err := c.call(ctx, http.MethodPost, body)
	if err != nil {
		return nil, began, unavailable(err)
	}
	answers, err := decode(data, reads)
	if err != nil {
		return nil, began, unavailable(err)
	}
	return answers, began, nil
}

// Ready returns nil if the ledger would answer reads.
func (c *Client) Ready(ctx context.Context) error {
	_, err := c.call(ctx, http.MethodGet, nil)
	return err
}

func (c *Client) call(ctx context.Context, method string, body []byte) (data []byte, err error) {
	began := time.Now()
	defer func() {
		if !errors.Is(ctx.Err(), context.Canceled) {
			c.observe(time.Since(began), err)
		}
	}()
	req, err := http.NewRequestWithContext(ctx, method, c.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	data, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	switch {
	case err == nil && resp.StatusCode == http.StatusNotFound:
		err = errors.New("the ledger does not serve reads: start it with --serve-reads")
	case err == nil && resp.StatusCode != http.StatusOK:
		err = fmt.Errorf("answered %d: %.200q", resp.StatusCode, data)
	}
	return data, err
}

func unavailable(err error) error {
	return fmt.Errorf("%w: ledger: %w", rankcache.ErrUnavailable, err)
}

// decode returns the answers to reads, each of which has what was asked for or a code.
func decode(data []byte, reads []Read) ([]Answer, error) {
	var r Response
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, err
	}
	if len(r.Answers) != len(reads) {
		return nil, fmt.Errorf("%d answers to %d reads", len(r.Answers), len(reads))
	}
	for i := range reads {
		if err := r.Answers[i].check(&reads[i]); err != nil {
			return nil, fmt.Errorf("answer %d: %w", i, err)
		}
	}
	return r.Answers, nil
}

// check returns what an answer lacks or has too much.
func (a *Answer) check(r *Read) error {
	if a.Code != "" {
		return nil
	}
	if len(a.Entries) > r.Limit || len(a.Own) != len(r.Members) || a.Members < 0 || a.Ahead < 0 || a.AgeMs < 0 {
		return fmt.Errorf("%d rows and %d members, want up to %d and %d", len(a.Entries), len(a.Own), r.Limit, len(r.Members))
	}
	if r.Range != nil && (a.Before == nil || a.Within == nil) {
		return errors.New("no counts of the range: the ledger is of an older version")
	}
	for i := range a.Own {
		own := &a.Own[i]
		row := own.Rank - 1 - own.First
		around := r.Around != nil && own.Rank > 0
		if own.Member != r.Members[i] || own.Rank < 0 || own.First < 0 || own.Ahead < 0 ||
			around && (len(own.Neighbours) > 2**r.Around+1 || row < 0 || row >= len(own.Neighbours) || own.Neighbours[row].Member != own.Member) {
			return fmt.Errorf("member %.40q has rank %d and %d neighbours from %d", own.Member, own.Rank, len(own.Neighbours), own.First)
		}
	}
	return nil
}

// stamp returns an answer's moment: the database had every change that long before the call as its age tells.
func (a *Answer) stamp(began time.Time) (s rankcache.Stamp, err error) {
	switch a.Code {
	case "":
	case errNotCovered.Error():
		return s, fmt.Errorf("ledger: %w: %s", rankcache.ErrFinalCut, a.Detail)
	case errNoBoard.Error():
		return s, unavailable(fmt.Errorf("%w: %s", rankcache.ErrNoBoard, a.Detail))
	default:
		return s, unavailable(fmt.Errorf("%s: %s", a.Code, a.Detail))
	}
	if s.State, err = rankcache.ParseState(a.State); err != nil {
		return s, unavailable(err)
	}
	if s.Members = a.Members; a.Life == rankcache.LifeFinal.String() {
		s.Life = rankcache.LifeFinal
	}
	s.At = began.Add(-time.Duration(min(a.AgeMs, maxAge.Milliseconds())) * time.Millisecond)
	return s, nil
}

const maxAge = 100 * 365 * 24 * time.Hour // keeps the sum with a time in range

func entriesOf(rows []Row) []rankcache.Entry {
	entries := make([]rankcache.Entry, len(rows))
	for i := range rows {
		entries[i] = rankcache.Entry{Member: rows[i].Member, Score: rows[i].raw()}
	}
	return entries
}

// aheadOf returns what is ahead of a row, if it was counted. Distinct scores never are.
func aheadOf(members int, counted bool) rankcache.Ahead {
	if !counted {
		return rankcache.Ahead{}
	}
	return rankcache.Ahead{Members: members, Scores: -1}
}
