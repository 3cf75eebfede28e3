package app

import (
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestImageIsBuiltFromAllThatItNeeds holds .dockerignore against what the two
// binaries are compiled from.
func TestImageIsBuiltFromAllThatItNeeds(t *testing.T) {
	ignored := dockerIgnored(t)
	const files = `{{if and .Module .Module.Main}}{{$d := .Dir}}{{range .GoFiles}}{{$d}}/{{.}}{{"\n"}}{{end}}{{range .CgoFiles}}{{$d}}/{{.}}{{"\n"}}{{end}}{{range .EmbedFiles}}{{$d}}/{{.}}{{"\n"}}{{end}}{{end}}`
	cmd := exec.Command("go", "list", "-deps", "-f", files, "./cmd/rankcache", "./deploy/sample")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "rankcache").Output()
	if err != nil {
		t.Fatal(err)
	}
	needed := append(strings.Fields(string(out)), "go.mod", "go.sum", "scripts/static.sh")
	if len(needed) < 100 {
		t.Fatalf("only %v are needed", needed)
	}
	for _, file := range needed {
		file = strings.TrimPrefix(file, strings.TrimSpace(string(root))+"/")
		if ignored(file) {
			t.Errorf(".dockerignore keeps %s from the build", file)
		}
	}
}

// dockerIgnored returns whether a file, named from the root, is left out. It
// knows the patterns that our file uses: a path, **/ and a name, or ! and the path of a file or folder.
func dockerIgnored(t *testing.T) func(file string) bool {
	t.Helper()
	data, err := os.ReadFile("../../.dockerignore")
	if err != nil {
		t.Fatal(err)
	}
	var patterns []string
	for line := range strings.Lines(string(data)) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			patterns = append(patterns, line)
		}
	}
	return func(file string) bool {
		for part := file; part != "."; part = path.Dir(part) {
			if slices.Contains(patterns, "!"+part) {
				return false
			}
			for _, p := range patterns {
				name, anywhere := strings.CutPrefix(p, "**/")
				if ok, _ := path.Match(name, path.Base(part)); anywhere && ok || part == p {
					return true
				}
			}
		}
		return false
	}
}

// TestImageRunsAsNobodyWithNothingAround checks for every stage that becomes an image
// what no build would.
func TestImageRunsAsNobodyWithNothingAround(t *testing.T) {
	data, err := os.ReadFile("../../deploy/Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	stages := regexp.MustCompile(`(?m)^FROM `).Split(string(data), -1)[1:]
	if len(stages) != 3 {
		t.Fatalf("%d stages", len(stages))
	}
	for _, stage := range stages[1:] {
		if !strings.HasPrefix(stage, "scratch ") || !regexp.MustCompile(`(?m)^USER [1-9]\d*:[1-9]\d*$`).MatchString(stage) ||
			!regexp.MustCompile(`(?m)^ENTRYPOINT \["/\w+"\]$`).MatchString(stage) {
			t.Errorf("want FROM scratch, a numeric USER and an ENTRYPOINT without a shell:\n%s", stage)
		}
	}
	if copied := regexp.MustCompile(`(?m)^COPY .* (\S+)$`).FindAllStringSubmatch(stages[2], -1); len(copied) != 2 ||
		copied[0][1] != "/etc/ssl/certs/ca-certificates.crt" || copied[1][1] != "/rankcache" {
		t.Errorf("rankcache's image holds %q, want the authorities and /rankcache", copied)
	}
	if regexp.MustCompile(`(?m)^ADD |:latest|sudo`).Match(data) {
		t.Error("ADD, :latest or sudo")
	}
}
