package app

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"rankcache/docs"
	"rankcache/internal/cli"
	"rankcache/internal/testkit"
	"rankcache/rooms"
	"rankcache/writer"
)

// manifests is what people apply. That it is good Kubernetes is checked in
// deploy/check, that it fits this binary here.
const manifests = "../../deploy/k8s"

// inPods tells where files that a container names are in the sources.
var inPods = strings.NewReplacer("/etc/rankcache/config/", manifests+"/config/", "/etc/rankcache/rooms/", manifests+"/config/")

// manifestContainer is the part of a manifest's container that concerns rankcache.
type manifestContainer struct {
	file    string
	command string // serve, write, poll or controller
	args    []string
	env     map[string]string // "" where a Secret has the value
	probes  []manifestProbe
	port    int
}

type manifestProbe struct {
	path string
	port int
}

// manifestContainers finds every container named rankcache, in patches too.
func manifestContainers(t *testing.T) (all []manifestContainer) {
	t.Helper()
	err := filepath.WalkDir(manifests, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for decoder := yaml.NewDecoder(bytes.NewReader(data)); ; {
			var doc any
			if err := decoder.Decode(&doc); errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			walk(doc, func(node map[string]any) {
				if _, ok := node["args"]; ok && node["name"] == "rankcache" {
					all = append(all, readContainer(path, node))
				}
			})
		}
	})
	if err != nil || len(all) < 3 {
		t.Fatalf("%d containers, %v", len(all), err)
	}
	return all
}

// walk calls visit with every mapping in v.
func walk(v any, visit func(map[string]any)) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			walk(item, visit)
		}
	case map[string]any:
		visit(v)
		for _, item := range v {
			walk(item, visit)
		}
	}
}

func readContainer(path string, node map[string]any) manifestContainer {
	c := manifestContainer{file: path, env: map[string]string{}}
	for _, arg := range node["args"].([]any) {
		c.args = append(c.args, fmt.Sprint(arg))
	}
	c.command, c.args = c.args[0], c.args[1:]
	walk(node["env"], func(e map[string]any) {
		if name, ok := e["name"].(string); ok && strings.HasPrefix(name, cli.EnvPrefix) {
			c.env[name], _ = e["value"].(string)
		}
	})
	walk(node, func(n map[string]any) {
		if get, ok := n["httpGet"].(map[string]any); ok {
			path, _ := get["path"].(string)
			port, _ := get["port"].(int)
			c.probes = append(c.probes, manifestProbe{path, port})
		}
		if port, ok := n["containerPort"].(int); ok {
			c.port = port
		}
	})
	return c
}

// TestManifestsSettingsAreAccepted gives each container's arguments, variables
// and settings file to the command that it runs.
func TestManifestsSettingsAreAccepted(t *testing.T) {
	for _, c := range manifestContainers(t) {
		t.Run(filepath.Base(c.file), func(t *testing.T) {
			for name, value := range c.env {
				t.Setenv(name, value)
			}
			args := []string{}
			if c.command != "serve" {
				args = append(args, c.command)
			}
			for _, arg := range c.args {
				args = append(args, inPods.Replace(arg))
			}
			values, err := runConfig(t, args...)
			if err != nil {
				t.Fatal(err)
			}
			for name := range c.env { // accepted because another command knows it?
				if key, _ := cli.EnvKey(name, ""); key != "" {
					if _, ok := values[key]; !ok {
						t.Errorf("%s: rankcache %s has no setting for %s", c.file, c.command, name)
					}
				}
			}
			if addr := fmt.Sprint(values[probedPort(c.command)]); !strings.HasSuffix(addr, fmt.Sprintf(":%d", c.port)) {
				t.Errorf("%s: the container's port is %d, the probed port %s", c.file, c.port, addr)
			}
			for _, p := range c.probes {
				if p.port != c.port {
					t.Errorf("%s: %s is probed on port %d, the health port is %d", c.file, p.path, p.port, c.port)
				}
			}
		})
	}
}

// probedPort returns the setting and the listener with a command's probes.
func probedPort(command string) string {
	if command == "ledger" {
		return "http"
	}
	return "health"
}

