package app

import (
	"cmp"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"rankcache/replay"
)

// versionInfo is the stable JSON of rankcache version.
type versionInfo struct {
	Version    string `json:"version"`
	Commit     string `json:"commit"` // "unknown" for a build outside a repository
	Modified   bool   `json:"modified"`
	Go         string `json:"go"`
	Platform   string `json:"platform"`
	Librdkafka string `json:"librdkafka"` // the Kafka client's C library
}

func newVersionCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version, the commit and what it was built with",
		Example: `  rankcache version
  rankcache version -o json`,
		Args: NoArgs,
	}
	output := OutputFlag(cmd.Flags(), "text")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		v := readVersion()
		return PrintAs(cmd.OutOrStdout(), *output, v, v.print)
	}
	return cmd
}

func readVersion() versionInfo {
	v := versionInfo{Version: Version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, Librdkafka: replay.ClientVersion()}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				v.Commit = s.Value
			case "vcs.modified":
				v.Modified = s.Value == "true"
			}
		}
	}
	v.Commit = cmp.Or(v.Commit, "unknown")
	return v
}

func (v versionInfo) print(to io.Writer) error {
	commit := v.Commit
	if v.Modified {
		commit += " with changes"
	}
	_, err := fmt.Fprintf(to, "rankcache %s (commit %s)\n%s %s, librdkafka %s\n", v.Version, commit, v.Go, v.Platform, v.Librdkafka)
	return err
}
