package rpc

import (
	"errors"
	"net/http"

	"connectrpc.com/connect"

	v1 "rankcache/proto/rankcache/v1"
	"rankcache/sidecar/encode"
)

// errorOf returns the problem as the error of a call: the detail has the code that callers
// decide by, which is that of HTTP.
func errorOf(p *encode.Problem) error {
	text := p.Info().Title
	if p.Argument != "" {
		text += ": " + p.Argument
	}
	if p.Detail != "" {
		text += ": " + p.Detail
	}
	err := connect.NewError(connectCode(p), errors.New(text))
	if detail, failed := connect.NewErrorDetail(problemMessage(p)); failed == nil {
		err.AddDetail(detail)
	}
	return err
}

func problemMessage(p *encode.Problem) *v1.Problem {
	info := p.Info()
	return &v1.Problem{Code: string(p.Code), Status: int32(info.Status), Title: info.Title, Detail: p.Detail, Argument: p.Argument, Seq: p.Seq}
}

// connectCode returns Connect's code for a problem.
func connectCode(p *encode.Problem) connect.Code {
	switch p.Info().Status {
	case http.StatusBadRequest:
		return connect.CodeInvalidArgument
	case http.StatusForbidden:
		return connect.CodePermissionDenied
	case http.StatusNotFound:
		return connect.CodeNotFound
	case http.StatusConflict, http.StatusPreconditionFailed, http.StatusUnprocessableEntity:
		return connect.CodeFailedPrecondition
	case http.StatusServiceUnavailable:
		return connect.CodeUnavailable
	}
	return connect.CodeInternal
}
