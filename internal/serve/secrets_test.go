package serve

import (
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/spf13/cobra"

	"rankcache/internal/cli"
)

// TestSecretFilesOfTheEnvironment: the value is the file's without the newline at
// its end; lists stand one a line.
func TestSecretFilesOfTheEnvironment(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secret")
	must(t, os.WriteFile(path, []byte("Accept: a, b\r\nX-Key: hush \r\n"), 0o600))
	t.Setenv("RANKCACHE_PROFILE_HEADER_FILE", path)
	t.Setenv("RANKCACHE_KAFKA_SASL_PASSWORD_FILE", path)
	cmd, o := NewCommand(), &Options{}
	cli.NewRoot(&cobra.Command{}).AddCommand(cmd)
	cmd.ResetFlags()
	o.Register(cmd.Flags())
	must(t, o.Load(cmd))
	want := http.Header{"Accept": {"a, b"}, "X-Key": {"hush"}}
	if got := o.profiles.header(); !reflect.DeepEqual(got, want) {
		t.Errorf("headers are %q, want %q", got, want)
	}
	if got := o.KafkaKeys["sasl.password"]; got != "Accept: a, b\r\nX-Key: hush " || len(o.KafkaKeys) != 1 {
		t.Errorf("Kafka's settings are %q", o.KafkaKeys)
	}
}
