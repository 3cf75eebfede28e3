package profile

import (
	"encoding/json"
	"errors"
	"io"
)

// decodeAnswer reads {"profiles":{"<member>":{…},…}} from r into answers, which
// belong to members in their order. Fields beside "profiles" are skipped. It
// stops at the first thing that is wrong with the whole; what is wrong with one
// profile is its answer's error. All errors are [*BadAnswer]s, but for those of r.
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

// answerDecoder reads an answer piece by piece, so that only one profile at a
// time is in memory before it is checked.
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
		i, asked := row[member]
		if !asked {
			return bad(KindUnasked, "a profile of %.40q, who was not asked for", member)
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

// object reads an object and calls read for every key, to read the value.
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

// end wants nothing but white space behind the answer.
func (d answerDecoder) end() error {
	switch _, err := d.Token(); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return d.broken(err)
	}
	return bad(KindJSON, "more behind the end of the answer")
}

// broken tells bad JSON, which includes JSON that ends too early, from a reader
// that failed.
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

// limitReader fails after n bytes, where io.LimitReader would only end and make
// an answer that is too long look like one that was cut off.
type limitReader struct {
	r io.Reader
	n int64 // bytes left
}

func (l *limitReader) Read(p []byte) (int, error) {
	if l.n <= 0 {
		return 0, bad(KindSize, "more bytes than allowed, see the answer limit")
	}
	n, err := l.r.Read(p[:min(int64(len(p)), l.n)])
	l.n -= int64(n)
	return n, err
}
