package demo

import (
	"io"
	"os"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"

	"rankcache"
)

// maxBars keeps a terminal readable when very many boards are replayed.
const maxBars = 12

// progressing has the boards that the screen draws, those on their way to being open.
type progressing interface {
	Status() []rankcache.BoardStatus
	Ready() (bool, string)
}

// screen is where a command writes its log. On a terminal it draws a progress
// bar per board below the log while boards are being replayed; elsewhere it is
// its writer and nothing more.
type screen struct {
	to     io.Writer
	isTerm bool // the writer is a terminal

	mu   sync.Mutex
	bars *mpb.Progress // nil when none are drawn
	stop chan struct{}
	done chan struct{}
}

// newScreen returns the screen of a command that writes its log to to.
func newScreen(to io.Writer) *screen {
	file, ok := to.(*os.File)
	return &screen{to: to, isTerm: ok && term.IsTerminal(int(file.Fd()))}
}

// Write writes log lines, above the bars if there are any.
func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bars != nil {
		if n, err := s.bars.Write(p); err == nil {
			return n, nil
		}
	}
	return s.to.Write(p)
}

// Follow draws until all boards have settled or Close is called.
func (s *screen) Follow(boards progressing) {
	if !s.isTerm {
		return
	}
	s.bars = mpb.New(mpb.WithOutput(s.to), mpb.WithWidth(40))
	s.stop, s.done = make(chan struct{}), make(chan struct{})
	go s.draw(boards)
}

func (s *screen) draw(boards progressing) {
	defer close(s.done)
	drawn := map[rankcache.BoardID]*mpb.Bar{}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for settled := false; !settled; {
		select {
		case <-s.stop:
			settled = true
		case <-tick.C:
			settled, _ = boards.Ready()
		}
		for _, b := range boards.Status() {
			s.drawBoard(drawn, b)
		}
	}
	for _, bar := range drawn {
		bar.Abort(false) // no effect on a bar that is complete
	}
	s.finish()
}

func (s *screen) drawBoard(drawn map[rankcache.BoardID]*mpb.Bar, b rankcache.BoardStatus) {
	bar := drawn[b.Board]
	if bar == nil {
		if len(drawn) == maxBars || b.Want == 0 {
			return
		}
		bar = s.bars.AddBar(int64(b.Want),
			mpb.PrependDecorators(decor.Name(string(b.Board)+" ")),
			mpb.AppendDecorators(decor.CountersNoUnit("%d / %d updates"), decor.AverageSpeed(0, "  %.0f/s"),
				decor.Name("  ETA "), decor.AverageETA(decor.ET_STYLE_GO)))
		drawn[b.Board] = bar
	}
	total := int64(max(b.Want, b.Have))
	bar.SetTotal(total, false)
	if b.State == rankcache.StateOpen {
		bar.SetCurrent(total) // complete, also when the last updates came in a snapshot
		return
	}
	bar.SetCurrent(min(int64(b.Have), total-1))
}

// finish waits for the last drawing and goes back to plain writing.
func (s *screen) finish() {
	s.bars.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bars = nil
}

// Close ends the drawing.
func (s *screen) Close() {
	if s.stop != nil {
		close(s.stop)
		<-s.done
		s.stop = nil
	}
}
