package profile

import (
	"context"
	"errors"
	"fmt"
	"net"
	"unicode/utf8"
)

// Source is the service that owns the profiles. Load is called from several goroutines.
type Source interface {
	// Load requests the profiles of members, none of them twice, and sets answers[i] to the answer for members[i].
	// After an error none of the answers is used; the error wraps a [*BadAnswer] when the service answered something
	// unusable. Load keeps neither slice.
	Load(ctx context.Context, members []string, answers []Answer) error
}

// Answer is the profile of one member, its error, or neither when the service does not know the member.
type Answer struct {
	JSON []byte // an object, byte for byte as the service sent it
	Err  error  // a *BadAnswer
}

// Kinds of bad answers, used as metric labels.
const (
	KindStatus    = "status"    // an HTTP status other than 200
	KindJSON      = "json"      // not JSON, truncated, or followed by more data
	KindShape     = "shape"     // JSON, but not {"profiles":{…}}
	KindSize      = "size"      // too many bytes
	KindDuplicate = "duplicate" // a key twice
	KindUnasked   = "unasked"   // a member that was not requested
	KindValue     = "value"     // a profile that is not a JSON object of UTF-8 text
)

// BadAnswer is the error of a service whose answer can't be used.
type BadAnswer struct {
	Kind string
	Err  error
}

func (e *BadAnswer) Error() string { return "bad answer (" + e.Kind + "): " + e.Err.Error() }

// Unwrap returns the cause.
func (e *BadAnswer) Unwrap() error { return e.Err }

func bad(kind, format string, args ...any) error {
	return &BadAnswer{kind, fmt.Errorf(format, args...)}
}

// kindOf returns the metric label of an error.
func kindOf(err error) string {
	if bad, ok := errors.AsType[*BadAnswer](err); ok {
		return bad.Kind
	}
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() { // a connection's or a context's
		return "timeout"
	}
	return "unavailable"
}

// checkProfile returns a [*BadAnswer] unless json, which is valid JSON, is an object that fits into a page.
func checkProfile(json []byte, limit int) error {
	switch {
	case len(json) > min(limit, maxJSON):
		return bad(KindSize, "a profile of %d bytes, want at most %d", len(json), min(limit, maxJSON))
	case len(json) == 0 || json[0] != '{':
		return bad(KindValue, "a profile that starts with %.10q, want an object", json)
	case !utf8.Valid(json):
		return bad(KindValue, "a profile that is not UTF-8")
	}
	return nil
}
