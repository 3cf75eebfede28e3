package httpserve

import (
	"slices"
	"testing"
)

// fake is a connection that reports whether it was closed.
type fake struct {
	name   string
	place  Place
	closed *[]string
}

func (f *fake) Place() Place { return f.place }

func (f *fake) Close() error {
	*f.closed = append(*f.closed, f.name)
	return nil
}

// TestWhoGivesWay: each new connection closes one, never itself.
func TestWhoGivesWay(t *testing.T) {
	for name, c := range map[string]struct {
		open []Place // in the order in which they came; all over the cap are new ones
		want []string
	}{
		"room for all":          {[]Place{PlaceOf(Answering, 1), PlaceOf(Idle, 1), PlaceOf(ReadingHead, 1)}, nil},
		"half a head":           {[]Place{PlaceOf(Idle, 1), PlaceOf(ReadingHead, 9), PlaceOf(Answering, 1), PlaceOf(ReadingHead, 10)}, []string{"1"}},
		"the oldest half head":  {[]Place{PlaceOf(ReadingHead, 9), PlaceOf(ReadingHead, 8), PlaceOf(ReadingHead, 10), PlaceOf(ReadingHead, 11)}, []string{"1"}},
		"the oldest idle one":   {[]Place{PlaceOf(Idle, 9), PlaceOf(ReadingBody, 1), PlaceOf(Idle, 8), PlaceOf(ReadingHead, 10)}, []string{"2"}},
		"half a body":           {[]Place{PlaceOf(Answering, 1), PlaceOf(ReadingBody, 7), PlaceOf(ReadingBody, 6), PlaceOf(ReadingHead, 10)}, []string{"2"}},
		"a request in progress": {[]Place{PlaceOf(Answering, 3), PlaceOf(Answering, 2), PlaceOf(Answering, 1), PlaceOf(ReadingHead, 10)}, []string{"2"}},
		"of one age":            {[]Place{PlaceOf(Idle, 4), PlaceOf(Idle, 4), PlaceOf(Idle, 4), PlaceOf(ReadingHead, 10)}, []string{"0"}},
		"one after the other": {[]Place{PlaceOf(Answering, 1), PlaceOf(Idle, 2), PlaceOf(ReadingHead, 3),
			PlaceOf(Answering, 4), PlaceOf(Answering, 5), PlaceOf(Answering, 6)}, []string{"2", "1", "0"}},
	} {
		var closed []string
		conns := NewConns[*fake](3)
		for i, place := range c.open {
			conns.Add(&fake{string(rune('0' + i)), place, &closed})
		}
		if !slices.Equal(closed, c.want) || conns.Len() != min(len(c.open), 3) {
			t.Errorf("%s: closed %v, want %v; %d are open", name, closed, c.want, conns.Len())
		}
	}
}

// TestRemove: an ended connection leaves room, also when it is removed twice.
func TestRemove(t *testing.T) {
	var closed []string
	conns := NewConns[*fake](1)
	first := &fake{"first", 0, &closed}
	conns.Add(first)
	conns.Remove(first)
	conns.Remove(first)
	conns.Add(&fake{"second", 0, &closed})
	if closed != nil || conns.Len() != 1 {
		t.Errorf("closed %v, %d are open", closed, conns.Len())
	}
}
