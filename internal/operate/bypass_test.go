package operate

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"rankcache/internal/cli"
)

// requestOf runs a rankcache command against an admin port that answers anything with {}, and
// returns the request that came.
func requestOf(t *testing.T, args ...string) (request string, err error) {
	t.Helper()
	admin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		request = r.Method + " " + r.URL.String() + " " + string(body)
		w.Write([]byte(`{}`))
	}))
	defer admin.Close()
	err = cli.Run(t.Context(), NewCommand(), append(args, "--admin", admin.URL, "-o", "json"), io.Discard, io.Discard)
	return request, err
}

// TestBypassCommand: what is asked for, with settings of the environment that other commands
// understand under the same names.
func TestBypassCommand(t *testing.T) {
	t.Setenv("RANKCACHE_FOR", "serve,write")
	t.Setenv("RANKCACHE_ALL", "true")
	by, err := json.Marshal(userAndHost())
	if err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"bypass a --for 90s --by alice": `POST /rooms/bypass {"board":"a","for_s":90,"by":"alice"}`,
		"bypass a":                      `POST /rooms/bypass {"board":"a","for_s":600,"by":` + string(by) + `}`,
		"bypass --all --by alice":       `POST /rooms/bypass {"all":true,"for_s":600,"by":"alice"}`,
		"bypass a --off":                `DELETE /rooms/bypass?board=a `,
		"bypass --all --off":            `DELETE /rooms/bypass?all=true `,
	} {
		if got, err := requestOf(t, append([]string{"rooms"}, strings.Fields(line)...)...); err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", line, got, err, want)
		}
	}
	for _, line := range []string{"bypass", "bypass a --all", "bypass a b", "bypass a --for 0s", "bypass a --for 25h", "bypass a --for 1500ms", "bypass a<b"} {
		if got, err := requestOf(t, append([]string{"rooms"}, strings.Fields(line)...)...); cli.ExitCode(err) != cli.ExitUsage || got != "" {
			t.Errorf("%s: %s, %v; want a usage error", line, got, err)
		}
	}
}
