package operate

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"rankcache/internal/cli"
)

// bundleParts are the files of a bundle, and what the admin port answers that is in them.
var bundleParts = []struct {
	file, path string
	some       bool // not every kind of process has it
}{
	{"status.json", "/status?limit=500", false},
	{"rooms.json", "/rooms", true},
	{"hotkeys.json", "/hotkeys", true},
	{"config.json", "/config", false},
	{"events.json", "/events", false},
	{"metrics.txt", "/metrics", false},
	{"goroutines.txt", "/debug/pprof/goroutine?debug=2", false},
	{"heap.pprof", "/debug/pprof/heap", false},
}

func NewDebugCommand() *cobra.Command {
	debug := &cobra.Command{
		Use:     "debug",
		Short:   "Collect what explains a running process",
		Example: "  rankcache debug bundle",
	}
	debug.AddCommand(cli.FromConfig(newBundleCommand()))
	return debug
}

func newBundleCommand() *cobra.Command {
	c := &cli.AdminClient{}
	var output string
	cmd := &cobra.Command{
		Use:   "bundle",
		Short: "Save the state of a running process in one tar",
		Long: `Read from a sidecar's admin port its status, rooms, hot boards, configuration, events
of the last hour, metrics, goroutines and heap, and write them to one tar. Secrets
are not in it: settings that hold them are masked. Ids of boards, and in events of
members, are. For rankcache write, poll, controller and reconcile give their health port
as --admin, for rankcache ledger its --http: on loopback they answer the same, except hot
boards, and rooms where none are followed. errors.txt tells what is missing.`,
		Example: `  rankcache debug bundle -o bundle.tar
  rankcache debug bundle --admin 127.0.0.1:8974 -o writer.tar
  kubectl exec app-0 -c rankcache -- /rankcache debug bundle -o - >bundle.tar
  kubectl exec deploy/rankcache-writer -- /rankcache debug bundle --admin 127.0.0.1:8974 -o - >writer.tar`,
		Args: cli.NoArgs,
	}
	cli.RegisterAdmin(cmd.Flags(), &c.Admin)
	cmd.Flags().StringVarP(&output, "output", "o", "", "tar `file` to write; - for standard output; empty: rankcache-<time>.tar here")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		bundle, err := makeBundle(cmd.Context(), c, time.Now())
		if err != nil {
			return err
		}
		if output == "-" {
			_, err := cmd.OutOrStdout().Write(bundle)
			return err
		}
		if output == "" {
			output = time.Now().UTC().Format("rankcache-20060102-150405.tar")
		}
		if err := os.WriteFile(output, bundle, 0o600); err != nil {
			return err
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s has %d bytes\n", output, len(bundle))
		return err
	}
	return cmd
}

// makeBundle returns the tar. What one part's request fails with is in errors.txt; without any answer it is the error.
func makeBundle(ctx context.Context, c *cli.AdminClient, now time.Time) ([]byte, error) {
	var file bytes.Buffer
	to := tar.NewWriter(&file)
	var failed []string
	lacking := 0
	for _, part := range bundleParts {
		body, err := c.Ask(ctx, http.MethodGet, part.path, nil)
		if part.some && errors.Is(err, cli.ErrUnknownPath) {
			lacking++
			continue
		}
		if err != nil {
			failed = append(failed, fmt.Sprintf("%s: %v\n", part.file, err))
			continue
		}
		if err := addFile(to, part.file, body, now); err != nil {
			return nil, err
		}
	}
	if len(failed)+lacking == len(bundleParts) {
		return nil, fmt.Errorf("nothing was answered: %s", failed[0])
	}
	about, err := json.Marshal(map[string]any{"made_at": now.UTC(), "admin": c.Admin, "command": readVersion()})
	if err == nil {
		err = addFile(to, "bundle.json", about, now)
	}
	if err == nil && len(failed) > 0 {
		err = addFile(to, "errors.txt", []byte(strings.Join(failed, "")), now)
	}
	if err == nil {
		err = to.Close()
	}
	return file.Bytes(), err
}

func addFile(to *tar.Writer, name string, body []byte, now time.Time) error {
	header := &tar.Header{Name: "rankcache/" + name, Mode: 0o600, Size: int64(len(body)), ModTime: now.Truncate(time.Second)}
	if err := to.WriteHeader(header); err != nil {
		return err
	}
	_, err := io.Copy(to, bytes.NewReader(body))
	return err
}
