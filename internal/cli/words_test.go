package cli

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

// TestValuesInOurWords: a value that is none is answered with what is wanted, not with the words of Go's parsers.
func TestValuesInOurWords(t *testing.T) {
	for arg, want := range map[string]string{"--every=1": "unit", "--many=x": "number", "--many=99999999999999999999": "number", "--on=perhaps": "true or false", "--share=x": "number"} {
		cmd := NewRoot(&cobra.Command{Use: "x", RunE: func(*cobra.Command, []string) error { return nil }})
		cmd.Flags().Duration("every", time.Second, "")
		cmd.Flags().Uint("many", 1, "")
		cmd.Flags().Bool("on", false, "")
		cmd.Flags().Float64("share", 1, "")
		err := Run(t.Context(), cmd, []string{arg}, io.Discard, io.Discard)
		if err == nil || ExitCode(err) != ExitUsage || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "strconv") || strings.Contains(err.Error(), "time:") {
			t.Errorf("%s: %v", arg, err)
		}
	}
}

// TestTokensHaveASource: OAUTHBEARER without one is refused at the start, not told as a failure of the broker later.
func TestTokensHaveASource(t *testing.T) {
	with := func(more ...string) error {
		kafka := map[string]string{"sasl.mechanism": "OAUTHBEARER"}
		for i := 0; i < len(more); i += 2 {
			kafka[more[i]] = more[i+1]
		}
		return checkTokens(kafka)
	}
	if err := with("sasl.oauthbearer.method", "default"); ExitCode(err) != ExitUsage || !strings.Contains(err.Error(), "oidc") {
		t.Error(err)
	}
	for _, err := range []error{with("sasl.oauthbearer.method", "oidc"), with("enable.sasl.oauthbearer.unsecure.jwt", "true"), with("sasl.mechanism", "PLAIN")} {
		if err != nil {
			t.Error(err)
		}
	}
}
