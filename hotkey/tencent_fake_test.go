package hotkey

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

const (
	testID     = "AKIDtest-secret-id-0000"
	testSecret = "test-secret-key-1111"
	testToken  = "test-session-token-2222"
	testRegion = "ap-guangzhou"
)

// fakeTencent is a local API that refuses what the real one would, then plays
// the answer that the test has put up.
type fakeTencent struct {
	*httptest.Server
	calls  atomic.Int64
	answer atomic.Pointer[http.HandlerFunc]
	clock  func() time.Time
}

func newFakeTencent(t testing.TB) *fakeTencent {
	f := &fakeTencent{clock: time.Now}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	f.plays(body(http.StatusOK, `{"Response":{"Data":[],"RequestId":"r-1"}}`))
	return f
}

func (f *fakeTencent) plays(answer http.HandlerFunc) { f.answer.Store(&answer) }

func (f *fakeTencent) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.calls.Add(1)
	if code := f.refuses(r); code != "" {
		body(http.StatusOK, apiError(code, "the request of "+testID+" was refused"))(w, r)
		return
	}
	(*f.answer.Load())(w, r)
}

// refuses returns the error code of a request that the API would not take.
func (f *fakeTencent) refuses(r *http.Request) string {
	payload, _ := io.ReadAll(r.Body)
	at, err := strconv.ParseInt(r.Header.Get("X-TC-Timestamp"), 10, 64)
	skew := f.clock().Sub(time.Unix(at, 0)).Abs()
	var params struct {
		InstanceId string
		SpanType   int
	}
	switch {
	case r.Header.Get("X-TC-Action") != "DescribeInstanceMonitorHotKey":
		return "InvalidAction"
	case r.Header.Get("X-TC-Version") != "2018-04-12":
		return "NoSuchVersion"
	case r.Header.Get("X-TC-Region") != testRegion:
		return "UnsupportedRegion"
	case err != nil || skew > 5*time.Minute:
		return "AuthFailure.SignatureExpire"
	case r.Header.Get("X-TC-Token") != testToken:
		return "AuthFailure.TokenFailure"
	case r.Header.Get("Authorization") != signTC3(r, string(payload), time.Unix(at, 0)):
		return "AuthFailure.SignatureFailure"
	case json.Unmarshal(payload, &params) != nil || params.SpanType != 1:
		return "InvalidParameter"
	case params.InstanceId != "crs-test":
		return "ResourceNotFound.InstanceNotExists"
	}
	return ""
}

// signTC3 is TC3-HMAC-SHA256 from its specification.
func signTC3(r *http.Request, payload string, at time.Time) string {
	canonical := strings.Join([]string{r.Method, "/", "", "content-type:" + r.Header.Get("Content-Type"),
		"host:" + r.Host, "", "content-type;host", sha(payload)}, "\n")
	date := at.UTC().Format("2006-01-02")
	scope := date + "/redis/tc3_request"
	text := strings.Join([]string{"TC3-HMAC-SHA256", strconv.FormatInt(at.Unix(), 10), scope, sha(canonical)}, "\n")
	key := mac(mac(mac([]byte("TC3"+testSecret), date), "redis"), "tc3_request")
	return fmt.Sprintf("TC3-HMAC-SHA256 Credential=%s/%s, SignedHeaders=content-type;host, Signature=%s",
		testID, scope, hex.EncodeToString(mac(key, text)))
}

func sha(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

func mac(key []byte, s string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(s))
	return h.Sum(nil)
}

// body answers with a status and a text.
func body(status int, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text)
	}
}

func apiError(code, message string) string {
	return fmt.Sprintf(`{"Response":{"Error":{"Code":%q,"Message":%q},"RequestId":"r-2"}}`, code, message)
}

// hangUp breaks the connection, after a part of an answer.
func hangUp(part string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, buf, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		_, _ = buf.WriteString(part)
		_ = buf.Flush()
		_ = conn.Close()
	}
}
