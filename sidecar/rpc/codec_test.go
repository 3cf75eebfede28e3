package rpc

import (
	"fmt"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	v1 "rankcache/proto/rankcache/v1"
)

// TestRequestsAreDecodedAlike whether their bytes came before or not.
func TestRequestsAreDecodedAlike(t *testing.T) {
	tops := newTopRequests(protojson.Unmarshal)
	want := &v1.GetTopRequest{Address: &v1.Address{Class: "gift", Dimensions: map[string]string{"zone": "eu"}}, Order: v1.Direction_DIRECTION_ASCENDING,
		Start: 3, Limit: 7, Profiles: true, Bounds: &v1.Bounds{MinSeq: 9}}
	for fields, i := want.ProtoReflect().Descriptor().Fields(), 0; i < fields.Len(); i++ {
		if f := fields.Get(i); !want.ProtoReflect().Has(f) {
			t.Errorf("the test sets no %s", f.Name())
		}
	}
	data, err := protojson.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		got := &v1.GetTopRequest{}
		if err := tops.decode(data, got); err != nil || !proto.Equal(got, want) {
			t.Errorf("%v, %v", got, err)
		}
	}
	for i := range 3 * maxTopRequests {
		if err := tops.decode(fmt.Appendf(nil, `{"limit":%d}`, i), &v1.GetTopRequest{}); err != nil {
			t.Fatal(err)
		}
	}
	if len(tops.kept) > maxTopRequests {
		t.Errorf("%d requests are kept", len(tops.kept))
	}
	binary := newTopRequests(proto.Unmarshal)
	if data, err = proto.Marshal(want); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		got := &v1.GetTopRequest{}
		if err := binary.decode(data, got); err != nil || !proto.Equal(got, want) {
			t.Errorf("%v, %v", got, err)
		}
	}
	if err := binary.decode([]byte("\xff"), &v1.GetTopRequest{}); err == nil {
		t.Error("bytes that are no message are taken")
	}
	if err := tops.decode([]byte(`{"limt":1}`), &v1.GetTopRequest{}); err == nil {
		t.Error("an unknown field is taken")
	}
}
