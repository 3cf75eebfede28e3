package httpapi

import (
	"net/http"
	"strings"
	"testing"

	"rankcache/sidecar/encode"
)

const topOf = "GET /v1/boards/local/top" + hostLine

// field returns a field of an answer's head.
func field(answer, name string) string {
	head, _, _ := strings.Cut(answer, "\r\n\r\n")
	for _, line := range strings.Split(head, "\r\n") {
		if key, value, _ := strings.Cut(line, ": "); strings.EqualFold(key, name) {
			return value
		}
	}
	return ""
}

// TestConditions holds for requests that are parsed and for those that come again.
func TestConditions(t *testing.T) {
	s := start(t, newEnv(), Config{})
	tag := field(s.dial(t, "tcp").ask(topOf+"\r\n", 1), "ETag")
	for lines, status := range map[string]string{
		"If-None-Match: \"0\"\r\nIf-None-Match: " + tag + "\r\n":                  "304",
		"If-None-Match: " + tag + "\r\nIf-None-Match: \"0\"\r\n":                  "304",
		"If-None-Match: \"0\"\r\nX: y\r\nIf-None-Match: \"1\", W/" + tag + "\r\n": "304",
		"If-None-Match: \"0\"\r\nIf-None-Match: \"1\"\r\n":                        "200",
		"If-Match: *\r\n": "200", "If-Match: " + tag + "\r\n": "200", "If-Match: \"0\"\r\nIf-Match: " + tag + "\r\n": "200",
		"If-Match: \"0\"\r\n": "412", "If-Match: W/" + tag + "\r\n": "412", "If-Match:\r\nIf-Match: x\r\n": "412",
		"If-Match: \"0\"\r\nIf-None-Match: " + tag + "\r\n": "412",
		"If-Match: *\r\nIf-None-Match: " + tag + "\r\n":     "304",
	} {
		conn := s.dial(t, "tcp")
		for range 5 {
			if got := conn.ask(topOf+lines+"\r\n", 1); !strings.HasPrefix(got, "HTTP/1.1 "+status) {
				t.Errorf("%q got %.12s, want %s", lines, got, status)
			}
		}
	}
	for _, path := range []string{"/v1/boards/any/top", "/v1/boards/local/members/m000007", "/v1/boards/local/top?me=m000007"} {
		checkProblem(t, s.get(t, path, "If-Match", `"0"`), 412, encode.CodePrecondition, "")
		if a := s.get(t, path, "If-Match", "*"); a.status != 200 {
			t.Errorf("%s: %d", path, a.status)
		}
	}
}

// TestCodingsOnSeveralLines are one list.
func TestCodingsOnSeveralLines(t *testing.T) {
	s := start(t, newEnv(), Config{})
	for lines, want := range map[string]string{
		"Accept-Encoding: br\r\nAccept-Encoding: zstd\r\n":           "zstd",
		"Accept-Encoding: gzip\r\nX: y\r\nAccept-Encoding: br\r\n":   "gzip",
		"Accept-Encoding: identity\r\nAccept-Encoding: zstd;q=0\r\n": "",
	} {
		conn := s.dial(t, "tcp")
		for range 5 {
			if got := field(conn.ask(topOf+lines+"\r\n", 1), "Content-Encoding"); got != want {
				t.Errorf("%q got %q, want %q", lines, got, want)
			}
		}
	}
}

// TestCaches: caches have to revalidate each time, and a 304 has what they renew of a page.
func TestCaches(t *testing.T) {
	s := start(t, newEnv(), Config{})
	for path, want := range map[string]string{
		"/v1/boards/local/top": "no-cache", "/v1/boards/hot/top": "no-cache", "/v1/boards/any/top": "no-cache",
		"/v1/boards/local/members/m000007": "no-cache", "/v1/boards/local/members/m000007?around=2": "no-cache", "/v1/profiles/m000001": "no-cache",
		"/v1/boards/local/top?me=m000007": "private, no-cache", "/v1/boards/any/top?me=m000007": "private, no-cache",
		"/v1/boards/local/top?start=5000&me=m000007": "private, no-cache",
	} {
		conn := s.dial(t, "tcp")
		for range 4 {
			full := conn.ask("GET "+path+hostLine+"\r\n", 1)
			if got := field(full, "Cache-Control"); got != want {
				t.Errorf("%s: %q, want %q", path, got, want)
			}
			tag := field(full, "ETag")
			if tag == "" {
				break // profiles have none
			}
			for range 4 {
				short := conn.ask("GET "+path+hostLine+"If-None-Match: "+tag+"\r\n\r\n", 1)
				if !strings.HasPrefix(short, "HTTP/1.1 304 ") || field(short, "Date") == "" {
					t.Errorf("%s: %s", path, short)
				}
				for _, name := range []string{"ETag", "Vary", "Cache-Control"} {
					if field(short, name) != field(full, name) {
						t.Errorf("%s: 304 has %s %q, 200 %q", path, name, field(short, name), field(full, name))
					}
				}
			}
		}
	}
}

// TestOneDate: requests that are parsed, known or refused get the date of one clock.
func TestOneDate(t *testing.T) {
	s := start(t, newEnv(), Config{})
	known, parsed := s.dial(t, "tcp"), s.dial(t, "tcp")
	known.warm(s, topRequest)
	last := http.Header{}
	newer := func(answer string) {
		t.Helper()
		before, _ := http.ParseTime(last.Get("Date"))
		now, err := http.ParseTime(field(answer, "Date"))
		if err != nil || now.Before(before) {
			t.Fatalf("%v after %v, %v", now, before, err)
		}
		last.Set("Date", field(answer, "Date"))
	}
	first := ""
	for first == "" || last.Get("Date") == first { // until a second ends
		newer(known.ask(topRequest, 1))
		newer(parsed.ask("GET /v1/boards/local/members/m000007"+hostLine+"\r\n", 1))
		newer(parsed.ask("GET /v1/boards/shut/top"+hostLine+"\r\n", 1))
		newer(known.ask(topRequest, 1))
		if first == "" {
			first = last.Get("Date")
		}
	}
	newer(s.raw(t, "tcp", "no request\r\n\r\n"))
}
