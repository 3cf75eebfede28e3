package rpc

import (
	"context"
	"errors"
	"net/http"
	"time"

	"rankcache/sidecar/internal/apijson"
	"rankcache/sidecar/internal/live"
)

// watch is one client's stream of events of one address.
type watch struct {
	server  *Server
	address address
	notify  func()       // see [live.Viewer]
	stream  *live.Stream // nil: draining
}

// streams opens the streams of boards.
type streams struct{ *Server }

// open returns the watch once its page was read. The caller closes it. notify is that of a
// [live.Viewer].
func (s streams) open(ctx context.Context, a address, lastID string, notify func()) (*watch, *apijson.Problem) {
	w := &watch{server: s.Server, address: a, notify: notify}
	return w, w.openStream(ctx, lastID)
}

func (w *watch) openStream(ctx context.Context, lastID string) *apijson.Problem {
	f, p := boardFinder{w.server}.find(&w.address)
	if p != nil {
		return p
	}
	stream, err := w.server.hub.Open(ctx, f.Key, live.Viewer{LastID: lastID, Lasts: f.lasts, Notify: w.notify})
	switch {
	case errors.Is(err, live.ErrDraining):
		return nil // the first event tells it
	case errors.Is(err, live.ErrStreams):
		return &apijson.Problem{Code: apijson.CodeOverloaded, Detail: "as many live streams, or keys of boards that Redis answers, are watched here as may be"}
	case err != nil:
		return apijson.ProblemOf(err)
	}
	w.stream = stream
	return nil
}

// next waits for the next event; the one of kind End is the last. The error is that of ctx.
func (w *watch) next(ctx context.Context) (live.Event, error) {
	for {
		if w.stream == nil {
			return live.EndOf(live.CodeDraining), nil
		}
		ev, err := w.stream.Next(ctx)
		if err != nil || ev.Kind != live.Over {
			return ev, err
		}
		if end, ended := w.goOver(ctx); ended {
			return end, ctx.Err()
		}
	}
}

// run sends the events until one of them ends the stream, each within the write timeout. The error is
// that of ctx, of a deadline, or of send.
func (w *watch) run(ctx context.Context, control *http.ResponseController, send func(*live.Event) error) error {
	err := control.SetReadDeadline(time.Time{}) // a stream lasts, and its client has nothing more to send
	for err == nil {
		var ev live.Event
		if ev, err = w.next(ctx); err != nil {
			break
		}
		if err = control.SetWriteDeadline(time.Now().Add(w.server.cfg.WriteTimeout)); err == nil {
			err = send(&ev)
		}
		if err != nil || ev.Kind == live.End {
			break
		}
		err = control.SetWriteDeadline(time.Time{}) // over HTTP/2 it would reset a stream that is quiet
	}
	return err
}

// poll returns the event that is to be sent now, if there is one. One of kind [live.Over] asks
// for goOver.
func (w *watch) poll() (live.Event, bool) {
	if w.stream == nil {
		return live.EndOf(live.CodeDraining), true
	}
	return w.stream.Poll()
}

// goOver opens the stream of the class's next board, or returns why there is none.
func (w *watch) goOver(ctx context.Context) (end live.Event, ended bool) {
	w.close()
	if p := w.openStream(ctx, ""); p != nil {
		return live.EndOf(endCode(p)), true
	}
	return live.Event{}, false
}

// endCode returns why a stream ends that can't go over to its next board.
func endCode(p *apijson.Problem) live.Code {
	switch p.Code {
	case apijson.CodeBlocked:
		return live.CodeBlocked
	case apijson.CodeUnknownClass, apijson.CodeUnknownPeriod, apijson.CodeBadArgument:
		return live.CodeDeleted
	}
	return live.Code(p.Code)
}

func (w *watch) close() {
	if w.stream != nil {
		w.stream.Close()
		w.stream = nil
	}
}
