package app

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"rankcache/internal/cli"
	"rankcache/internal/lab/compare"
	"rankcache/internal/lab/nicks"
	"rankcache/internal/testkit"
)

// TestProfilesAreJoinedAndDropped runs the real sidecar before a profile
// service.
func TestProfilesAreJoinedAndDropped(t *testing.T) {
	t.Parallel()
	service, url, err := nicks.Serve(false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { service.Close() })
	h := newFixture(t)
	h.give(t, h.star, 3)
	s := h.serve(t, "--profile-url", url, "--admin-token", "t0ken")
	s.WaitReady(time.Minute)

	page, err := compare.Fetch(t.Context(), http.DefaultClient, s.URL("data", "/v1/boards/"+string(h.star)+"/top?profiles=1"))
	if err != nil {
		t.Fatal(err)
	}
	want := nicks.Of("m2")
	if got := page.Entries[0].Profile; !strings.Contains(string(got), fmt.Sprintf("%q", want.Nick)) {
		t.Errorf("the first page after opening has %s, want %q: profiles are warmed before a board opens", got, want.Nick)
	}
	if code, body := s.Get("data", "/v1/profiles/m2"); code != http.StatusOK || !strings.Contains(body, want.Nick) {
		t.Errorf("the profile answers %d %s", code, body)
	}
	for _, c := range []struct {
		token string
		want  int
	}{{"", http.StatusUnauthorized}, {"wrong", http.StatusUnauthorized}, {"t0ken", http.StatusNoContent}, {"t0ken", http.StatusNotFound}} {
		if got, body := s.drop(t, "m2", c.token); got != c.want {
			t.Errorf("drop with token %q: %d %s, want %d", c.token, got, body, c.want)
		}
	}
}

func (c *child) drop(t *testing.T, member, token string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, c.URL("admin", "/profiles/"+member), nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body)
}

// TestHotCommand heats a small board of the real sidecar and looks at it with
// rankcache hot.
func TestHotCommand(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	h.give(t, h.small, 3)
	s := h.serve(t, "--hot-promote-rate", "5")
	admin := strings.TrimPrefix(s.URL("admin", ""), "http://")
	testkit.Eventually(t, 30*time.Second, func() error {
		for range 20 {
			s.Get("data", "/v1/boards/"+string(h.small)+"/top")
		}
		var out bytes.Buffer
		if err := cli.Run(t.Context(), NewCommand(), []string{"hot", "--admin", admin}, &out, &out); err != nil {
			return err
		}
		if line := out.String(); !strings.Contains(line, string(h.small)) || !strings.Contains(line, "own-rate") {
			return fmt.Errorf("not hot yet: %s", line)
		}
		return nil
	})
	testkit.Eventually(t, 10*time.Second, func() error {
		page, err := compare.Fetch(t.Context(), http.DefaultClient, s.URL("data", "/v1/boards/"+string(h.small)+"/top"))
		if err == nil && page.Source != "hot" {
			err = fmt.Errorf("answered from %s, want hot", page.Source)
		}
		return err
	})
}
