package hotkey

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tencentcloud/tencentcloud-sdk-go/tencentcloud/common"

	"rankcache/wire"
)

// testKeys hands out the credentials that the fake knows.
type testKeys struct{ id, secret, token string }

func (k testKeys) GetCredential() (common.CredentialIface, error) {
	return common.NewTokenCredential(k.id, k.secret, k.token), nil
}

func goodKeys(string) (common.Provider, time.Duration, error) {
	return testKeys{testID, testSecret, testToken}, 0, nil
}

func newTestTencent(t testing.TB, f *fakeTencent) *Tencent {
	t.Helper()
	s, err := NewTencent(TencentConfig{Instance: "crs-test", Region: testRegion, Endpoint: f.URL}, wire.DefaultNames())
	if err != nil {
		t.Fatal(err)
	}
	s.api.keys.lookup = goodKeys
	return s
}

const hotAnswer = `{"Response":{"RequestId":"r-1","Data":[
	{"Key":"1_2_3","Type":"zset","Count":9000},
	{"Key":"4_5_6","Count":500},
	{"Key":"7_8_9","Type":"zset","Count":499},
	{"Key":"session","Type":"string","Count":9000},
	{"Key":"{1_2_3}:meta","Type":"unknown","Count":9000},
	null, {}, {"Key":null,"Count":null}]}}`

func TestTencentFindsBoards(t *testing.T) {
	f := newFakeTencent(t)
	f.plays(body(http.StatusOK, hotAnswer))
	s, err := newTestTencent(t, f).Hot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(s); got != "{[{1_2_3 9000} {4_5_6 500}] 5}" {
		t.Errorf("got %s", got)
	}
}

// What the API and what stands before it may answer, and what the poller is to
// do then. Each ends in time and without a panic, and none shows a credential.
func TestTencentAnswers(t *testing.T) {
	for _, tt := range []struct {
		name   string
		answer http.HandlerFunc
		code   string // "" for none
		after  After
	}{
		{"ok", body(200, hotAnswer), "", ""},
		{"empty", body(200, `{"Response":{"Data":[],"RequestId":"r"}}`), "", ""},
		{"no data", body(200, `{"Response":{"Data":null,"RequestId":"r"}}`), "", ""},
		{"{}", body(200, `{}`), "empty", AfterPause},
		{"null", body(200, `null`), "garbled", AfterPause}, // the SDK panics
		{"HTML 502", body(502, `<html>Bad Gateway</html>`), "garbled", AfterPause},
		{"HTML 200", body(200, `<html>log in first</html>`), "garbled", AfterPause},
		{"JSON 503", body(503, `{}`), "garbled", AfterPause},
		{"cut JSON", body(200, hotAnswer[:80]), "garbled", AfterPause},
		{"nothing", body(200, ``), "garbled", AfterPause},
		{"wrong types", body(200, `{"Response":{"Data":[{"Key":5,"Count":"many"}]}}`), "garbled", AfterPause},
		{"a list", body(200, `[1]`), "garbled", AfterPause},
		{"endless", endless, "garbled", AfterPause},
		{"event stream", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			body(200, "data: 1\n\n")(w, r)
		}, "garbled", AfterPause},
		{"redirect", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusTemporaryRedirect)
		}, "network", AfterPause},
		{"connection reset", hangUp(""), "network", AfterPause},
		{"reset in the body", hangUp("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{\"Resp"), "garbled", AfterPause},
		{"too many calls", body(200, apiError("RequestLimitExceeded", "slow down")), "RequestLimitExceeded", AfterBackoff},
		{"too many calls of a kind", body(200, apiError("RequestLimitExceeded.UinLimitExceeded", "slow down")), "RequestLimitExceeded", AfterBackoff},
		{"internal error", body(200, apiError("InternalError.DbOperationFailed", "sorry")), "InternalError", AfterPause},
		{"bad signature", body(200, apiError("AuthFailure.SignatureFailure", "of "+testID+" and "+testToken)), "AuthFailure", AfterOperator},
		{"no right", body(200, apiError("UnauthorizedOperation", "cam: "+testID)), "UnauthorizedOperation", AfterOperator},
		{"no such instance", body(200, apiError("ResourceNotFound.InstanceNotExists", "?")), "ResourceNotFound", AfterOperator},
		{"unknown code", body(200, apiError("Surprise.Of.The\nDay", "?")), "other", AfterBackoff},
		{"secret in a page", body(200, "<p>"+testSecret+testToken+"</p>"), "garbled", AfterPause},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFakeTencent(t)
			f.plays(tt.answer)
			_, err := newTestTencent(t, f).Hot(t.Context())
			checkCall(t, err, tt.code, tt.after)
			if n := f.calls.Load(); n != 1 {
				t.Errorf("%d requests, want 1: the library must not retry by itself", n)
			}
		})
	}
}

func endless(w http.ResponseWriter, _ *http.Request) {
	chunk := strings.Repeat(" ", 1<<16)
	for {
		if _, err := io.WriteString(w, chunk); err != nil {
			return
		}
	}
}

