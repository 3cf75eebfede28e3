package app

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rankcache/internal/cli"
	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
)

// secretArgs are settings with a secret in each that may hold one.
func secretArgs(profiles string) (args, secrets []string) {
	secrets = []string{"hush-url-word", "hush-password", "hush-token", "hush-kafka", "hush-header", "hush-otlp", "hush-query", "hush-snapshots", "hush-read", "hush-write"}
	return []string{
		"--redis", "redis://app:hush-url-word@127.0.0.1:1/0", "--redis-password", "hush-password", "--redis-timeout", "50ms",
		"--redis-read", "redis://app:hush-read@127.0.0.1:1/0", "--admin-token", "hush-token", "--write-token", "hush-write", "--kafka", "127.0.0.1:1", "--kafka.sasl.password=hush-kafka",
		"--kafka.sasl.username=app", "--kafka.sasl.mechanism=PLAIN", "--kafka.security.protocol=sasl_plaintext",
		"--profile-url", profiles, "--profile-header", "Authorization: hush-header",
		"--otlp-endpoint", strings.TrimSuffix(profiles, "/?token=hush-query"), "--otlp-header", "Authorization=hush-otlp",
		"--snapshots", "s3://key:hush-snapshots@127.0.0.1:1/boards?tls=false",
	}, secrets
}

// Whatever goes wrong, no secret is in the log, on a page or in an answer.
func TestSecretsAreNotTold(t *testing.T) {
	t.Parallel()
	profiles := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "broken, you sent "+r.Header.Get("Authorization"), http.StatusInternalServerError)
	}))
	t.Cleanup(profiles.Close)
	args, secrets := secretArgs(profiles.URL + "/?token=hush-query")
	c := startListening(t, append([]string{"serve", "--data", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--health", "127.0.0.1:0",
		"--drain", "0s", "--log-level", "debug"}, args...)...)
	outputs := map[string]string{}
	for _, path := range []string{"/v1/boards/1_2_3/top?profiles=1", "/v1/profiles/1000123", "/v1/boards/1_2_3/members/1000123?profiles=1"} {
		outputs["data "+path] = answerOf(t, c.URL("data", path))
	}
	for _, path := range []string{"/status", "/rooms", "/hotkeys", "/metrics", "/debug/pprof/cmdline", "/debug/pprof/goroutine?debug=2", "/events", "/config", "/"} {
		outputs["admin "+path] = answerOf(t, c.URL("admin", path))
	}
	outputs["health /readyz"] = answerOf(t, c.URL("health", "/readyz"))
	testkit.Eventually(t, 30*time.Second, func() error { // until Redis has been found away
		return contains(c.Log(), "reads of Redis fail")
	})
	outputs["log"] = c.Log()
	files := bundleOf(t, c.URL("admin", ""))
	for name, body := range files {
		outputs["bundle "+name] = body
	}
	checkBundle(t, files, map[string]string{"status.json": `"bypasses"`, "rooms.json": `"dynamic"`, "hotkeys.json": `"enabled"`, "events.json": `"msg":"serving"`})
	wantNoneOf(t, secrets, outputs)
}

// wantNoneOf fails if a text has a secret.
func wantNoneOf(t *testing.T, secrets []string, outputs map[string]string) {
	t.Helper()
	for where, text := range outputs {
		for _, secret := range secrets {
			if strings.Contains(text, secret) {
				t.Errorf("%s tells %q:\n%s", where, secret, text)
			}
		}
	}
}

// lasting are the long-running commands without an admin port: the port that answers a bundle,
// the settings with secrets, and words of the bundle's files.
var lasting = map[string]struct {
	port  string
	args  []string
	words map[string]string
}{
	"write": {"health", []string{"--scores", "127.0.0.1:0", "--write-token", "hush-write", "--class-tokens", "hush-class-token-of-16 money"},
		map[string]string{"status.json": `"dependencies"`, "rooms.json": `"dynamic"`, "events.json": `"msg":"writing"`}},
	"keep": {"health", []string{"--snapshots", "s3://key:hush-snapshots@127.0.0.1:1/boards"}, map[string]string{"status.json": `"keeper"`, "rooms.json": `"dynamic"`, "events.json": `"msg":"keeping"`}},
	"poll": {"health", []string{"--hot-source", "redis"}, map[string]string{"events.json": `"msg":"polling"`}},
	"controller": {"health", []string{"--database", "postgres://app:hush-database@127.0.0.1:1/x", "--finals", "s3://key:hush-finals@127.0.0.1:1/bucket", "--snapshots", "s3://key:hush-snapshots@127.0.0.1:1/bucket"},
		map[string]string{"status.json": `"leading"`, "rooms.json": `"dynamic"`, "events.json": `"msg":"controlling"`}},
	"ledger": {"http", []string{"--database", "postgres://app:hush-database@127.0.0.1:1/x"}, map[string]string{"status.json": `"ledger"`, "events.json": `"msg":"keeping the ledger"`}},
	"reconcile": {"health", []string{"--database", "postgres://app:hush-database@127.0.0.1:1/x", "--books", "mysql://app:hush-books@127.0.0.1:1/x", "--books-query-file", "secrets_test.go"},
		map[string]string{"events.json": `"msg":"reconciling"`}},
}

