package history

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"rankcache"
	"rankcache/class"
	"rankcache/internal/httpserve"
)

const (
	defaultLimit, maxLimit = 100, rankcache.MaxTop
	maxStart               = 1_000_000
)

// query reads the arguments of a request. The first problem with one stays.
type query struct {
	values  url.Values
	problem *httpserve.Problem
}

func queryOf(r *http.Request) *query {
	q := &query{}
	var err error
	if q.values, err = url.ParseQuery(r.URL.RawQuery); err != nil {
		q.bad("", "the query is not percent-encoded")
	}
	return q
}

func (q *query) bad(argument, detail string) {
	if q.problem == nil {
		q.problem = &httpserve.Problem{Status: http.StatusBadRequest, Code: "bad_argument", Title: "Bad argument", Argument: argument, Detail: detail}
	}
}

// take removes an argument and returns its value, "" if it is not given.
func (q *query) take(name string) string {
	values := q.values[name]
	delete(q.values, name)
	if len(values) > 1 {
		q.bad(name, "is given twice")
	}
	return strings.Join(values, "")
}

func (q *query) number(name string, otherwise, least, most int) int {
	text := q.take(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		q.bad(name, fmt.Sprintf("want %d to %d", least, most))
	}
	return n
}

func (q *query) limit() int { return q.number("limit", defaultLimit, 1, maxLimit) }

// end refuses arguments that are left.
func (q *query) end() {
	for name := range q.values {
		q.bad(name, "is unknown here")
	}
}

// dims takes all that are left for dimensions.
func (q *query) dims() map[string]string {
	dims := make(map[string]string)
	for name := range q.values {
		dims[name] = q.take(name)
		if err := class.CheckDimension(dims[name]); err != nil {
			q.bad(name, err.Error())
		}
	}
	return dims
}

// checked refuses a part of the path that fits nothing.
func (q *query) checked(name, value, signs string, most int) string {
	if value == "" || len(value) > most || strings.Trim(value, signs) != "" {
		q.bad(name, fmt.Sprintf("want 1 to %d of %s", most, signs))
	}
	return value
}

const (
	digits = "0123456789"
	// classSigns and tagSigns are those of names and tags.
	classSigns, tagSigns = "abcdefghijklmnopqrstuvwxyz-" + digits, "ABCDEFGHIJKLMNOPQRSTUVWXYZ" + classSigns
	maxTag               = 40
)

func (q *query) class(r *http.Request) string {
	return q.checked("class", r.PathValue("class"), classSigns, class.MaxName)
}

var errCursor = errors.New("want the next of an answer")

// cursor returns what [cursorOf] was made of, "" without one.
func (q *query) cursor(signs string) (key string, board rankcache.BoardID) {
	text := q.take("cursor")
	if text == "" {
		return "", ""
	}
	data, err := base64.RawURLEncoding.DecodeString(text)
	key, id, _ := strings.Cut(string(data), ".")
	board = rankcache.BoardID(id)
	if err != nil || board.Check() != nil || key == "" || len(key) > maxTag || strings.Trim(key, signs) != "" {
		q.bad("cursor", errCursor.Error())
	}
	return key, board
}

func cursorOf(key string, board rankcache.BoardID) string {
	return base64.RawURLEncoding.EncodeToString([]byte(key + "." + string(board)))
}
