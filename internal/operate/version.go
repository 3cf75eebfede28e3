package operate

import (
	"cmp"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"rankcache/internal/cli"
	"rankcache/internal/kafka"
)

// VersionInfo is the stable JSON of rankcache version.
type VersionInfo struct {
	Version    string `json:"version"`
	Commit     string `json:"commit"` // "unknown" for a build outside a repository
	Modified   bool   `json:"modified"`
	Go         string `json:"go"`
	Platform   string `json:"platform"`
	Librdkafka string `json:"librdkafka"` // the Kafka client's C library
	// Build is how it was built, as the go command notes it: -ldflags, CGO_ENABLED, vcs.time …
	Build     map[string]string `json:"build"`
	Libraries []libraryInfo     `json:"libraries"` // that are linked, by path
}

// libraryInfo is one Go module. Path and version are those of its replacement, if it has one.
type libraryInfo struct {
	Path    string `json:"path"`
	Version string `json:"version"`
	Sum     string `json:"sum"` // of its contents, as in go.sum
}

func NewVersionCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version, the commit and what it was built with",
		Long: `Print the version, the commit and what it was built with. As JSON also how it was
built and the Go modules that are linked, with their checksums.`,
		Example: `  rankcache version
  rankcache version -o json`,
		Args: cli.NoArgs,
	}
	output := cli.OutputFlag(cmd.Flags(), "text")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		v := readVersion()
		return cli.PrintAs(cmd.OutOrStdout(), *output, v, v.print)
	}
	return cmd
}

func readVersion() VersionInfo {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return versionOf(info)
}

// versionOf adds to the version what the go command noted.
func versionOf(info *debug.BuildInfo) VersionInfo {
	v := VersionInfo{Version: cli.Version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, Librdkafka: kafka.Version(),
		Build: map[string]string{}, Libraries: []libraryInfo{}}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		v.Libraries = append(v.Libraries, libraryInfo{m.Path, m.Version, m.Sum})
	}
	for _, s := range info.Settings {
		v.Build[s.Key] = s.Value
	}
	v.Commit, v.Modified = cmp.Or(v.Build["vcs.revision"], "unknown"), v.Build["vcs.modified"] == "true"
	return v
}

func (v VersionInfo) print(to io.Writer) error {
	commit := v.Commit
	if v.Modified {
		commit += " with changes"
	}
	_, err := fmt.Fprintf(to, "rankcache %s (commit %s)\n%s %s, librdkafka %s\n", v.Version, commit, v.Go, v.Platform, v.Librdkafka)
	return err
}
