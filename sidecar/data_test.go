package sidecar

import (
	"testing"
)

func TestSmoke(t *testing.T) {
	s := start(t, newWorld(), DataConfig{})
	for _, path := range []string{
		"/v1/boards/local/top?limit=3", "/v1/boards/local/top?limit=2&me=m000900", "/v1/boards/hot/top?limit=2&me=m000050",
		"/v1/boards/small/top?limit=2&me=m000001", "/v1/boards/local/members/m000005?around=1", "/v1/boards/shut/top",
		"/v1/boards/tiny/members/nobody", "/v1/boards/local/top?limt=3", "/v1/boards/local/top?limit=2&profiles=1&me=m000001",
		"/v1/profiles/abc", "/v1/profiles/xbc", "/",
	} {
		a := s.get(t, path)
		t.Log(path, a.status, a.header, a.body)
	}
	t.Log(s.do(t, "POST", "/v1/boards/local/members:batch", `{"members":["m000001","zz"]}`))
	t.Log(s.raw(t, "unix", "GET /v1/boards/tiny/top HTTP/1.1\r\nHost: anything\r\nConnection: close\r\n\r\n"))
}
