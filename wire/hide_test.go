package wire

import (
	"strings"
	"testing"
	"time"
)

func TestHideOrders(t *testing.T) {
	long := strings.Repeat("é", 64)
	for _, member := range []string{"1000123", "a/b", long} {
		id := HideOrder(NewSerial(time.Now()), member)
		if err := CheckOrderID(id); err != nil {
			t.Error(err)
		}
		for op, want := range map[string]Op{"hide": OpHide, "restore": OpRestore, "incr": 0, "": 0} {
			got, serial, ok := ParseHide(op, id, member)
			if got != want || ok != (want != 0) || ok && serial == 0 {
				t.Errorf("%s %s: %v, %d, %v", op, id, got, serial, ok)
			}
		}
	}
	for _, id := range []string{"", "hide", "hide/", "hide/1", "hide/1/", "hide/0/m", "hide/01/m", "hide/-1/m", "hide/1/n", "hide/9007199254740992/m", "prime/1/m"} {
		if _, _, ok := ParseHide("hide", id, "m"); ok {
			t.Errorf("%q is no order id of a hide", id)
		}
	}
}

func TestHiddenValues(t *testing.T) {
	for value, want := range map[string]Hiding{"7 1.5": {7, true, false}, "7 -": {7, true, true}, "7": {7, false, false}} {
		v, raw, ok := ParseHidden(value)
		if !ok || v != want || (raw == 1.5) != (value == "7 1.5") || v.Text(raw) != value {
			t.Errorf("%q: %+v %v %v, written %q", value, v, raw, ok, v.Text(raw))
		}
	}
	for _, bad := range []string{"", "x", "7 x", "7 inf", "-1 5", " 5"} {
		if v, _, ok := ParseHidden(bad); ok {
			t.Errorf("%q: %+v", bad, v)
		}
	}
}

// A hiding is told from the trims that may stand in its place, and from an origin.
func TestHidingInARecord(t *testing.T) {
	for _, want := range []Hiding{{1, true, false}, {1<<53 - 1, true, true}, {1 << 40, false, false}, {5, false, true}} {
		text := string(AppendHiding([]byte(nil), want))
		if v, rest := CutHiding(text + "orig"); v != want || rest != "orig" {
			t.Errorf("%+v %q, want %+v", v, rest, want)
		}
	}
	for _, other := range []string{"", "orig", string(AppendTrim(nil, &Update{Sum: SumMask, Member: strings.Repeat("m", 128)}))} {
		if v, rest := CutHiding(other); v != (Hiding{}) || rest != other {
			t.Errorf("%q: %+v", other, v)
		}
	}
}
