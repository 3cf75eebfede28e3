// Package doctext reads the commands out of the documentation, so that tests can
// hold each to the program that it calls, or run it.
package doctext

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// programs are what the documentation calls besides kubectl.
var programs = []string{"rankcache", "bin/rankcache", "rankcache-lab", "bin/rankcache-lab", "curl", "make"}

// CommandLines returns the lines of a text with continued ones joined, without
// comments and blank lines.
func CommandLines(text string) (lines []string) {
	for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", " ")) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	return lines
}

// Shims are programs that only note how they were called, so that a real shell
// takes the lines of the documentation apart.
type Shims struct{ dir string }

// NewShims makes the programs in a folder of the test's.
func NewShims(t *testing.T) Shims {
	s := Shims{t.TempDir()}
	const script = "#!/bin/sh\nprintf '%s\\0' \"${0##*/}\" \"$@\" >>\"$CALLS\"\nprintf '\\n' >>\"$CALLS\"\n"
	if err := os.Mkdir(filepath.Join(s.dir, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range append(programs, "kubectl") {
		file := filepath.Join(s.dir, name)
		if err := errors.Join(os.WriteFile(file, []byte(script), 0o600), os.Chmod(file, 0o700)); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// Calls returns the arguments with which the line calls the shims.
func (s Shims) Calls(t *testing.T, line string) (calls [][]string) {
	t.Helper()
	note := filepath.Join(t.TempDir(), "calls")
	cmd := exec.Command("sh", "-c", line)
	cmd.Dir = s.dir
	cmd.Env = []string{"PATH=" + s.dir + ":" + os.Getenv("PATH"), "CALLS=" + note}
	if out, err := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() > 1 { // 1: grep has nothing to find
		t.Errorf("%q: %v: %s", line, err, out)
	}
	noted, err := os.ReadFile(note)
	if err != nil {
		return nil
	}
	for call := range strings.SplitSeq(strings.TrimSuffix(string(noted), "\x00\n"), "\x00\n") {
		calls = append(calls, strings.Split(call, "\x00"))
	}
	return calls
}

// notRun begins the comment, on the line before a block, that explains why the
// commands of the block can't be run here.
const notRun = "<!-- not run: "

// Line is one command of the documentation.
type Line struct {
	File, Text string
	NotRun     string // why it can't be run here; empty: it can
}

// Lines returns the lines of all shell blocks that call rankcache,
// rankcache-lab, curl or make, in README.md and in docs and its folders. root is the folder of README.md.
func Lines(t *testing.T, root string) (lines []Line) {
	files := []string{filepath.Join(root, "README.md")}
	for _, pattern := range []string{"docs/*.md", "docs/*/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %q, %v", pattern, found, err)
		}
		files = append(files, found...)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range shellBlocks(string(data)) {
			for _, line := range CommandLines(b.text) {
				first, _, _ := strings.Cut(line, " ")
				if slices.Contains(programs, first) || strings.Contains(line, "-- /rankcache ") {
					lines = append(lines, Line{filepath.Base(file), line, b.marker})
				}
			}
		}
	}
	return lines
}

type shellBlock struct{ text, marker string }

// shellBlocks returns the blocks of a Markdown text that are marked as sh or not
// at all.
func shellBlocks(text string) (blocks []shellBlock) {
	inside, before, block := "", "", shellBlock{}
	for line := range strings.Lines(text) {
		trimmed := strings.TrimSpace(line)
		switch fence := strings.HasPrefix(trimmed, "```"); {
		case fence && inside == "":
			inside, block = trimmed, shellBlock{}
			if why, ok := strings.CutPrefix(before, notRun); ok {
				block.marker = strings.TrimSuffix(why, " -->")
			}
		case fence:
			if inside == "```" || inside == "```sh" {
				blocks = append(blocks, block)
			}
			inside = ""
		case inside != "":
			block.text += line
		case trimmed != "":
			before = trimmed
			continue
		}
		if inside == "" && trimmed != "" {
			before = ""
		}
	}
	return blocks
}

// Check returns an error if the command line of root would not take args.
func Check(root *cobra.Command, args []string) error {
	cmd, rest, err := root.Find(args)
	if err != nil {
		return err
	}
	if err := cmd.ParseFlags(rest); err != nil {
		return err
	}
	if !cmd.Runnable() {
		return fmt.Errorf("%s does nothing by itself", cmd.CommandPath())
	}
	return cmd.ValidateArgs(cmd.Flags().Args())
}
