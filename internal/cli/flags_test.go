package cli

import (
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// A misspelt flag names the one that was meant.
func TestUnknownFlags(t *testing.T) {
	for arg, want := range map[string]string{"--kafak=x": "did you mean --kafka?", "--redis-time=1s": "did you mean --redis-timeout?", "--nothing-like-it": "(see", "--port=1": "(see"} {
		cmd := NewRoot(&cobra.Command{Use: "x", Run: func(*cobra.Command, []string) {}})
		(&RedisOptions{}).RegisterRedis(cmd.Flags())
		cmd.Flags().String("kafka", "", "")
		cmd.Flags().Bool("hot", true, "")
		err := Run(t.Context(), cmd, []string{arg}, io.Discard, io.Discard)
		if ExitCode(err) != ExitUsage || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "did you") != strings.Contains(want, "did you") {
			t.Errorf("%s: %v, want %q", arg, err, want)
		}
	}
}
