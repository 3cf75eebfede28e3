package app

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"rankcache/internal/testkit"
)

// secretArgs are settings with a secret in each that may hold one.
func secretArgs(profiles string) (args, secrets []string) {
	secrets = []string{"hush-url-word", "hush-password", "hush-token", "hush-kafka", "hush-header", "hush-otlp"}
	return []string{
		"--redis", "redis://app:hush-url-word@127.0.0.1:1/0", "--redis-password", "hush-password", "--redis-timeout", "50ms",
		"--admin-token", "hush-token", "--kafka", "127.0.0.1:1", "--kafka.sasl.password=hush-kafka",
		"--kafka.sasl.username=app", "--kafka.sasl.mechanism=PLAIN", "--kafka.security.protocol=sasl_plaintext",
		"--profile-url", profiles, "--profile-header", "Authorization: hush-header",
		"--otlp-endpoint", profiles, "--otlp-header", "Authorization=hush-otlp",
	}, secrets
}

// Whatever goes wrong, no secret is in the log, on a page or in an answer.
func TestSecretsAreNotTold(t *testing.T) {
	t.Parallel()
	profiles := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "broken, you sent "+r.Header.Get("Authorization"), http.StatusInternalServerError)
	}))
	t.Cleanup(profiles.Close)
	args, secrets := secretArgs(profiles.URL)
	c := startListening(t, append([]string{"serve", "--data", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--health", "127.0.0.1:0",
		"--drain", "0s", "--log-level", "debug"}, args...)...)
	told := map[string]string{}
	for _, path := range []string{"/v1/boards/1_2_3/top?profiles=1", "/v1/profiles/1000123", "/v1/boards/1_2_3/members/1000123?profiles=1"} {
		told["data "+path] = answerOf(t, c.URL("data", path))
	}
	for _, path := range []string{"/status", "/rooms", "/hotkeys", "/metrics", "/debug/pprof/cmdline", "/debug/pprof/goroutine?debug=2", "/"} {
		told["admin "+path] = answerOf(t, c.URL("admin", path))
	}
	told["health /readyz"] = answerOf(t, c.URL("health", "/readyz"))
	testkit.Eventually(t, 30*time.Second, func() error { // until Redis has been found away
		return contains(c.Log(), "reads of Redis fail")
	})
	told["log"] = c.Log()
	for where, text := range told {
		for _, secret := range secrets {
			if strings.Contains(text, secret) {
				t.Errorf("%s tells %q:\n%s", where, secret, text)
			}
		}
	}
}

func answerOf(t *testing.T, url string) string {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.Status + string(body)
}

// A port that others than the pod reach is said to be one.
func TestOpenPortIsSaid(t *testing.T) {
	t.Parallel()
	c := startListening(t, "serve", "--data", "0.0.0.0:0", "--admin", "127.0.0.1:0", "--health", "127.0.0.1:0", "--redis", "redis://127.0.0.1:1", "--kafka", "127.0.0.1:1")
	if err := contains(c.Log(), `"port":"data"`); err != nil {
		t.Error(err)
	}
	if contains(c.Log(), `"port":"admin"`) == nil {
		t.Errorf("a warning of the admin port on loopback: %s", c.Log())
	}
}

// contains returns an error that shows text if word is not in it.
func contains(text, word string) error {
	if !strings.Contains(text, word) {
		return fmt.Errorf("no %q in %s", word, text)
	}
	return nil
}
