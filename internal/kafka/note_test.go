package kafka

import "testing"

// A note is read as it was written, and those that others wrote tell nothing.
func TestNote(t *testing.T) {
	for _, n := range []Note{{}, {Topic: "pfVX0xBYQ2a_-w"}, {Positions: true}, {Topic: "pfVX0xBYQ2a_-w", Positions: true}} {
		text := n.String()
		if got := NoteOf(TopicPartition{Metadata: &text}); got != n {
			t.Errorf("%q is %+v, want %+v", text, got, n)
		}
	}
	for _, text := range []string{"", " ", "ledger topic=a positions", "positions"} {
		if got := NoteOf(TopicPartition{Metadata: &text}); got != (Note{}) {
			t.Errorf("%q is %+v", text, got)
		}
	}
	if got := NoteOf(TopicPartition{}); got != (Note{}) {
		t.Errorf("no metadata is %+v", got)
	}
	if other := (Note{Topic: "a"}); other.Of("b") || !other.Of("a") || !other.Of("") || !(Note{}).Of("b") {
		t.Error("another topic is not told")
	}
}
