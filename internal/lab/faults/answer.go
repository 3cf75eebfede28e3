package faults

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"rankcache"
)

// Kind is what a read asks for.
type Kind string

// The kinds of reads.
const (
	KindTop    Kind = "top"        // a page from the best row on
	KindMe     Kind = "top and me" // the same with the caller's own standing
	KindMember Kind = "standing"   // one member among its neighbours
	KindBatch  Kind = "batch"      // several members
)

// Question is one read.
type Question struct {
	Board   rankcache.BoardID
	Tier    string // the board's, when nothing is wrong: local, hot or redis
	Kind    Kind
	Start   int
	Limit   int // rows, or neighbours on either side
	Members []string
	Query   string // further arguments, such as "profiles=1"
}

// Reply is a decoded answer.
type Reply struct {
	Code int // HTTP status, 0: none came
	Err  error
	Age  time.Duration // Rankcache-Age-Ms
	// State is the Rankcache-State of an answer.
	State rankcache.State

	Source string  `json:"source"`
	Locked string  `json:"locked"` // of a read by class
	Seq    uint64  `json:"seq"`    // 0: not known
	Total  int     `json:"total"`
	Start  int     `json:"start"`
	Rows   []Row   `json:"entries"`
	Places []Row   `json:"members"`
	Near   []Row   `json:"neighbours"`
	Rank   int     `json:"rank"` // of the requested member
	Member string  `json:"member"`
	Score  float64 `json:"score"`
	Data   string  `json:"data"`
	Me     *Row    `json:"me"`
	MeErr  string  `json:"me_error"`
}

// Row is one row of an answer. Rank 0: not on the board.
type Row struct {
	Rank   int     `json:"rank"`
	Member string  `json:"member"`
	Score  float64 `json:"score"`
	Data   string  `json:"data"` // "" if it has none
	Seq    uint64  `json:"seq"`  // of me alone
	// Profile is the joined profile's JSON, "" or "null" for none.
	Profile rawJSON `json:"profile"`
}

// rawJSON is a JSON value as it came.
type rawJSON string

// UnmarshalJSON implements [json.Unmarshaler].
func (j *rawJSON) UnmarshalJSON(data []byte) error {
	*j = rawJSON(data)
	return nil
}

// profileOf is the profile that the suite's service gives a member.
func profileOf(member string) rawJSON { return rawJSON(fmt.Sprintf(`{"nick":%q}`, "nick of "+member)) }

// badProfile reports whether the row holds a profile that is not its member's.
func (r *Row) badProfile() bool {
	return r.Profile != "" && r.Profile != "null" && r.Profile != profileOf(r.Member)
}

// read fills the reply from an answer's header and body.
func (r *Reply) read(code int, h http.Header, body []byte) {
	if r.Code = code; code != http.StatusOK {
		r.Err = fmt.Errorf("%d %.200s", code, body)
		return
	}
	if err := json.Unmarshal(body, r); err != nil {
		r.Err = fmt.Errorf("an answer that is no JSON: %w: %.200q", err, body)
		return
	}
	ms, err := strconv.ParseInt(h.Get("Rankcache-Age-Ms"), 10, 64)
	if err != nil {
		r.Err = fmt.Errorf("Rankcache-Age-Ms: %w", err)
	}
	r.Age = time.Duration(ms) * time.Millisecond
	if state := h.Get("Rankcache-State"); state != "" {
		if r.State, err = rankcache.ParseState(state); err != nil {
			r.Err = err
		}
	}
	if got := h.Get("Rankcache-Source"); got != r.Source {
		r.Err = fmt.Errorf("the header has source %q, the body %q", got, r.Source)
	}
}

// failed reports whether the caller got no answer through no fault of its own.
func (r *Reply) failed() bool { return r.Code == 0 || r.Code >= 500 }