// Variables that patches add stand alone.
func TestManifestsVariablesAreSettings(t *testing.T) {
	names := map[string]bool{}
	for path, text := range manifestTexts(t) {
		for _, name := range regexp.MustCompile(`\bRANKCACHE_[A-Z0-9_]+`).FindAllString(text, -1) {
			names[name] = true
			t.Setenv(name, "1s") // fits a duration and a string
			if _, err := runConfig(t); err != nil && strings.Contains(err.Error(), "unknown") {
				t.Errorf("%s: %v", path, err)
			}
		}
	}
	if len(names) < 3 {
		t.Errorf("only %v found", names)
	}
}

// The start hook of clusters before 1.29 waits for a sidecar whose ports are the
// manifests' own, which are the defaults.
func TestManifestsHookIsACommand(t *testing.T) {
	found := 0
	for path, text := range manifestTexts(t) {
		for _, m := range regexp.MustCompile(`command: \[/rankcache, (.*)\]`).FindAllStringSubmatch(text, -1) {
			found++
			var out bytes.Buffer
			err := cli.Run(t.Context(), NewCommand(), append(strings.Split(m[1], ", "), "--max=0s"), &out, &out) // nothing listens there
			if cli.ExitCode(err) != cli.ExitUnasked {
				t.Errorf("%s: rankcache %s: %v", path, m[1], err)
			}
		}
	}
	if found == 0 {
		t.Error("no hook found")
	}
}

