package rpc

import (
	"context"
	"errors"
	"net/http"
	"time"

	"rankcache/sidecar/encode"
	"rankcache/sidecar/live"
)

// watch is one client's stream of events of one address.
type watch struct {
	server     *Server
	address    address
	subscriber *live.Subscriber // nil: draining
}

// streams opens the streams of boards.
type streams struct{ *Server }

// open returns the watch once its page was read. The caller closes it.
func (s streams) open(ctx context.Context, a address, lastID string) (*watch, *encode.Problem) {
	w := &watch{server: s.Server, address: a}
	return w, w.subscribe(ctx, lastID)
}

func (w *watch) subscribe(ctx context.Context, lastID string) *encode.Problem {
	f, p := boardFinder{w.server}.find(&w.address)
	if p != nil {
		return p
	}
	subscriber, err := w.server.hub.Subscribe(ctx, f.Key, live.Options{LastID: lastID, Lifetime: f.lasts})
	switch {
	case errors.Is(err, live.ErrDraining):
		return nil // the first event tells it
	case errors.Is(err, live.ErrStreams):
		return &encode.Problem{Code: encode.CodeOverloaded, Detail: "as many live streams, or keys of boards that Redis answers, are watched here as may be"}
	case err != nil:
		return encode.ProblemOf(err)
	}
	w.subscriber = subscriber
	return nil
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

// next waits for the next event; the one of kind End is the last. The error is that of ctx.
func (w *watch) next(ctx context.Context) (live.Event, error) {
	for w.subscriber != nil {
		ev, err := w.subscriber.Next(ctx)
		if err != nil || ev.Kind != live.Expired {
			return ev, err
		}
		w.close()
		if p := w.subscribe(ctx, ""); p != nil {
			return w.server.hub.End(endCode(p)), ctx.Err()
		}
	}
	return w.server.hub.End(live.CodeDraining), nil
}

// endCode returns why a stream ends whose class has no next board.
func endCode(p *encode.Problem) live.Code {
	switch p.Code {
	case encode.CodeBlocked:
		return live.CodeBlocked
	case encode.CodeUnknownClass, encode.CodeUnknownPeriod, encode.CodeNoPeriod, encode.CodeBadArgument:
		return live.CodeDeleted
	}
	return live.Code(p.Code)
}

func (w *watch) close() {
	if w.subscriber != nil {
		w.subscriber.Close()
		w.subscriber = nil
	}
}
