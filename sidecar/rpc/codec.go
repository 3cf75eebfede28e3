package rpc

import (
	"fmt"
	"strconv"
	"sync"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	v1 "rankcache/proto/rankcache/v1"
)

// codec is one of Connect's own, for messages that are encoded already, too.
type codec struct {
	name string
	json bool
	tops *topRequests
}

// codecs are the options that replace Connect's.
func codecs() connect.HandlerOption {
	tops := newTopRequests(protojson.Unmarshal)
	return connect.WithHandlerOptions(connect.WithCodec(codec{"proto", false, newTopRequests(proto.Unmarshal)}),
		connect.WithCodec(codec{"json", true, tops}), connect.WithCodec(codec{"json; charset=utf-8", true, tops}))
}

// topRequests are decoded requests of one format by their bytes: an app sends the same ones
// again and again, and to decode one takes longer than to answer it.
type topRequests struct {
	unmarshal func([]byte, proto.Message) error

	mu   sync.RWMutex
	kept map[string]*v1.GetTopRequest // never changed
}

func newTopRequests(unmarshal func([]byte, proto.Message) error) *topRequests {
	return &topRequests{unmarshal: unmarshal, kept: make(map[string]*v1.GetTopRequest)}
}

// Limits of topRequests.
const (
	maxTopRequests = 256
	maxTopRequest  = 1 << 10 // bytes
)

// decode sets to, whose address and bounds may be shared with other requests.
func (t *topRequests) decode(data []byte, to *v1.GetTopRequest) error {
	t.mu.RLock()
	kept := t.kept[string(data)]
	t.mu.RUnlock()
	if kept == nil {
		kept = &v1.GetTopRequest{}
		if err := t.unmarshal(data, kept); err != nil {
			return err
		}
		t.keep(data, kept)
	}
	to.Address, to.Order, to.Start, to.Limit, to.Profiles, to.Bounds = kept.Address, kept.Order, kept.Start, kept.Limit, kept.Profiles, kept.Bounds
	return nil
}

func (t *topRequests) keep(data []byte, request *v1.GetTopRequest) {
	if len(data) > maxTopRequest {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.kept) >= maxTopRequests {
		clear(t.kept)
	}
	t.kept[string(data)] = request
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
	if c.json && len(data) == 0 {
		return fmt.Errorf("no JSON: want an object")
	}
	if top, ok := m.(*v1.GetTopRequest); ok {
		return c.tops.decode(data, top)
	}
	return c.tops.unmarshal(data, m)
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
