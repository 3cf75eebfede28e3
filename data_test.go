package rankcache

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestDataAgainstMap: each value stays what it was, whatever is made of it.
func TestDataAgainstMap(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var d *Data
	want := make(map[string]string)
	var before *Data
	var was map[string]string
	check := func(d *Data, want map[string]string) {
		t.Helper()
		if d.Len() != len(want) {
			t.Fatalf("%d members, want %d", d.Len(), len(want))
		}
		bytes := 0
		for m, text := range want {
			if bytes += len(m) + 1 + len(text) + dataMemory; d.Of(m) != text {
				t.Fatalf("member %q has %q, want %q", m, d.Of(m), text)
			}
		}
		if d.Bytes() != bytes {
			t.Fatalf("%d bytes, want %d", d.Bytes(), bytes)
		}
	}
	for i := range 20_000 {
		m, text := fmt.Sprint("m", r.IntN(3000)), ""
		if r.IntN(3) > 0 {
			text = strings.Repeat("x", 1+r.IntN(5)) + fmt.Sprint(i)
		}
		if d = d.With(m, text); text == "" {
			delete(want, m)
		} else {
			want[m] = text
		}
		if i == 9999 {
			check(d, want)
			before, was = d, make(map[string]string)
			for m, text := range want {
				was[m] = text
			}
		}
	}
	check(d, want)
	check(before, was)
	for m := range want {
		d = d.With(m, "")
	}
	if d != nil {
		t.Errorf("%d members are left", d.Len())
	}
	if n := testing.AllocsPerRun(100, func() { before.Of("m1"); (*Data)(nil).Of("m1") }); n != 0 {
		t.Errorf("Of allocates %v times", n)
	}
}

func TestJoinedData(t *testing.T) {
	for _, c := range [][2]string{{"m", ""}, {"m", "d"}, {"m", "a b"}} {
		if m, d := SplitData(JoinData(c[0], c[1])); m != c[0] || d != c[1] {
			t.Errorf("%q: got %q %q", c, m, d)
		}
	}
	if d := (*Data)(nil).With("m", "d"); d.Of("") != "" || d.Of("m\x00d") != "" || d.Of("mm") != "" {
		t.Error("data of others")
	}
}

func TestCheckData(t *testing.T) {
	for data, ok := range map[string]bool{"": true, "x": true, "ü {\"a\":1}": true, strings.Repeat("x", 256): true, strings.Repeat("x", 257): false,
		"a\x00b": false, "a\nb": false, "a\x7f": false, "\xff": false} {
		if err := CheckData(data); (err == nil) != ok || err != nil && !errors.Is(err, ErrData) {
			t.Errorf("%.20q: %v", data, err)
		}
	}
}
