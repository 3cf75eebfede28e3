package rankcache_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "rankcache"

// The import table. Every package stands in it once; only non-test files count.
var (
	// ground is the ground floor, lowest first: a package imports only those before
	// it.
	ground = []string{"rankcache", "rankcache/wire", "rankcache/class", "rankcache/rooms"}

	// leaves import at most the root and the leaves before them. Any package may import
	// them, except that those below a folder's internal are for that folder.
	leaves = []string{"rankcache/internal/metric", "rankcache/internal/tick", "rankcache/internal/retry", "rankcache/internal/httpserve", "rankcache/internal/health", "rankcache/internal/lease", "rankcache/internal/redisclock", "rankcache/internal/masters", "rankcache/internal/kafka", "rankcache/internal/objects", "rankcache/internal/watch", "rankcache/sidecar/internal/conn", "rankcache/proto/rankcache/v1"}

	// peers import the ground floor and the leaves. A package below one also
	// imports its own parents and what is below the folder's internal, never another peer.
	peers = []string{"rankcache/localboard", "rankcache/replay", "rankcache/hotkey", "rankcache/profile", "rankcache/origin",
		"rankcache/writer", "rankcache/controller", "rankcache/keeper", "rankcache/ledger", "rankcache/operator", "rankcache/sidecar", "rankcache/compat",
		"rankcache/internal/roomsync", "rankcache/internal/doctor", "rankcache/internal/plan", "rankcache/internal/try", "rankcache/internal/places", "rankcache/internal/tracing"}

	// command are the rooms of the command, which import everything above but testkit's and the lab's, and of each other
	// what stands beside them.
	command = map[string][]string{
		"rankcache/internal/cli":     nil,
		"rankcache/internal/serve":   {"rankcache/internal/cli"},
		"rankcache/internal/run":     {"rankcache/internal/cli"},
		"rankcache/internal/operate": {"rankcache/internal/cli"},
		"rankcache/internal/app":     {"rankcache/internal/cli", "rankcache/internal/serve", "rankcache/internal/run", "rankcache/internal/operate"},
		"rankcache/cmd/rankcache":    {"rankcache/internal/cli", "rankcache/internal/app"},
	}

	// lab and what tests share import any package.
	lab = []string{"rankcache/internal/lab", "rankcache/internal/testkit", "rankcache/cmd/rankcache-lab"}

	// shared are packages below a peer that the others below it import, too.
	shared = []string{"rankcache/sidecar/encode", "rankcache/sidecar/live"}

	// public are the packages that other modules may rely on, with the ground floor. The
	// first line of any other's doc says "(no public API)", unless its path does.
	public = []string{"rankcache/localboard", "rankcache/origin", "rankcache/sidecar"}

	// examples show other modules how to use rankcache, so they import only the ground floor,
	// what is public, and each other.
	examples = "rankcache/examples"

	// alone import no package of the module.
	alone = []string{"rankcache/deploy", "rankcache/docs"}
)

// Packages that do I/O, which the ground floor must not import. A leading segment
// stands for everything below it.
var inputOutput = []string{"os", "net", "syscall", "log", "plugin", "database"}

// groundModules are the only packages outside the standard library that the ground
// floor imports.
var groundModules = []string{"go.yaml.in/yaml/v3", "github.com/go-json-experiment/json", "github.com/go-json-experiment/json/jsontext"}

// kafkaModule is the wrapper of librdkafka, which internal/kafka alone imports.
const kafkaModule = "github.com/confluentinc/confluent-kafka-go"

// toolPackages are only for tests, demo and benchmarks.
var toolPackages = []string{"github.com/alicebob/miniredis", "github.com/twmb/franz-go/pkg/kfake", "github.com/wangjia184/sortedset", "github.com/tidwall/redcon",
	"google.golang.org/grpc", "github.com/bufbuild/protocompile", "github.com/yuin/gopher-lua", "github.com/chromedp", "github.com/johannesboyne/gofakes3", "rankcache/internal/lab", "rankcache/internal/testkit"}

// TestImportTable checks the imports of every package against the table.
func TestImportTable(t *testing.T) {
	packages := list(t, "./...")
	if len(packages) < 20 {
		t.Fatalf("go list found only %d packages", len(packages))
	}
	for _, p := range packages {
		for _, imported := range p.Imports {
			if !mayImport(p.ImportPath, imported) {
				t.Errorf("%s imports %s, which the table does not allow", p.ImportPath, imported)
			}
		}
		if !inTable(p.ImportPath) {
			t.Errorf("%s is not in the table", p.ImportPath)
		}
	}
}

