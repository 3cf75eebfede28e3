// Package rpc (no public API) serves the service rankcache.v1.Scores for clients of Connect and gRPC: a call is
// a batch of the writer's HTTP API in other clothes (scores.go). Entry: [Handler].
package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"connectrpc.com/connect"
	"connectrpc.com/grpchealth"
	"connectrpc.com/grpcreflect"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"rankcache/internal/httpserve"
	v1 "rankcache/proto/rankcache/v1"
)

const (
	service    = "rankcache.v1.Scores"
	postScores = "/" + service + "/PostScores"
	maxRequest = 256 << 10 // bytes
)

// Batches takes the commands of a body of POST /v1/scores:batch; the answer is that of it.
type Batches interface {
	PostBatch(ctx context.Context, body []byte) (answer []byte, problem httpserve.Problem, ok bool)
}

// Handler answers calls of the service, with its health and reflection; other requests go to
// next.
func Handler(to Batches, next http.Handler) http.Handler {
	mux := http.NewServeMux()
	options := connect.WithHandlerOptions(connect.WithReadMaxBytes(maxRequest), connect.WithCodec(jsonCodec("json")), connect.WithCodec(jsonCodec("json; charset=utf-8")))
	s := scores{to}
	mux.Handle(postScores, httpserve.CheckOrigin(connect.NewUnaryHandlerSimple(postScores, s.post, options)))
	mux.Handle(grpchealth.NewHandler(grpchealth.NewStaticChecker(service), options))
	reflector := grpcreflect.NewStaticReflector(service)
	mux.Handle(grpcreflect.NewHandlerV1(reflector, options))
	mux.Handle(grpcreflect.NewHandlerV1Alpha(reflector, options))
	mux.Handle("/", next)
	return mux
}

type scores struct{ to Batches }

// command is a [v1.Command] as the HTTP API has it.
type command struct {
	Board  string            `json:"board,omitempty"`
	Class  string            `json:"class,omitempty"`
	Dims   map[string]string `json:"dims,omitempty"`
	By     map[string]string `json:"by,omitempty"`
	Room   string            `json:"room,omitempty"`
	Member string            `json:"member"`
	Op     string            `json:"op"`
	Delta  *float64          `json:"delta,omitempty"`
	Score  *float64          `json:"score,omitempty"`
	Order  string            `json:"order"`
	At     int64             `json:"at,omitempty"`
	Data   *string           `json:"data,omitempty"`
}

func (s scores) post(ctx context.Context, r *v1.PostScoresRequest) (*v1.PostScoresResponse, error) {
	batch := struct {
		Commands []command `json:"commands"`
	}{make([]command, len(r.Commands))}
	for i, c := range r.Commands {
		batch.Commands[i] = command{c.GetBoard(), c.GetClass(), c.GetDims(), c.GetBy(), c.GetRoom(), c.GetMember(), c.GetOp(), c.Delta, c.Score, c.GetOrder(), c.GetAt(), c.Data}
	}
	body, err := json.Marshal(batch)
	if err != nil { // JSON has no infinite numbers
		return nil, connect.NewError(connect.CodeInvalidArgument, errors.New("a delta or a score is not a finite number"))
	}
	answer, problem, ok := s.to.PostBatch(ctx, body)
	if !ok {
		return nil, errorOf(&problem)
	}
	res := &v1.PostScoresResponse{}
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(answer, res); err != nil {
		return nil, connect.NewError(connect.CodeInternal, fmt.Errorf("the answer does not fit its message: %w", err))
	}
	return res, nil
}

// jsonCodec refuses fields that a message has not, which Connect's own ignores.
type jsonCodec string

func (c jsonCodec) Name() string { return string(c) }

func (c jsonCodec) Marshal(message any) ([]byte, error) {
	return protojson.Marshal(message.(proto.Message))
}

func (c jsonCodec) Unmarshal(data []byte, message any) error {
	return protojson.Unmarshal(data, message.(proto.Message))
}

// errorOf returns the problem as the error of a call, with its code in the detail.
func errorOf(p *httpserve.Problem) error {
	code := connect.CodeInvalidArgument
	switch p.Status {
	case http.StatusServiceUnavailable:
		code = connect.CodeUnavailable
	case http.StatusForbidden:
		code = connect.CodePermissionDenied
	}
	err := connect.NewError(code, fmt.Errorf("%s: %s", p.Title, p.Detail))
	if detail, failed := connect.NewErrorDetail(&v1.Problem{Code: p.Code, Status: int32(p.Status), Title: p.Title, Detail: p.Detail, Argument: p.Argument}); failed == nil {
		err.AddDetail(detail)
	}
	return err
}
