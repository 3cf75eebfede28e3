package cli

import (
	"bytes"
	"io"
	"sync"
)

const maxLogged = 1 << 20 // how many bytes of the log wait for a reader of standard error that stands still

// logQueue takes what is written without waiting, and drops what does not fit. Zero but for to is ready.
type logQueue struct {
	to io.Writer
	// resumed is called when lines are written again of which so many were dropped; nil: nobody is told.
	resumed func(dropped uint64)

	mu      sync.Mutex
	waiting []byte
	writing int           // bytes that the goroutine is at
	written chan struct{} // closed when it ends; nil: there is none
	dropped uint64        // lines
	told    uint64        // of them
}

func (q *logQueue) enqueue(lines []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting)+q.writing+len(lines) > maxLogged {
		q.dropped += countLines(lines)
		return
	}
	q.waiting = append(q.waiting, lines...)
	if q.written == nil {
		q.written = make(chan struct{})
		go q.writeAll()
	}
}

func countLines(p []byte) uint64 { return uint64(bytes.Count(p, []byte("\n"))) }

func (q *logQueue) writeAll() {
	for batch := q.next(); batch != nil; batch = q.next() {
		_, err := q.to.Write(batch)
		if lost, resumed := q.wrote(batch, err); lost > 0 && resumed != nil {
			resumed(lost)
		}
	}
}

// next returns what waits; nil, and that is the goroutine's end, if nothing does.
func (q *logQueue) next() (batch []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		close(q.written)
		q.written = nil
		return nil
	}
	batch, q.waiting = q.waiting, nil
	q.writing = len(batch)
	return batch
}

// wrote notes how a write ended, and returns the dropped lines to tell. A reader that has gone is told nothing.
func (q *logQueue) wrote(batch []byte, err error) (lost uint64, resumed func(uint64)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.writing = 0; err != nil {
		q.dropped += countLines(batch)
		return 0, nil
	}
	lost, q.told = q.dropped-q.told, q.dropped
	return lost, q.resumed
}

func (q *logQueue) flush() {
	q.mu.Lock()
	written := q.written
	q.mu.Unlock()
	if written != nil {
		<-written
	}
}

func (q *logQueue) droppedLines() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.dropped
}
