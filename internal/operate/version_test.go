package operate

import (
	"bytes"
	"encoding/json"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"rankcache/internal/cli"
)

func TestVersionSaysWhatItWasBuiltWith(t *testing.T) {
	var out bytes.Buffer
	if err := cli.Run(t.Context(), NewCommand(), []string{"version", "-o", "json"}, &out, &out); err != nil {
		t.Fatal(err)
	}
	var v VersionInfo
	if err := json.Unmarshal(out.Bytes(), &v); err != nil {
		t.Fatal(err)
	}
	if v.Version == "" || v.Commit == "" || !strings.HasPrefix(v.Go, "go1.") || !strings.HasPrefix(v.Librdkafka, "2.") || v.Build["GOARCH"] != runtime.GOARCH {
		t.Errorf("%+v", v)
	}
}

// TestVersionHasTheLibraries: what the go command notes in a program, which it does not in a
// test.
func TestVersionHasTheLibraries(t *testing.T) {
	v := versionOf(&debug.BuildInfo{
		Deps: []*debug.Module{
			{Path: "example.com/a", Version: "v1.2.3", Sum: "h1:a="},
			{Path: "example.com/b", Version: "v1.0.0", Replace: &debug.Module{Path: "example.com/fork", Version: "v1.0.1", Sum: "h1:b="}},
		},
		Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "4f2a"}, {Key: "vcs.modified", Value: "true"}, {Key: "CGO_ENABLED", Value: "1"}},
	})
	want := []libraryInfo{{"example.com/a", "v1.2.3", "h1:a="}, {"example.com/fork", "v1.0.1", "h1:b="}}
	if !slices.Equal(v.Libraries, want) || v.Commit != "4f2a" || !v.Modified || v.Build["CGO_ENABLED"] != "1" {
		t.Errorf("%+v", v)
	}
	if v := versionOf(&debug.BuildInfo{}); v.Commit != "unknown" || v.Libraries == nil || v.Build == nil {
		t.Errorf("of nothing: %+v", v)
	}
}
