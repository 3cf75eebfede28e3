package app

import (
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rankcache/internal/cli"
	"rankcache/internal/operate"
	"rankcache/internal/plan"
	"rankcache/internal/serve"
	"rankcache/internal/testkit/doctext"
)

// everyCommand calls check with each command that people see, the shell's
// completion included and cobra's help left out.
func everyCommand(check func(*cobra.Command)) {
	root := NewCommand()
	root.InitDefaultCompletionCmd()
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		check(cmd)
		for _, sub := range cmd.Commands() {
			if sub.Name() != "help" && !sub.Hidden {
				walk(sub)
			}
		}
	}
	walk(root)
}

func TestEveryCommandExplainsItself(t *testing.T) {
	everyCommand(func(cmd *cobra.Command) {
		if cmd.Short == "" || cmd.Long == "" && cmd.Example == "" {
			t.Errorf("%s: want a short text, and a long one or an example", cmd.CommandPath())
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Usage == "" || strings.HasSuffix(f.Usage, ".") {
				t.Errorf("%s --%s: usage %q: want a text without a full stop", cmd.CommandPath(), f.Name, f.Usage)
			}
		})
	})
}

// TestHelp: --help of a long-running command has some twenty flags and the number of those that it leaves out, --help-all has each.
func TestHelp(t *testing.T) {
	listed := func(args ...string) (text string, n int) {
		var out bytes.Buffer
		if err := cli.Run(t.Context(), NewCommand(), args, &out, &out); err != nil {
			t.Error(args, err)
		}
		return out.String(), len(regexp.MustCompile(`(?m)^ +(-., )?--`).FindAllString(out.String(), -1))
	}
	for _, cmd := range LongRunning() {
		text, often := listed(cmd.Name(), "--help")
		whole, all := listed(cmd.Name(), "--help-all")
		if often > 26 || !strings.Contains(text, "--redis URL") || !strings.Contains(text, fmt.Sprintf("And %d that are rarely set", all-often)) {
			t.Errorf("%s --help lists %d of %d flags:\n%s", cmd.Name(), often, all, text)
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden && !strings.Contains(whole, "--"+f.Name+" ") {
				t.Errorf("%s --help-all lacks --%s", cmd.Name(), f.Name)
			}
		})
	}
}

func TestEveryExampleParses(t *testing.T) {
	sh := doctext.NewShims(t)
	everyCommand(func(cmd *cobra.Command) {
		if strings.HasPrefix(cmd.CommandPath(), "rankcache completion") {
			return
		}
		for _, line := range doctext.CommandLines(cmd.Example) {
			calls := sh.Calls(t, line)
			if len(calls) == 0 {
				t.Errorf("%s: example %q calls nothing that is known", cmd.CommandPath(), line)
			}
			for _, call := range calls {
				if err := checkCall(call); err != nil {
					t.Errorf("%s: example %q: %v", cmd.CommandPath(), line, err)
				}
			}
		}
	})
}

// checkCall returns an error if our own command would not take the arguments.
// Behind kubectl's "--" is one of ours too.
func checkCall(call []string) error {
	if i := slices.Index(call, "--"); call[0] == "kubectl" && i > 0 && i+1 < len(call) {
		call = append([]string{filepath.Base(call[i+1])}, call[i+2:]...)
	}
	if call[0] != "rankcache" {
		return nil
	}
	root := NewCommand()
	root.InitDefaultCompletionCmd()
	if err := cli.AddKafkaFlags(root, call[1:]); err != nil {
		return err
	}
	return doctext.Check(root, call[1:])
}