// TestImportTableRejects checks that the table does not allow everything.
func TestImportTableRejects(t *testing.T) {
	for _, c := range []struct{ importer, imported string }{
		{"rankcache", "rankcache/wire"},
		{"rankcache/wire", "rankcache/rooms"},
		{"rankcache/wire", "os"},
		{"rankcache/class", "rankcache/rooms"},
		{"rankcache/class", "os"},
		{"rankcache/rooms", "net/http"},
		{"rankcache/rooms", "golang.org/x/sync/errgroup"},
		{"rankcache/rooms", "rankcache/internal/lease"},
		{"rankcache/internal/lease", "rankcache/wire"},
		{"rankcache/internal/httpserve", "rankcache/sidecar/internal/conn"},
		{"rankcache/replay", "rankcache/sidecar/encode"},
		{"rankcache/replay", "rankcache/localboard"},
		{"rankcache/replay", "rankcache/sidecar/internal/conn"},
		{"rankcache/sidecar", "rankcache/sidecar/httpapi"},
		{"rankcache/compat", "rankcache/sidecar/encode"},
		{"rankcache/sidecar/httpapi", "rankcache/sidecar/resp"},
		{"rankcache/sidecar/httpapi", "rankcache/origin"},
		{"rankcache/origin", "rankcache/internal/app"},
		{"rankcache/origin", "rankcache/internal/testkit"},
		{"rankcache/internal/cli", "rankcache/internal/serve"},
		{"rankcache/internal/serve", "rankcache/internal/run"},
		{"rankcache/internal/run", "rankcache/internal/operate"},
		{"rankcache/internal/operate", "rankcache/internal/serve"},
		{"rankcache/internal/operate", "rankcache/internal/app"},
		{"rankcache/internal/app", "rankcache/internal/testkit"},
		{"rankcache/internal/serve", "rankcache/internal/lab/servers"},
		{"rankcache/replay", "rankcache/internal/cli"},
		{"rankcache/replay", kafkaModule + "/v2/kafka"},
		{"rankcache/internal/kafka", "rankcache/wire"},
		{"rankcache/deploy/sample", "rankcache"},
		{"rankcache/sidecar", "rankcache/examples/live/go/live"},
		{"rankcache/examples/embed", "rankcache/internal/roomsync"},
		{"rankcache/examples/embed", "rankcache/internal/lease"},
		{"rankcache/examples/embed", "rankcache/writer"},
		{"rankcache/examples/embed", "rankcache/sidecar/httpapi"},
		{"rankcache/examples/embed", "rankcache/internal/app"},
		{"rankcache/examples/embed", "rankcache/sidecar/internal/conn"},
	} {
		if mayImport(c.importer, c.imported) {
			t.Errorf("%s may import %s", c.importer, c.imported)
		}
	}
	for _, c := range []struct{ importer, imported string }{
		{"rankcache/sidecar/httpapi", "rankcache/sidecar"},
		{"rankcache/sidecar/httpapi", "rankcache/sidecar/internal/conn"},
		{"rankcache/sidecar/httpapi", "rankcache/sidecar/encode"},
		{"rankcache/sidecar/internal/conn", "rankcache/internal/httpserve"},
		{"rankcache/internal/cli", "rankcache/ledger"},
		{"rankcache/internal/kafka", kafkaModule + "/v2/kafka"},
		{"rankcache/internal/serve", "rankcache/replay"},
		{"rankcache/internal/serve", "rankcache/internal/cli"},
		{"rankcache/internal/app", "rankcache/internal/run"},
		{"rankcache/cmd/rankcache-lab", "rankcache/internal/cli"},
		{"rankcache/examples/embed", "rankcache/wire"},
		{"rankcache/examples/embed", "rankcache/origin"},
		{"rankcache/examples/webapp", "rankcache/examples/live/go/live"},
	} {
		if !mayImport(c.importer, c.imported) {
			t.Errorf("%s may not import %s", c.importer, c.imported)
		}
	}
}

// TestDocsTellWhatIsPublic: who reads a package's doc learns whether to rely on it.
func TestDocsTellWhatIsPublic(t *testing.T) {
	for _, p := range list(t, "./...") {
		path := p.ImportPath
		if p.Name == "main" || isInternal(path) || within(path, examples) {
			continue
		}
		told := strings.Contains(p.Doc, "(no public API)")
		if isPublic := slices.Contains(ground, path) || slices.Contains(public, path); told == isPublic {
			t.Errorf("the doc of %s tells %q, and the table has it as public: %v", path, p.Doc, isPublic)
		}
	}
}

