package ledger

import "testing"

func TestBatchIsFull(t *testing.T) {
	b, h := NewBatch("topic"), newHistory("b", 1)
	for i := range int64(MaxBatch) {
		if !b.Add(h.incr("a", 1), 0, 0, i) {
			t.Fatalf("full after %d", i)
		}
	}
	if b.Add(h.incr("a", 1), 0, 0, MaxBatch) || b.AddBad("json", nil, 0, 0, MaxBatch) || b.Len() != MaxBatch {
		t.Error("a full batch takes more")
	}
}
