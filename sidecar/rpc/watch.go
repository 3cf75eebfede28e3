package rpc

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"rankcache"
	v1 "rankcache/proto/rankcache/v1"
	"rankcache/sidecar/encode"
	"rankcache/sidecar/live"
)

// watch is one client's stream of events of one address.
type watch struct {
	server     *Server
	address    address
	subscriber *live.Subscriber // nil: draining
	endsAt     time.Time        // its client may have left a proxy that goes on reading
}

type streams struct{ *Server } // opens the streams of boards

// open returns the watch once its page was read. The caller closes it.
func (s streams) open(ctx context.Context, a address, lastID string) (*watch, *encode.Problem) {
	w := &watch{server: s.Server, address: a, endsAt: time.Now().Add(s.cfg.Lifetime - s.cfg.Lifetime/10 + rand.N(s.cfg.Lifetime/5))}
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

// run sends events until one ends the stream. The error is that of ctx, of the write time-out, or of send.
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
	for w.subscriber != nil && time.Now().Before(w.endsAt) {
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

type controlKey struct{}

// withControl lets a stream's handler set the deadlines of its connection.
func withControl(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := context.WithValue(r.Context(), controlKey{}, http.NewResponseController(w))
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

type watchService struct{ services }

// watch is the method Watch: the events of a watch as messages.
func (s watchService) watch(ctx context.Context, r *v1.WatchRequest, to *connect.ServerStream[v1.WatchResponse]) error {
	show := &v1.Show{Trend: r.Trend}
	if _, p := s.locate(r.Address, r.Order, r.Limit, r.Profiles, show); p != nil {
		return errorOf(p)
	}
	w, p := streams{s.Server}.open(ctx, addressOf(r.Address, r.Order, r.Limit, r.Profiles, show), r.LastId)
	if p != nil {
		return errorOf(p)
	}
	defer w.close()
	return w.run(ctx, ctx.Value(controlKey{}).(*http.ResponseController), func(ev *live.Event) error { return to.Send(eventMessage(ev)) })
}

func eventMessage(ev *live.Event) *v1.WatchResponse {
	switch ev.Kind {
	case live.Update:
		return updateMessage(ev.Message())
	case live.End:
		return &v1.WatchResponse{Event: &v1.WatchResponse_End{End: &v1.End{Code: string(ev.Code), RetryMs: int32(ev.Retry.Milliseconds())}}}
	}
	return &v1.WatchResponse{Event: &v1.WatchResponse_Age{Age: &v1.Age{AgeMs: ev.Age.Milliseconds(), Source: ev.Source.String()}}}
}

func updateMessage(m *live.Message) *v1.WatchResponse {
	page := head(m.Key, m.Source, rankcache.Stamp{State: m.State, Members: m.Members, Life: m.Life, At: m.At}, m.Shards)
	page.Incomplete = m.Incomplete
	page.Limit, page.ProfilesMissing = int32(m.Key.Limit), int32(m.ProfilesMissing)
	if m.Trend != "" {
		page.Trend = &m.Trend
	}
	rows := make([]*v1.Row, len(m.Rows))
	for i, r := range m.Rows {
		rows[i] = &v1.Row{Rank: proto.Int64(int64(i + 1)), Member: r.Member, Score: &r.Score, Data: dataText(r.Data), Profile: profileText(r.Profile())}
		if r.Before > 0 {
			rows[i].PreviousRank = proto.Int64(int64(r.Before))
		}
	}
	if m.Base == "" {
		page.Rows = rows
		return &v1.WatchResponse{Id: m.ID, Event: &v1.WatchResponse_Page{Page: page}}
	}
	diff := &v1.Diff{Base: m.Base, Page: page, Len: int32(m.Len), Changes: make([]*v1.Change, len(rows))}
	for i, row := range rows {
		*row.Rank = int64(m.Positions[i] + 1)
		diff.Changes[i] = &v1.Change{At: int32(m.Positions[i]), Row: row}
	}
	return &v1.WatchResponse{Id: m.ID, Event: &v1.WatchResponse_Diff{Diff: diff}}
}
