package profile

import (
	"encoding/json"
	"errors"
	"io"
)

// decodeAnswer reads {"profiles":{"<member>":{…},…}} from r into answers, in the order of members. Fields beside
// "profiles" are skipped. An error in the document ends decoding; an error in one profile is set in its answer. All
// errors are [*BadAnswer]s, except those of r.
func decodeAnswer(r io.Reader, members []string, answers []Answer, maxProfile int) error {
	d := answerDecoder{json.NewDecoder(r), maxProfile}
	found := false
	err := d.object("the answer", func(key string) error {
		if key != "profiles" {
			return d.skip()
		}
		found = true
		return d.profiles(members, answers)
	})
	if err != nil {
		return err
	}
	if !found {
		return bad(KindShape, `no field "profiles"`)
	}
	return d.end()
}

// answerDecoder reads an answer token by token, so that only one profile at a time is in memory before it is checked.
type answerDecoder struct {
	*json.Decoder
	maxProfile int
}

func (d answerDecoder) profiles(members []string, answers []Answer) error {
	row := make(map[string]int, len(members))
	for i, member := range members {
		row[member] = i
	}
	return d.object(`"profiles"`, func(member string) error {
		i, requested := row[member]
		if !requested {
			return bad(KindUnasked, "a profile of member %.40q, which was not requested", member)
		}
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return d.broken(err)
		}
		if err := checkProfile(raw, d.maxProfile); err != nil {
			answers[i] = Answer{Err: err}
		} else {
			answers[i] = Answer{JSON: raw}
		}
		return nil
	})
}

// object reads an object and calls read at every value, which read consumes.
func (d answerDecoder) object(what string, read func(key string) error) error {
	open, err := d.Token()
	if err != nil {
		return d.broken(err)
	}
	if open != json.Delim('{') {
		return bad(KindShape, "%s starts with %.20v, want an object", what, open)
	}
	seen := make(map[string]bool)
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return d.broken(err)
		}
		key := token.(string) // the decoder accepts nothing else here
		if seen[key] {
			return bad(KindDuplicate, "key %.40q twice in %s", key, what)
		}
		seen[key] = true
		if err := read(key); err != nil {
			return err
		}
	}
	_, err = d.Token() // the closing brace
	return d.broken(err)
}

func (d answerDecoder) skip() error {
	var raw json.RawMessage
	return d.broken(d.Decode(&raw))
}

// end fails unless only white space follows the answer.
func (d answerDecoder) end() error {
	switch _, err := d.Token(); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return d.broken(err)
	}
	return bad(KindJSON, "data after the end of the answer")
}

// broken makes a BadAnswer of bad or truncated JSON, and returns errors of the reader as they are.
func (d answerDecoder) broken(err error) error {
	if err == nil {
		return nil
	}
	_, syntax := errors.AsType[*json.SyntaxError](err)
	if syntax || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return bad(KindJSON, "at byte %d: %w", d.InputOffset(), err)
	}
	return err
}

// limitReader fails after n bytes, where io.LimitReader would end and the answer look truncated.
type limitReader struct {
	r io.Reader
	n int64 // bytes left
}

func (l *limitReader) Read(p []byte) (int, error) {
	if l.n <= 0 {
		return 0, bad(KindSize, "longer than the answer limit")
	}
	n, err := l.r.Read(p[:min(int64(len(p)), l.n)])
	l.n -= int64(n)
	return n, err
}
