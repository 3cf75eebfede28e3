package class

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"rankcache"
	"rankcache/wire"
)

const MaxDimension = 64 // the most characters of a dimension's value

const maxTemplate = 2 * rankcache.MaxBoardLen // more than the longest id and the names of its dimensions take

const period = "period" // the placeholder of the tag

// reserved are the names that a request's other arguments have.
var reserved = []string{period, "at", "start", "limit", "order", "me", "profiles", "room", "around", "gap", "trend", "percentile", "sort"}

// segment is a piece of a template between two of the signs ":", "." and "_": literal text or a placeholder.
type segment struct {
	text        string // literal, or name of the placeholder
	placeholder bool
	sign        string // that follows; "" at the end
}

func (s segment) isTag() bool { return s.placeholder && s.text == period }
func (s segment) isDim() bool { return s.placeholder && s.text != period }

type template []segment // makes ids such as gift:7:20261122-17 from gift:{zone}:{period}

// parseTemplate splits a template. {period} must be in it once if tagged, else not at all.
func parseTemplate(text string, tagged bool) (template, error) {
	if len(text) > maxTemplate {
		return nil, fmt.Errorf("board %.100q…: want at most %d characters", text, maxTemplate)
	}
	t, err := splitTemplate(text)
	if err != nil {
		return nil, fmt.Errorf("board %.100q: %w", text, err)
	}
	for i, s := range t {
		if s.placeholder && slices.Contains(t[:i].names(), s.text) {
			return nil, fmt.Errorf("board %.100q has {%s} twice", text, s.text)
		}
	}
	switch has := slices.ContainsFunc(t, segment.isTag); {
	case tagged && !has:
		return nil, fmt.Errorf("board %.100q: want {period} in it, as each period has a board of its own", text)
	case !tagged && has:
		return nil, fmt.Errorf("board %.100q has {period}, but the class has period none", text)
	}
	return t, nil
}

func splitTemplate(text string) (t template, err error) {
	for rest, more := text, true; more; {
		var s segment
		s.text, s.sign, rest, more = cutSign(rest)
		name, found := strings.CutPrefix(s.text, "{")
		if found && strings.HasSuffix(name, "}") {
			s.text, s.placeholder = strings.TrimSuffix(name, "}"), true
			if err := CheckName(s.text); err != nil {
				return nil, err
			}
		} else if strings.ContainsAny(s.text, "{}") {
			return nil, fmt.Errorf("placeholder in %q: want one of : . _ on each side", s.text)
		} else if !wire.IsPlain(rankcache.BoardID(s.text)) {
			return nil, fmt.Errorf("%w %q: want characters of A-Z a-z 0-9 . _ : -", rankcache.ErrBoard, s.text)
		}
		t = append(t, s)
	}
	return t, nil
}

// cutSign cuts s behind the first of its signs.
func cutSign(s string) (before, sign, after string, found bool) {
	i := strings.IndexAny(s, ":._")
	if i < 0 {
		return s, "", "", false
	}
	return s[:i], s[i : i+1], s[i+1:], true
}

// CheckName checks the name of a placeholder, which is also an argument of requests.
func CheckName(name string) error {
	letters := strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789") == ""
	switch {
	case name == period:
		return nil
	case !letters || name == "" || len(name) > 32:
		return fmt.Errorf("dimension {%.40s}: want 1 to 32 characters of a-z 0-9", name)
	case slices.Contains(reserved, name):
		return fmt.Errorf("dimension {%s} has the name of an argument of requests: choose another", name)
	}
	return nil
}

func (t template) names() (names []string) {
	for _, s := range t {
		if s.placeholder {
			names = append(names, s.text)
		}
	}
	return names
}

// fill returns the text with what value returns for each placeholder's name.
func (t template) fill(value func(name string) string) string {
	var b strings.Builder
	for _, s := range t {
		if s.placeholder {
			s.text = value(s.text)
		}
		b.WriteString(s.text)
		b.WriteString(s.sign)
	}
	return b.String()
}

// parse is the inverse of fill: it returns the values of the placeholders, unchecked.
func (t template) parse(id string) (map[string]string, bool) {
	values := make(map[string]string, len(t))
	for i, s := range t {
		text, sign, rest, more := cutSign(id)
		if sign != s.sign || more != (i < len(t)-1) || !s.placeholder && text != s.text {
			return nil, false
		}
		if s.placeholder {
			values[s.text] = text
		}
		id = rest
	}
	return values, true
}

// matches reports whether parse would find values in id, and what looks like a tag. It allocates nothing.
func (t template) matches(id string, c *Calendar, sample string) bool {
	for i, s := range t {
		text, sign, rest, more := cutSign(id)
		if sign != s.sign || more != (i < len(t)-1) || !s.placeholder && text != s.text || s.isDim() && text == "" || s.isTag() && !c.looksLikeTag(text, sample) {
			return false
		}
		id = rest
	}
	return true
}

// alike reports whether two texts differ in nothing but which digits are in them.
func alike(a, b string) bool {
	digit := func(c byte) bool { return c >= '0' && c <= '9' }
	for i := range len(a) {
		if i >= len(b) || a[i] != b[i] && !(digit(a[i]) && digit(b[i])) {
			return false
		}
	}
	return len(a) == len(b)
}

// CheckDimension returns an error unless value is 1 to [MaxDimension] characters of A-Z, a-z and 0-9.
func CheckDimension(value string) error {
	if len(value) == 0 || len(value) > MaxDimension {
		return fmt.Errorf("%d characters, want 1 to %d", len(value), MaxDimension)
	}
	if !wire.IsPlain(rankcache.BoardID(value)) || strings.ContainsAny(value, ":._-") {
		return errors.New("want characters of A-Z a-z 0-9")
	}
	return nil
}
