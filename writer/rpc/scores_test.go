package rpc

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"rankcache/internal/httpserve"
	v1 "rankcache/proto/rankcache/v1"
)

// batches answers every batch alike.
type batches struct {
	body    []byte
	answer  string
	problem httpserve.Problem
}

func (b *batches) PostBatch(_ context.Context, body []byte) ([]byte, httpserve.Problem, bool) {
	b.body = body
	return []byte(b.answer), b.problem, b.answer != ""
}

func client(t *testing.T, b *batches) *connect.Client[v1.PostScoresRequest, v1.PostScoresResponse] {
	srv := httptest.NewServer(Handler(b, http.NotFoundHandler()))
	t.Cleanup(srv.Close)
	return connect.NewClient[v1.PostScoresRequest, v1.PostScoresResponse](srv.Client(), srv.URL+postScores)
}

func TestPostScores(t *testing.T) {
	b := &batches{answer: `{"results":[{"result":{"v":2,"board":"b","member":"m","op":"incr","delta":2,"score":5,"raw":5.5,"order":"o","at":7,"run":9,"seq":12,"sum":"00","members":3,` +
		`"state":"9-12-00","duplicate":true,"fed":[{"board":"c","score":1,"seq":2},{"board":"d","refused":"late"}]}},{"order":"o/x","problem":{"title":"T","status":400,"code":"bad_argument","argument":"op","detail":"D"}}]}`}
	res, err := client(t, b).CallUnary(t.Context(), connect.NewRequest(&v1.PostScoresRequest{Commands: []*v1.Command{
		{Board: "b", Member: "m<", Op: "incr", Delta: proto.Float64(2), Order: "o", At: 7},
		{Class: "gift", Dims: map[string]string{"zone": "eu"}, Member: "m", Op: "set", Score: proto.Float64(0), Order: "p"},
	}}))
	if err != nil {
		t.Fatal(err)
	}
	want := &v1.PostScoresResponse{Results: []*v1.Result{
		{Outcome: &v1.Result_Result{Result: &v1.Applied{Board: "b", Member: "m", Score: 5, Seq: 12, State: "9-12-00", Duplicate: true,
			Fed: []*v1.Fed{{Board: "c", Score: 1, Seq: 2}, {Board: "d", Refused: "late"}}}}},
		{Outcome: &v1.Result_Problem{Problem: &v1.Problem{Title: "T", Status: 400, Code: "bad_argument", Argument: "op", Detail: "D"}}, Order: "o/x"},
	}}
	if diff := cmp.Diff(want, res.Msg, protocmp.Transform()); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
	var posted struct{ Commands []map[string]any }
	if err := json.Unmarshal(b.body, &posted); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]map[string]any{
		{"board": "b", "member": "m<", "op": "incr", "delta": 2.0, "order": "o", "at": 7.0},
		{"class": "gift", "dims": map[string]any{"zone": "eu"}, "member": "m", "op": "set", "score": 0.0, "order": "p"},
	}, posted.Commands); diff != "" {
		t.Errorf("commands (-want +got):\n%s", diff)
	}
}

func TestRefusedBatch(t *testing.T) {
	for status, want := range map[int]connect.Code{400: connect.CodeInvalidArgument, 403: connect.CodePermissionDenied, 503: connect.CodeUnavailable} {
		b := &batches{problem: httpserve.Problem{Status: status, Code: "c", Title: "T", Detail: "D"}}
		_, err := client(t, b).CallUnary(t.Context(), connect.NewRequest(&v1.PostScoresRequest{}))
		ce, ok := err.(*connect.Error)
		if !ok || ce.Code() != want || ce.Message() != "T: D" || len(ce.Details()) != 1 {
			t.Errorf("%d: %v", status, err)
		}
	}
}

// TestPostedJSON: a field that is misspelt, given twice or no Unicode is refused, as by the HTTP API.
func TestPostedJSON(t *testing.T) {
	b := &batches{answer: `{"results":[]}`}
	h := Handler(b, http.NotFoundHandler())
	for command, want := range map[string]string{
		`"member":"m","at":"7"`:     "",
		`"member":"m","att":"7"`:    "att",
		`"member":"m","member":"n"`: "member",
		`"member":"\ud800"`:         "invalid_argument",
	} {
		for _, media := range []string{"application/json", "application/json; charset=utf-8"} {
			b.body = nil
			r := httptest.NewRequest(http.MethodPost, postScores, strings.NewReader(`{"commands":[{`+command+`}]}`))
			r.Header.Set("Content-Type", media)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if refused := w.Code == http.StatusBadRequest && b.body == nil; refused != (want != "") || !strings.Contains(w.Body.String(), want) {
				t.Errorf("%s as %s: %d %s, posts %s; want %q", command, media, w.Code, w.Body, b.body, want)
			}
		}
	}
}
