package places

import (
	"context"
	"database/sql"
	"encoding/json"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/internal/kafka"
	"rankcache/wire"
)

// Finder looks for a member. Its parts are the caller's.
type Finder struct {
	Redis    redis.UniversalClient
	Names    wire.Names
	DB       *sql.DB // nil: the ledger is not looked at
	Postgres bool    // DB is PostgreSQL, else MariaDB or MySQL
	Kafka    kafka.Settings
	Newest   int64         // records of each partition that are looked at; 0: topics are not
	Pause    time.Duration // after each 200 keys of Redis, so that it serves others
}

// Found is what one place has.
type Found struct {
	Place  string     `json:"place"`
	Count  int64      `json:"count"`
	Oldest *time.Time `json:"oldest,omitempty"` // nil: not known
	// Stays tells until when it stays by itself.
	Stays string `json:"stays,omitempty"`
	Where string `json:"where,omitempty"` // one key, topic or board of those
	// Unseen tells why the place was not looked at; "": it was. Failed: its server could not be asked.
	Unseen string `json:"unseen,omitempty"`
	Failed bool   `json:"failed,omitempty"`
}

// fail notes that the server of places could not be asked.
func fail(places []Found, err error) []Found {
	for i := range places {
		places[i] = Found{Place: places[i].Place, Unseen: err.Error(), Failed: true}
	}
	return places
}

// Result is what all places have.
type Result struct {
	Places []Found             // those without any, too
	Boards []rankcache.BoardID // in Redis, whose keys have the member by its id, in order
}

// add adds one that came about at a time, zero: not known.
func (f *Found) add(where string, at time.Time) {
	if f.Count++; f.Where == "" {
		f.Where = where
	}
	if !at.IsZero() && (f.Oldest == nil || at.Before(*f.Oldest)) {
		f.Oldest = &at
	}
}

// writings are the ways in which an id stands in a text: as it is, and as JSON escapes it.
func writings(member string) []string {
	text, _ := json.Marshal(member) // a string always marshals
	if escaped := string(text[1 : len(text)-1]); escaped != member {
		return []string{member, escaped}
	}
	return []string{member}
}

// countOf counts the occurrences of an id in a text.
func countOf(text, member string) (n int64) {
	for _, writing := range writings(member) {
		n += int64(strings.Count(text, writing))
	}
	return n
}

// Find looks at all places. Those whose servers can't be asked are told as failed.
func (f *Finder) Find(ctx context.Context, member string) *Result {
	r := &Result{}
	r.Places, r.Boards = f.inRedis(ctx, member)
	r.Places = append(append(r.Places, f.inLedger(ctx, member)...), f.inTopics(ctx, member)...)
	for _, e := range elsewhere {
		e.Unseen = "no server has it"
		r.Places = append(r.Places, e)
	}
	return r
}
