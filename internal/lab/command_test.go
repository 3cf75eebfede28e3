package lab

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rankcache/internal/cli"
	"rankcache/internal/testkit/doctext"
)

func TestEveryCommandExplainsItself(t *testing.T) {
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		if cmd.Short == "" || cmd.Long == "" && cmd.Example == "" {
			t.Errorf("%s: want a short text, and a long one or an example", cmd.CommandPath())
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Usage == "" || strings.HasSuffix(f.Usage, ".") {
				t.Errorf("%s --%s: usage %q: want a text without a full stop", cmd.CommandPath(), f.Name, f.Usage)
			}
		})
		sh := doctext.NewShims(t)
		for _, line := range doctext.CommandLines(cmd.Example) {
			checkCalls(t, cmd.CommandPath(), sh.Calls(t, line))
		}
		for _, sub := range cmd.Commands() {
			if !sub.Hidden && sub.Name() != "help" && sub.Name() != "completion" {
				walk(sub)
			}
		}
	}
	walk(NewCommand())
}

// The other binary's commands are held to it, and run, in internal/app.
func TestDocumentedLabCommandsParse(t *testing.T) {
	sh, found := doctext.NewShims(t), 0
	for _, l := range doctext.Lines(t, "../..") {
		if strings.Contains(l.Text, "rankcache-lab") {
			found++
			checkCalls(t, l.File, sh.Calls(t, l.Text))
		}
	}
	if found == 0 {
		t.Error("no command of rankcache-lab is documented")
	}
}

func TestReferenceIsUpToDate(t *testing.T) {
	var want bytes.Buffer
	if err := cli.Run(t.Context(), NewCommand(), []string{"docs", "lab"}, &want, &want); err != nil {
		t.Fatal(err)
	}
	const file = "../../docs/LAB.md"
	if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, want.Bytes()) {
		t.Errorf("%s is not what the code generates (%v): run make docs and commit it", file, err)
	}
}

func checkCalls(t *testing.T, where string, calls [][]string) {
	t.Helper()
	if len(calls) == 0 {
		t.Errorf("%s: a line calls nothing that is known", where)
	}
	for _, call := range calls {
		if call[0] != "rankcache-lab" {
			continue
		}
		if err := doctext.Check(NewCommand(), call[1:]); err != nil {
			t.Errorf("%s: %q: %v", where, call, err)
		}
	}
}