// Log lines that a runbook quotes must be those that are logged.
func TestRunbooksLogLinesExist(t *testing.T) {
	var source strings.Builder
	for _, folder := range []string{"replay", "writer", "controller", "internal", "hotkey", "profile", "sidecar", "ledger"} {
		err := filepath.WalkDir("../../"+folder, func(path string, _ fs.DirEntry, err error) error {
			if err == nil && strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
				data, _ := os.ReadFile(path)
				source.Write(data)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	greps := regexp.MustCompile(`kubectl logs .*grep '([^']+)'`).FindAllStringSubmatch(docs.Runbooks, -1)
	if len(greps) < 3 {
		t.Errorf("only %v found", greps)
	}
	for _, m := range greps {
		if !strings.Contains(source.String(), m[1]) {
			t.Errorf("nothing is logged with %q", m[1])
		}
	}
}

// Every state has its line in the documentation for operators.
func TestEveryStateOfABoardIsExplained(t *testing.T) {
	source, err := os.ReadFile("../../progress.go")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../../docs/BOARDS.md")
	if err != nil {
		t.Fatal(err)
	}
	states := regexp.MustCompile(`BoardState = "([a-z-]+)"`).FindAllStringSubmatch(string(source), -1)
	if len(states) < 7 {
		t.Fatalf("only %v found", states)
	}
	for _, state := range states {
		if !strings.Contains(string(text), "\n| `"+state[1]+"` | ") {
			t.Errorf("docs/BOARDS.md does not explain %q", state[1])
		}
	}
}

func TestManifestsRoomsAreGood(t *testing.T) {
	data, err := os.ReadFile(manifests + "/config/rooms.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if file, err := rooms.Parse(data); err != nil || len(file.Rooms) == 0 {
		t.Errorf("%v", err)
	}
}

// TestManifestsProbesAnswer asks every probe of the command that its container runs.
func TestManifestsProbesAnswer(t *testing.T) {
	t.Parallel()
	children := startAll(t)
	for _, c := range manifestContainers(t) {
		if len(c.probes) < 2 {
			t.Errorf("%s has %d probes", c.file, len(c.probes))
		}
		for _, p := range append(c.probes, manifestProbe{path: "/metrics"}) {
			testkit.Eventually(t, 30*time.Second, func() error { // a kubelet asks again, too
				if code, body := children[c.command].Get(probedPort(c.command), p.path); code != 200 {
					return fmt.Errorf("%s: rankcache %s answers %s with %d %s", c.file, c.command, p.path, code, body)
				}
				return nil
			})
		}
	}
}

// TestComposeFitsTheBinary gives each command of the compose file to the binary, and the score that it and the demo's job
// send to the writer's decoder.
func TestComposeFitsTheBinary(t *testing.T) {
	data, err := os.ReadFile("../../deploy/compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var compose struct{ Services map[string]composeService }
	if err := yaml.Unmarshal(data, &compose); err != nil {
		t.Fatal(err)
	}
	for name, service := range compose.Services {
		if service.Image != "rankcache:dev" {
			continue
		}
		if service.Command[0] == "serve" {
			service.Command = service.Command[1:]
		}
		for i, arg := range service.Command {
			service.Command[i] = inPods.Replace(arg)
		}
		if _, err := runConfig(t, service.Command...); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	var out bytes.Buffer
	wait := compose.Services["writer"].Healthcheck.Test[2:]
	if err := cli.Run(t.Context(), NewCommand(), append(wait, "--max=0s"), &out, &out); cli.ExitCode(err) != cli.ExitUnasked { // nothing listens there
		t.Errorf("rankcache %s: %v", wait, err)
	}
	sent := regexp.MustCompile(`echo .(\{.*\}). \|`)
	for _, text := range []string{string(data), manifestTexts(t)[manifests+"/overlays/demo/score.yaml"]} {
		m := sent.FindStringSubmatch(text)
		if m == nil {
			t.Fatalf("no score is sent in:\n%s", text)
		}
		command := strings.NewReplacer(`\"`, `"`, "$$(date +%s)", "1").Replace(m[1])
		if c, err := writer.DecodeCommand([]byte(command), 1); err != nil || c.Board != "1_2_3" {
			t.Errorf("%s: %v", command, err)
		}
	}
}

type composeService struct {
	Image       string
	Command     []string
	Healthcheck struct{ Test []string }
}

// startAll runs each command that has a container, ready and with a board filled.
func startAll(t *testing.T) map[string]*child {
	h := newFixture(t)
	h.give(t, h.star, 3)
	poller := startListening(t, "poll", "--redis", h.common[1], "--hot-source", "redis", "--health", "127.0.0.1:0")
	s := h.serve(t)
	s.WaitReady(time.Minute)
	controller := startListening(t, append([]string{"controller", "--health", "127.0.0.1:0", "--key-ends", testkit.Name(t), "--key-controller", testkit.Name(t), "--topic-keep", "0"}, h.common...)...)
	database, query := testkit.Database(t, testkit.SQLKinds[0]), filepath.Join(t.TempDir(), "query")
	must(t, os.WriteFile(query, []byte("SELECT '' AS order_id, '' AS board, '' AS member, '' AS op, 0 AS number, 0 AS at WHERE $1::bigint < $2::bigint"), 0o600))
	comparer := startListening(t, append([]string{"reconcile", "--health", "127.0.0.1:0", "--database", database, "--books", database, "--books-query-file", query}, h.common...)...)
	keeper := startListening(t, append([]string{"ledger", "--http", "127.0.0.1:0", "--database", database,
		"--topic-ledger", testkit.Name(t), "--ledger-group", testkit.Name(t)}, h.common...)...)
	testkit.Eventually(t, time.Minute, func() error {
		if code, body := keeper.Get("http", "/readyz"); code != 200 {
			return fmt.Errorf("ledger: /readyz: %d %s", code, body)
		}
		if code, body := comparer.Get("health", "/readyz"); code != 200 {
			return fmt.Errorf("reconcile: /readyz: %d %s", code, body)
		}
		return nil
	})
	looker := startListening(t, append([]string{"keep", "--health", "127.0.0.1:0", "--hot-instance", testkit.Name(t)}, h.common...)...)
	looker.WaitReady(time.Minute)
	return map[string]*child{"keep": looker, "serve": s, "write": h.writer, "poll": poller, "controller": controller, "ledger": keeper, "reconcile": comparer}
}

// manifestTexts returns every file of the manifests.
func manifestTexts(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{}
	err := filepath.WalkDir(manifests, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		texts[path] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return texts
}

// sorted returns the names in a set.
func sorted(set map[string]bool) []string { return slices.Sorted(maps.Keys(set)) }