func checkCall(t *testing.T, err error, code string, after After) {
	t.Helper()
	if code == "" {
		if err != nil {
			t.Errorf("error %v, want none", err)
		}
		return
	}
	var call *CallError
	if !errors.As(err, &call) {
		t.Fatalf("error %v, want a CallError", err)
	}
	if call.Code != code || call.After != after {
		t.Errorf("code %q, then %q (%v); want %q, then %q", call.Code, call.After, err, code, after)
	}
	for _, secret := range []string{testID, testSecret, testToken, "\n"} {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("error shows %q: %v", secret, err)
		}
	}
	if len(err.Error()) > 600 {
		t.Errorf("error of %d bytes: %.100s...", len(err.Error()), err)
	}
}

func TestTencentRequestIsRefused(t *testing.T) {
	for _, tt := range []struct {
		name  string
		spoil func(*fakeTencent, *Tencent)
		code  string
		text  string
	}{
		{"wrong key", func(_ *fakeTencent, s *Tencent) {
			s.api.keys.lookup = func(string) (common.Provider, time.Duration, error) {
				return testKeys{testID, "wrong", testToken}, 0, nil
			}
		}, "AuthFailure", "check the credentials"},
		{"clock off", func(f *fakeTencent, _ *Tencent) {
			f.clock = func() time.Time { return time.Now().Add(10 * time.Minute) }
		}, "AuthFailure", "clock of this host"},
		{"wrong instance", func(_ *fakeTencent, s *Tencent) { s.api.instance = "crs-other" }, "ResourceNotFound", "check the instance id"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFakeTencent(t)
			s := newTestTencent(t, f)
			tt.spoil(f, s)
			_, err := s.Hot(t.Context())
			checkCall(t, err, tt.code, AfterOperator)
			if err != nil && !strings.Contains(err.Error(), tt.text) {
				t.Errorf("error %v does not contain %q", err, tt.text)
			}
		})
	}
	t.Run("wrong region", func(t *testing.T) {
		f := newFakeTencent(t)
		s, err := NewTencent(TencentConfig{Instance: "crs-test", Region: "ap-nowhere", Endpoint: f.URL}, wire.DefaultNames())
		if err != nil {
			t.Fatal(err)
		}
		s.api.keys.lookup = goodKeys
		_, err = s.Hot(t.Context())
		checkCall(t, err, "UnsupportedRegion", AfterOperator)
	})
}

// A server that never answers ends with the context, and the next call works.
func TestTencentHang(t *testing.T) {
	f := newFakeTencent(t)
	release := make(chan struct{})
	f.plays(func(http.ResponseWriter, *http.Request) { <-release })
	defer close(release)
	s := newTestTencent(t, f)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := s.Hot(ctx)
	checkCall(t, err, "timeout", AfterPause)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v does not wrap the deadline", err)
	}
	f.plays(body(200, hotAnswer))
	if _, err := s.Hot(t.Context()); err != nil {
		t.Errorf("the call after the hang: %v", err)
	}
}

// blockedKeys are looked up without end, as from a metadata service that does
// not answer.
type blockedKeys chan struct{}

func (b blockedKeys) GetCredential() (common.CredentialIface, error) {
	<-b
	return nil, errors.New("gone")
}

// The library looks up credentials without regard to a context. The caller goes
// on all the same, and no second lookup is started beside the first.
func TestTencentCredentialsHang(t *testing.T) {
	f := newFakeTencent(t)
	s := newTestTencent(t, f)
	blocked, lookups := make(blockedKeys), 0
	s.api.keys.lookup = func(string) (common.Provider, time.Duration, error) { lookups++; return blocked, 0, nil }
	for range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		_, err := s.Hot(ctx)
		cancel()
		checkCall(t, err, "timeout", AfterPause)
	}
	close(blocked)
	s.busy <- struct{}{} // the first call has ended
	if lookups != 1 {
		t.Errorf("%d lookups at once, want 1", lookups)
	}
}

func TestTencentCredentials(t *testing.T) {
	set := func(id, secret string) {
		t.Setenv("TENCENTCLOUD_SECRET_ID", id)
		t.Setenv("TENCENTCLOUD_SECRET_KEY", secret)
	}
	set("id-1", "key-1")
	keys, err := newTencentKeys(TencentAuto)
	if err != nil {
		t.Fatal(err)
	}
	c, err := keys.get(time.Now())
	if err != nil || c.SecretId != "id-1" || c.SecretKey != "key-1" {
		t.Fatalf("%v, %v", c, err)
	}
	set("id-2", "key-2") // read again only when the API refuses the old ones
	if c, _ = keys.get(time.Now().Add(time.Hour)); c.SecretId != "id-1" {
		t.Errorf("credentials changed by themselves")
	}
	keys.forget()
	if c, _ = keys.get(time.Now()); c.SecretId != "id-2" {
		t.Errorf("credentials did not change after they were refused")
	}
	set("id-3", "")
	keys.forget()
	_, err = keys.get(time.Now())
	checkCall(t, err, "credentials", AfterOperator)

	t.Setenv("TENCENTCLOUD_SECRET_ID", "")
	t.Setenv("TKE_ROLE_ARN", "qcs::cam::uin/1:roleName/x") // but no token file
	_, err = keys.get(time.Now())
	checkCall(t, err, "credentials", AfterOperator)
	if _, err := newTencentKeys("gcp"); err == nil {
		t.Error("unknown credentials are accepted")
	}
}

