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
	"rankcache/wire"
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

// Handler answers calls of the service, with its health and reflection; other requests go to next.
func Handler(to Batches, next http.Handler) http.Handler {
	mux := http.NewServeMux()
	options := connect.WithHandlerOptions(connect.WithReadMaxBytes(maxRequest), connect.WithCodec(jsonCodec("json")), connect.WithCodec(jsonCodec("json; charset=utf-8")))
	s := scores{to}
	slow := connect.NewError(connect.CodeInvalidArgument, httpserve.ErrSlow)
	mux.Handle(postScores, httpserve.CheckOrigin(httpserve.SlowBodies(slow, connect.NewUnaryHandlerSimple(postScores, s.post, options))))
	mux.Handle(grpchealth.NewHandler(grpchealth.NewStaticChecker(service), options))
	reflector := grpcreflect.NewStaticReflector(service)
	mux.Handle(grpcreflect.NewHandlerV1(reflector, options))
	mux.Handle(grpcreflect.NewHandlerV1Alpha(reflector, options))
	mux.Handle("/", next)
	return mux
}

type scores struct{ to Batches }

func (s scores) post(ctx context.Context, r *v1.PostScoresRequest) (*v1.PostScoresResponse, error) {
	batch := struct {
		Commands []wire.Command `json:"commands"`
	}{make([]wire.Command, len(r.Commands))}
	for i, c := range r.Commands {
		batch.Commands[i] = wire.Command{Board: c.GetBoard(), Class: c.GetClass(), Dims: c.GetDims(), By: c.GetBy(), Room: c.GetRoom(), Member: c.GetMember(),
			Op: c.GetOp(), Delta: c.Delta, Score: c.Score, Order: c.GetOrder(), At: c.GetAt(), Data: c.Data}
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

type jsonCodec string // refuses fields that a message has not, which Connect's own ignores

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
	case http.StatusTooManyRequests:
		code = connect.CodeResourceExhausted
	}
	err := connect.NewError(code, fmt.Errorf("%s: %s", p.Title, p.Detail))
	if detail, failed := connect.NewErrorDetail(&v1.Problem{Code: p.Code, Status: int32(p.Status), Title: p.Title, Detail: p.Detail, Argument: p.Argument}); failed == nil {
		err.AddDetail(detail)
	}
	return err
}
