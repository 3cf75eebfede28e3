package adminapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// holds reports whether the value at a path of body is the expected one. A path that is not
// there never holds, and neither does one that ends at an object or a list.
func holds(body any, expect string) (bool, error) {
	path, want, ok := strings.Cut(expect, "=")
	if !ok || path == "" {
		return false, fmt.Errorf("is %.80q: want path=value, such as state=ready", expect)
	}
	data, err := json.Marshal(body)
	if err != nil {
		return false, err
	}
	var at any
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber() // 1000000 must not become 1e+06
	if err := dec.Decode(&at); err != nil {
		return false, err
	}
	for step := range strings.SplitSeq(path, ".") {
		if at, ok = stepInto(at, step); !ok {
			return false, nil
		}
	}
	return isText(at, want), nil
}

// stepInto returns the named part of v, and whether there is one.
func stepInto(v any, step string) (part any, ok bool) {
	switch v := v.(type) {
	case map[string]any:
		part, ok = v[step]
	case []any:
		if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(v) && strconv.Itoa(i) == step {
			return v[i], true
		}
	}
	return part, ok
}

// isText reports whether a decoded JSON value is written as text.
func isText(v any, text string) bool {
	switch v.(type) {
	case nil:
		return text == "null"
	case map[string]any, []any:
		return false
	}
	return fmt.Sprint(v) == text
}