// Credentials of a role are looked up again in time, and kept when that fails.
func TestTencentRoleCredentialsAreRenewed(t *testing.T) {
	lookups, fail := 0, false
	keys := &tencentKeys{lookup: func(string) (common.Provider, time.Duration, error) {
		if lookups++; fail {
			return nil, cvmKeysFor, errors.New("metadata service is away")
		}
		return testKeys{fmt.Sprint("id-", lookups), "k", "t"}, cvmKeysFor, nil
	}}
	now := time.Now()
	for _, step := range []struct {
		after time.Duration
		fail  bool
		want  string
	}{{0, false, "id-1"}, {time.Minute, false, "id-1"}, {2 * time.Minute, false, "id-2"}, {5 * time.Minute, true, "id-2"}, {8 * time.Minute, false, "id-4"}} {
		fail = step.fail
		c, err := keys.get(now.Add(step.after))
		if err != nil || c.SecretId != step.want {
			t.Errorf("after %v: %v, %v; want %s", step.after, c, err, step.want)
		}
	}
}

func TestTencentConfig(t *testing.T) {
	good := TencentConfig{Instance: "crs-1", Region: "ap-x"}
	for _, endpoint := range []string{"", "https://redis.internal.tencentcloudapi.com", "http://127.0.0.1:99", "http://localhost:99/"} {
		good.Endpoint = endpoint
		if _, err := NewTencent(good, wire.DefaultNames()); err != nil {
			t.Errorf("%q: %v", endpoint, err)
		}
	}
	for _, bad := range []TencentConfig{
		{}, {Instance: "crs-1"}, {Region: "ap-x"},
		{Instance: "crs-1", Region: "ap-x", Endpoint: "http://redis.tencentcloudapi.com"},
		{Instance: "crs-1", Region: "ap-x", Endpoint: "redis.tencentcloudapi.com"},
		{Instance: "crs-1", Region: "ap-x", Endpoint: "https://u:p@host"},
		{Instance: "crs-1", Region: "ap-x", Endpoint: "https://host/path"},
		{Instance: "crs-1", Region: "ap-x", Credentials: "magic"},
	} {
		if _, err := NewTencent(bad, wire.DefaultNames()); err == nil {
			t.Errorf("%+v is accepted", bad)
		}
	}
}

// roundTrip answers without a network.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func FuzzTencentAnswer(f *testing.F) {
	f.Add(200, "application/json", hotAnswer)
	f.Add(200, "text/html", "<html>")
	f.Add(200, "", "null")
	f.Add(502, "", apiError("InternalError", "x"))
	s, err := NewTencent(TencentConfig{Instance: "crs-test", Region: testRegion}, wire.DefaultNames())
	if err != nil {
		f.Fatal(err)
	}
	s.api.keys.lookup = goodKeys
	f.Fuzz(func(t *testing.T, status int, kind, text string) {
		s.api.client.WithHttpTransport(guard{roundTrip(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {kind}}, Body: io.NopCloser(strings.NewReader(text))}, nil
		})})
		sample, err := s.Hot(t.Context())
		var call *CallError
		if err != nil && !errors.As(err, &call) {
			t.Errorf("error %v is not classed", err)
		}
		for _, b := range sample.Boards {
			if b.Board.Check() != nil || b.Count < DefaultTencentMinCount {
				t.Errorf("board %+v", b)
			}
		}
	})
}

// A redirect would send the session token to the host that it names.
func TestTencentFollowsNoRedirect(t *testing.T) {
	f, other := newFakeTencent(t), newFakeTencent(t)
	f.plays(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
	})
	_, err := newTestTencent(t, f).Hot(t.Context())
	checkCall(t, err, "network", AfterPause)
	if n := other.calls.Load(); n != 0 {
		t.Errorf("%d requests reached the other server", n)
	}
}

// Credentials that the API refuses are looked up again at the next call: they
// may have been replaced.
func TestTencentRefusedCredentialsAreLookedUpAgain(t *testing.T) {
	s, lookups := newTestTencent(t, newFakeTencent(t)), 0
	s.api.keys.lookup = func(string) (common.Provider, time.Duration, error) {
		if lookups++; lookups == 1 {
			return testKeys{testID, "old", testToken}, 0, nil
		}
		return goodKeys("")
	}
	_, err := s.Hot(t.Context())
	checkCall(t, err, "AuthFailure", AfterOperator)
	for range 2 {
		if _, err := s.Hot(t.Context()); err != nil {
			t.Errorf("with the new credentials: %v", err)
		}
	}
	if lookups != 2 {
		t.Errorf("%d lookups, want 2", lookups)
	}
}
