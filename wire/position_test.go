package wire

import "testing"

func TestParsePosition(t *testing.T) {
	for text, want := range map[string]Position{
		"a-b_c 17 0123456789abcdef": {"a-b_c", 17, "0123456789abcdef"},
		"a 0 -":                     {"a", 0, "-"},
	} {
		if p, ok := ParsePosition(text); !ok || p != want {
			t.Errorf("%q: %+v %v, want %+v", text, p, ok, want)
		}
	}
	for _, text := range []string{"", "a", "a 1", "a b c"} {
		if p, ok := ParsePosition(text); ok || p != (Position{}) {
			t.Errorf("%q: %+v", text, p)
		}
	}
}
