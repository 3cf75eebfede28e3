package cli

import (
	"errors"
	"strings"
	"sync"
	"testing"
)

// still is a reader that takes nothing until it is let.
type still struct {
	mu    sync.Mutex
	took  strings.Builder
	fails bool
}

func (s *still) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fails {
		return 0, errors.New("broken pipe")
	}
	return s.took.Write(p)
}

// TestLogQueue: nobody waits for a reader that stands still, what is held is bounded, what is dropped is
// counted and told when the reader goes on, and one that has gone makes no further lines.
func TestLogQueue(t *testing.T) {
	reader := &still{}
	q := &logQueue{to: reader}
	var told uint64
	q.resumed = func(n uint64) {
		told += n
		q.enqueue([]byte("told\n"))
	}
	line := []byte(strings.Repeat("x", 1<<10-1) + "\n")
	reader.mu.Lock()
	for range 3 << 10 {
		q.enqueue(line)
	}
	reader.mu.Unlock()
	q.flush()
	took := reader.took.String()
	if lines := strings.Count(took, "x\n"); lines != 1<<10 || q.droppedLines() != 2<<10 || told != 2<<10 || strings.Count(took, "told\n") != 1 {
		t.Errorf("took %d lines, dropped %d, told %d, %d times", lines, q.droppedLines(), told, strings.Count(took, "told\n"))
	}
	reader.mu.Lock()
	reader.fails = true
	reader.mu.Unlock()
	q.enqueue(line)
	q.flush()
	if q.droppedLines() != 2<<10+1 || told != 2<<10 {
		t.Errorf("a reader that has gone: dropped %d, told %d", q.droppedLines(), told)
	}
}