func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		var out bytes.Buffer
		if err := cli.Run(t.Context(), NewCommand(), []string{"completion", shell}, &out, &out); err != nil || !strings.Contains(out.String(), "__complete") {
			t.Errorf("%s: %v, %d bytes", shell, err, out.Len())
		}
		path, err := exec.LookPath(shell)
		if err != nil {
			t.Logf("%s is not installed: its script was made but not read by it", shell)
			continue
		}
		check := exec.Command(path, "-n")
		check.Stdin = &out
		if output, err := check.CombinedOutput(); err != nil {
			t.Errorf("%s does not read its script: %v %s", shell, err, output)
		}
	}
	for line, want := range map[string]string{
		"serve --redis-mode ":          "single cluster sentinel instances :4",
		"serve --hot-source t":         "auto tencent redis fleet none :4",
		"write --log-format ":          "text json :4",
		"config poll --redis-mode s":   "single cluster sentinel instances :4",
		"version -o ":                  "text json :4",
		"serve --rooms ":               ":0", // files
		"serve --redis-timeout ":       ":4", // nothing
		"rooms ":                       "check",
		"serve --tencent-credentials ": "env tke cvm",
	} {
		var out bytes.Buffer
		args := append([]string{"__complete"}, strings.Split(line, " ")...)
		if err := cli.Run(t.Context(), NewCommand(), args, &out, &bytes.Buffer{}); err != nil {
			t.Errorf("%q: %v", line, err)
		}
		if got := strings.Join(strings.Split(out.String(), "\n"), " "); !strings.Contains(got, want) {
			t.Errorf("%q completes to %q, want %q", line, got, want)
		}
	}
}

func TestWrongWordsAreRefusedWithTheRightOnes(t *testing.T) {
	for want, args := range map[string][]string{
		"text or json":                           {"hot", "-o", "xml"},
		"single, cluster, sentinel or instances": {"config", "--redis-mode", "many"},
	} {
		err := cli.Run(t.Context(), NewCommand(), args, &bytes.Buffer{}, &bytes.Buffer{})
		if cli.ExitCode(err) != cli.ExitUsage || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want a usage error with %q", args, err, want)
		}
	}
}

func TestPlanSaysWhenItIsNotNeeded(t *testing.T) {
	var out bytes.Buffer
	if err := cli.Run(t.Context(), NewCommand(), []string{"plan", "--requests", "1000", "--pods", "2"}, &out, &out); err != nil || !strings.Contains(out.String(), "not needed") {
		t.Errorf("%v\n%s", err, out.String())
	}
	if err := cli.Run(t.Context(), NewCommand(), []string{"plan", "--pods", "0"}, &out, &out); cli.ExitCode(err) != cli.ExitUsage || !strings.Contains(err.Error(), "--pods") {
		t.Errorf("no pods: %v", err)
	}
}

// TestJSONHasUnits: what is printed as JSON has no Go duration in it, which would be
// a bare count of nanoseconds, but fields named _ms or _s.
func TestJSONHasUnits(t *testing.T) {
	seen := map[reflect.Type]bool{}
	var walk func(path string, v reflect.Type)
	walk = func(path string, v reflect.Type) {
		switch {
		case v == reflect.TypeFor[time.Duration]():
			t.Errorf("%s is a duration without a unit", path)
		case seen[v] || v == reflect.TypeFor[time.Time]():
		case v.Kind() == reflect.Pointer || v.Kind() == reflect.Slice || v.Kind() == reflect.Map:
			walk(path, v.Elem())
		case v.Kind() == reflect.Struct:
			seen[v] = true
			for i := range v.NumField() {
				if f := v.Field(i); f.IsExported() && f.Tag.Get("json") != "-" {
					walk(path+"."+f.Name, f.Type)
				}
			}
		}
	}
	for _, v := range []any{operate.WaitReport{}, operate.VersionInfo{}, operate.DoctorReport{}, plan.Answer{}, operate.RoomsSummary{}, operate.RoomsAnswer{}, cli.HotAnswer{}, serve.LocalBoard{}, serve.MemoryStatus{}, cli.EventsBody{}} {
		walk(reflect.TypeOf(v).Name(), reflect.TypeOf(v))
	}
	if len(seen) < 12 {
		t.Errorf("%d types were looked at", len(seen))
	}
}
