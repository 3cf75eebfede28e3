package rpc

import (
	"context"
	"net/http"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"rankcache"
	v1 "rankcache/proto/rankcache/v1"
	"rankcache/sidecar/live"
)

type controlKey struct{}

// withControl lets a stream's handler set the deadlines of its connection.
func withControl(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := context.WithValue(r.Context(), controlKey{}, http.NewResponseController(w))
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// watchService is the method Watch.
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