// TestDeployedBinaryLinksNoTools checks that nothing that only tests, the demo or
// benchmarks need is linked into the deployed binary.
func TestDeployedBinaryLinksNoTools(t *testing.T) {
	for _, p := range list(t, "-deps", "./cmd/rankcache") {
		if slices.ContainsFunc(toolPackages, func(tool string) bool { return within(p.ImportPath, tool) }) {
			t.Errorf("cmd/rankcache depends on %s", p.ImportPath)
		}
	}
}

// TestOneHTTPServer: the program's listeners have the server of internal/httpserve, which ends a
// connection whose body was not read to its end, or that of the data port.
func TestOneHTTPServer(t *testing.T) {
	server := regexp.MustCompile(`\bhttp\.(Server\{|Serve\(|ServeTLS\(|ListenAndServe)`)
	var made []string
	for _, p := range list(t, "-deps", "./cmd/rankcache") {
		if !within(p.ImportPath, module) {
			continue
		}
		for _, name := range p.GoFiles {
			source, err := os.ReadFile(filepath.Join(p.Dir, name))
			if err != nil {
				t.Fatal(err)
			}
			if server.Match(source) {
				made = append(made, p.ImportPath)
			}
		}
	}
	if len(made) != 1 || made[0] != "rankcache/internal/httpserve" {
		t.Errorf("servers of net/http are made in %v", made)
	}
}

type goPackage struct {
	ImportPath, Dir, Name, Doc string
	Imports, GoFiles           []string
}

// list returns what go list prints for the arguments.
func list(t *testing.T, args ...string) (packages []goPackage) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"list", "-json=ImportPath,Dir,Name,Doc,Imports,GoFiles"}, args...)...)
	out, err := cmd.Output()
	if err != nil {
		if failed, ok := errors.AsType[*exec.ExitError](err); ok {
			t.Fatalf("go list: %v: %s", err, failed.Stderr)
		}
		t.Fatal(err)
	}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p goPackage
		switch err := dec.Decode(&p); err {
		case nil:
			packages = append(packages, p)
		case io.EOF:
			return packages
		default:
			t.Fatal(err)
		}
	}
}

func inTable(path string) bool {
	return slices.Contains(ground, path) || slices.Contains(leaves, path) ||
		folder(peers, path) != "" || isRoom(path) || folder(lab, path) != "" || folder(alone, path) != "" || within(path, examples)
}

func mayImport(importer, imported string) bool {
	if within(imported, kafkaModule) {
		return importer == "rankcache/internal/kafka"
	}
	if !within(imported, module) {
		return !slices.Contains(ground, importer) || pure(imported)
	}
	switch {
	case slices.Contains(ground, importer):
		return slices.Index(ground, imported) >= 0 && slices.Index(ground, imported) < slices.Index(ground, importer)
	case slices.Contains(leaves, importer):
		return imported == module || slices.Contains(leaves[:slices.Index(leaves, importer)], imported)
	case folder(lab, importer) != "":
		return true
	case isRoom(importer):
		return !isRoom(imported) && folder(lab, imported) == "" || slices.Contains(command[importer], imported)
	case folder(peers, importer) != "":
		return slices.Contains(ground, imported) || isLeafFor(importer, imported) ||
			within(importer, imported) || within(imported, folder(peers, importer)+"/internal") ||
			slices.Contains(shared, imported) && within(imported, folder(peers, importer))
	case within(importer, examples):
		return slices.Contains(ground, imported) || within(imported, examples) || slices.Contains(public, imported)
	}
	return false
}

// isRoom reports whether path is a room of the command.
func isRoom(path string) bool { _, room := command[path]; return room }

// pure reports whether the ground floor may import a package from outside the
// module.
func pure(path string) bool {
	if slices.Contains(groundModules, path) {
		return true
	}
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".") && !slices.Contains(inputOutput, first)
}

// isInternal reports whether path can be imported within the module alone.
func isInternal(path string) bool { return slices.Contains(strings.Split(path, "/"), "internal") }

// isLeafFor reports whether imported is a leaf, and not internal to another folder.
func isLeafFor(importer, imported string) bool {
	owner, _, inside := strings.Cut(imported, "/internal/")
	return slices.Contains(leaves, imported) && (!inside || within(importer, owner))
}

// folder returns the folder in which path is, or "".
func folder(folders []string, path string) string {
	i := slices.IndexFunc(folders, func(f string) bool { return within(path, f) })
	if i < 0 {
		return ""
	}
	return folders[i]
}

// within reports whether path is folder or below it.
func within(path, folder string) bool {
	return path == folder || strings.HasPrefix(path, folder+"/")
}