// TestBundleOfEachProcess: the bundle of a process without an admin port is whole, and neither
// it nor the log has a secret. Redis, Kafka and the databases are away.
func TestBundleOfEachProcess(t *testing.T) {
	t.Parallel()
	for name, p := range lasting {
		t.Run(name, func(t *testing.T) {
			c := startListening(t, slices.Concat([]string{name, "--" + p.port, "127.0.0.1:0", "--log-level", "debug"}, processSecrets, p.args)...)
			files := bundleOf(t, c.URL(p.port, ""))
			checkBundle(t, files, p.words)
			outputs := map[string]string{"log": c.Log(), "cmdline": answerOf(t, c.URL(p.port, "/debug/pprof/cmdline"))}
			maps.Copy(outputs, files)
			wantNoneOf(t, []string{"hush"}, outputs)
		})
	}
}

// processSecrets are settings that all of lasting have.
var processSecrets = []string{"--redis", "redis://app:hush-url-word@127.0.0.1:1/0", "--redis-password", "hush-password", "--redis-timeout", "50ms",
	"--kafka", "127.0.0.1:1", "--kafka.sasl.password=hush-kafka", "--kafka.sasl.username=app", "--kafka.sasl.mechanism=PLAIN", "--kafka.security.protocol=sasl_plaintext"}

// bundleOf returns the files of rankcache debug bundle.
func bundleOf(t *testing.T, port string) map[string]string {
	t.Helper()
	var out bytes.Buffer
	if err := cli.Run(t.Context(), NewCommand(), []string{"debug", "bundle", "-o", "-", "--admin", port}, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for from := tar.NewReader(&out); ; {
		header, err := from.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(from)
		if err != nil {
			t.Fatal(err)
		}
		if pack, err := gzip.NewReader(bytes.NewReader(body)); err == nil { // a profile
			if body, err = io.ReadAll(pack); err != nil {
				t.Fatal(err)
			}
		}
		files[strings.TrimPrefix(header.Name, "rankcache/")] = string(body)
	}
	return files
}

// checkBundle fails unless the bundle has what each has, the words in its other files, and no
// file of errors.
func checkBundle(t *testing.T, files, words map[string]string) {
	t.Helper()
	all := map[string]string{"status.json": `"version"`, "config.json": `"redis":"redis://app:****@127.0.0.1:1/0"`, "metrics.txt": "rankcache_ready ",
		"goroutines.txt": "goroutine 1 [", "heap.pprof": "inuse_space", "bundle.json": `"made_at"`}
	maps.Copy(all, words)
	for name, word := range all {
		if err := contains(files[name], word); err != nil {
			t.Errorf("%s of the bundle: %v", name, err)
		}
	}
	if files["errors.txt"] != "" {
		t.Errorf("errors of the bundle: %s", files["errors.txt"])
	}
}

// TestEverySecretIsTried: TestSecretsAreNotTold and TestBundleOfEachProcess give each secret
// setting a value.
func TestEverySecretIsTried(t *testing.T) {
	serve, _ := secretArgs("http://127.0.0.1:1")
	tried := map[string][]string{"serve": serve}
	for name, p := range lasting {
		tried[name] = slices.Concat(processSecrets, p.args)
	}
	for name, args := range tried {
		cmd, _, err := NewCommand().Find([]string{name})
		must(t, err)
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if cli.IsSecret(f) && !slices.Contains(args, "--"+f.Name) {
				t.Errorf("%s --%s is not tried", name, f.Name)
			}
		})
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

// A port that can be reached from outside the pod is logged as one.
func TestOpenPortIsLogged(t *testing.T) {
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

// TestEverySecretHasAFile: what is secret need not be on a command line or in
// the environment.
func TestEverySecretHasAFile(t *testing.T) {
	found := 0
	everyCommand(func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !cli.IsSecret(f) {
				return
			}
			found++
			if cmd.Flags().Lookup(f.Name+"-file") == nil {
				t.Errorf("%s: no --%s-file", cmd.CommandPath(), f.Name)
			}
		})
	})
	if found < 10 {
		t.Errorf("%d secret flags found", found)
	}
}

