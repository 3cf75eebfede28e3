package rpc

import (
	"fmt"
	"strconv"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// codec is one of Connect's own, for messages that are encoded already, too.
type codec struct {
	name string
	json bool
}

// codecs are the options that replace Connect's.
func codecs() connect.HandlerOption {
	return connect.WithHandlerOptions(connect.WithCodec(codec{"proto", false}),
		connect.WithCodec(codec{"json", true}), connect.WithCodec(codec{"json; charset=utf-8", true}))
}

// encoded is a message that appends itself.
type encoded interface {
	appendTo(dst []byte, json bool) ([]byte, error)
}

func (c codec) Name() string { return c.name }

func (c codec) IsBinary() bool { return !c.json }

func (c codec) Marshal(message any) ([]byte, error) { return c.MarshalAppend(nil, message) }

// MarshalAppend lets Connect encode into its own buffer.
func (c codec) MarshalAppend(dst []byte, message any) ([]byte, error) {
	if e, ok := message.(encoded); ok {
		return e.appendTo(dst, c.json)
	}
	m, ok := message.(proto.Message)
	if !ok {
		return nil, fmt.Errorf("%T is no message", message)
	}
	return appendMessage(dst, m, c.json)
}

func appendMessage(dst []byte, m proto.Message, json bool) ([]byte, error) {
	if json {
		return protojson.MarshalOptions{}.MarshalAppend(dst, m)
	}
	return proto.MarshalOptions{}.MarshalAppend(dst, m)
}

func (c codec) Unmarshal(data []byte, message any) error {
	m, ok := message.(proto.Message)
	if !ok {
		return fmt.Errorf("%T is no message", message)
	}
	if !c.json {
		return proto.Unmarshal(data, m)
	}
	if len(data) == 0 {
		return fmt.Errorf("no JSON: want an object")
	}
	return protojson.Unmarshal(data, m)
}

// topAnswer is a GetTopResponse of a page that is encoded once for all callers.
type topAnswer struct {
	page  *page
	ageMs int64
}

// The numbers of GetTopResponse's fields.
const (
	fieldPage protoreflect.FieldNumber = 1
	fieldAge  protoreflect.FieldNumber = 2
)

func (a *topAnswer) appendTo(dst []byte, json bool) ([]byte, error) {
	data, err := a.page.encoded(json)
	if err != nil {
		return nil, err
	}
	if json {
		dst = append(append(dst, `{"page":`...), data...)
		dst = strconv.AppendInt(append(dst, `,"ageMs":"`...), a.ageMs, 10)
		return append(dst, `"}`...), nil
	}
	dst = protowire.AppendTag(dst, fieldPage, protowire.BytesType)
	dst = protowire.AppendBytes(dst, data)
	dst = protowire.AppendTag(dst, fieldAge, protowire.VarintType)
	return protowire.AppendVarint(dst, uint64(a.ageMs)), nil
}

// raw is a message whose bytes are shared by many clients.
type raw struct {
	encode func(json bool) []byte
}

func (r *raw) appendTo(dst []byte, json bool) ([]byte, error) {
	return append(dst, r.encode(json)...), nil
}
