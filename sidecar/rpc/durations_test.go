package rpc

import (
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

// TestRequestsAreMeasured: by method and code.
func TestRequestsAreMeasured(t *testing.T) {
	e := start(t)
	for _, board := range []string{"local", "local", "shut"} {
		res, err := http.Post(e.url("/rankcache.v1.Boards/GetTop"), "application/json", strings.NewReader(`{"address":{"board":"`+board+`"},"limit":1}`))
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
	}
	if n := testutil.ToFloat64(e.reads.WithLabelValues("local")); n != 2 || testutil.CollectAndCount(e.reads) != 1 {
		t.Errorf("%v reads were answered from local memory, want 2 and no others", n)
	}
	if n := testutil.CollectAndCount(e.durations); n != 2 {
		t.Errorf("%d methods and codes, want GetTop ok and GetTop permission_denied", n)
	}
	for _, labels := range [][]string{{"GetTop", "ok"}, {"GetTop", "permission_denied"}} {
		if !e.durations.DeleteLabelValues(labels...) {
			t.Errorf("nothing is measured of %v", labels)
		}
	}
}
