package wire

import "testing"

func TestLogPlace(t *testing.T) {
	last := int64(0)
	for _, id := range []string{"0-1", "1-0", "1-1048575", "1700000000123-0", "1700000000123-7", "1700000000124-0", "4398046511103-1048575"} {
		place, err := LogPlace(id)
		if err != nil || place <= last || LogID(place) != id {
			t.Errorf("%s is at %d, behind %d: %v; back: %s", id, place, last, err, LogID(place))
		}
		last = place
	}
	a, _ := LogPlace("5000-3")
	if b, _ := LogPlace("6000-3"); b-a != LogSecond {
		t.Errorf("a second is %d", b-a)
	}
	for _, id := range []string{"", "-", "1", "1-", "-1-0", "x-1", "1-x", "1--1", "1-1048576", "4398046511104-0", "1-1-1"} {
		if place, err := LogPlace(id); err == nil {
			t.Errorf("%q is at %d", id, place)
		}
	}
}