// TestBadSecretFiles: the error names flag and file, and nothing of what is in it.
func TestBadSecretFiles(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		must(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	good := file("good", "hush\n")
	for name, c := range map[string]struct {
		env   string
		args  []string
		wants []string
	}{
		"missing":   {args: []string{"serve", "--admin-token-file", dir + "/none"}, wants: []string{"--admin-token-file", dir + "/none"}},
		"empty":     {args: []string{"write", "--write-token-file", file("empty", "\n")}, wants: []string{"--write-token-file", dir + "/empty is empty"}},
		"too large": {args: []string{"serve", "--redis-file", file("large", strings.Repeat("hush", 20_000))}, wants: []string{"--redis-file", dir + "/large", "64 KiB"}},
		"folder":    {args: []string{"poll", "--redis-password-file", dir}, wants: []string{"--redis-password-file", dir}},
		"both":      {args: []string{"serve", "--admin-token", "hush", "--admin-token-file", good}, wants: []string{"--admin-token", "--admin-token-file"}},
		"two ways":  {env: "RANKCACHE_ADMIN_TOKEN", args: []string{"serve", "--admin-token-file", good}, wants: []string{"--admin-token", "--admin-token-file"}},
		"kafka":     {args: []string{"serve", "--kafka.sasl.password-file=" + dir + "/none"}, wants: []string{"--kafka.sasl.password-file", dir + "/none"}},
		"kafka both": {env: "RANKCACHE_KAFKA_SASL_PASSWORD", args: []string{"serve", "--kafka.sasl.password-file=" + good},
			wants: []string{"--kafka.sasl.password ", "--kafka.sasl.password-file"}},
	} {
		t.Run(name, func(t *testing.T) {
			if c.env != "" {
				t.Setenv(c.env, "hush")
			}
			var out bytes.Buffer
			err := cli.Run(t.Context(), NewCommand(), append(c.args, "--health", "127.0.0.1:0"), &out, &out)
			if cli.ExitCode(err) != cli.ExitUsage {
				t.Fatalf("got %v (exit code %d), want a usage error", err, cli.ExitCode(err))
			}
			for _, want := range c.wants {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v does not name %q", err, want)
				}
			}
			if strings.Contains(err.Error()+out.String(), "hush") {
				t.Errorf("%v tells the secret", err)
			}
		})
	}
}

// TestSecretFilesAreReadAgain: the sidecar logs in to Redis with a new password
// and takes a new token without being started again, and keeps what it has while
// a file is away.
func TestSecretFilesAreReadAgain(t *testing.T) {
	t.Parallel()
	ctx, redisAddr := t.Context(), testkit.StartRedis(t, servers.RedisOptions{}).Addr()
	admin := redis.NewClient(&redis.Options{Addr: redisAddr, Protocol: 2})
	t.Cleanup(func() { admin.Close() })
	dir := t.TempDir()
	write := func(name, content string) { must(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600)) }
	newPassword := func(password string) { // and ends the connections that used the old one
		must(t, admin.ACLSetUser(ctx, "app", "on", "resetpass", ">"+password, "~*", "+@all").Err())
		must(t, admin.Do(ctx, "client", "kill", "user", "app").Err())
	}
	newPassword("first")
	must(t, admin.ZAdd(ctx, "1_2_3", redis.Z{Score: 1, Member: "a"}).Err())
	write("password", "first\n")
	write("token", "token-1\n")
	c := startListening(t, "serve", "--data", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--health", "127.0.0.1:0", "--drain", "0s",
		"--redis", "redis://app@"+redisAddr, "--redis-timeout", "2s", "--kafka", "127.0.0.1:1",
		"--redis-password-file", filepath.Join(dir, "password"), "--admin-token-file", filepath.Join(dir, "token"))
	served := func() error {
		if code, body := c.Get("data", "/v1/boards/1_2_3/top"); code != http.StatusOK {
			return fmt.Errorf("%d %s", code, body)
		}
		return nil
	}
	testkit.Eventually(t, 20*time.Second, served)
	write("password", "second\n")
	newPassword("second")
	testkit.Eventually(t, 20*time.Second, served)

	taken := func(token string) bool {
		req, err := http.NewRequestWithContext(ctx, http.MethodDelete, c.URL("admin", "/rooms?uid=none"), nil)
		must(t, err)
		req.Header.Set("Authorization", "Bearer "+token)
		resp, err := http.DefaultClient.Do(req)
		must(t, err)
		resp.Body.Close()
		return resp.StatusCode != http.StatusUnauthorized
	}
	if !taken("token-1") || taken("token-two") {
		t.Error("the first token is not the one that is taken")
	}
	write("token", "token-two\n")
	if taken("token-1") || !taken("token-two") {
		t.Error("the second token is not the one that is taken")
	}
	must(t, os.Remove(filepath.Join(dir, "token")))
	if !taken("token-two") {
		t.Error("the token is not taken while its file is away")
	}
	testkit.Eventually(t, 5*time.Second, func() error { return contains(c.Log(), "--admin-token-file") })
}
