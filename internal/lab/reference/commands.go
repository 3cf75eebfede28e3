package reference

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rankcache/internal/app"
	"rankcache/internal/cli"
)

// newLabCommand prints docs/LAB.md.
func newLabCommand() *cobra.Command {
	return &cobra.Command{Use: "lab", Short: "Print the page of rankcache-lab", Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return writeCommands(cmd.OutOrStdout(), cmd.Root()) }}
}

// writeCommands writes the reference of all commands below root as Markdown: what each does, and examples.
func writeCommands(to io.Writer, root *cobra.Command) error {
	var text bytes.Buffer
	writeCommand(&text, root, describeShortly)
	return writeSections(to, fmt.Sprintf("# Commands of %s\n\n%s `--help` has the details and flags of a command.\n", root.Name(), root.Long), text.String())
}

func writeCommand(to io.Writer, cmd *cobra.Command, describe func(to io.Writer, level string, cmd *cobra.Command)) {
	for _, sub := range documented(cmd) {
		describe(to, "##", sub)
		writeCommand(to, sub, describe)
	}
}

// documented returns the commands right below one that have a place in the reference: config's, which
// its own text describes, have none.
func documented(cmd *cobra.Command) (all []*cobra.Command) {
	for _, sub := range cmd.Commands() {
		if !sub.Hidden && sub.Name() != "help" && sub.Name() != "completion" && cmd.Name() != "config" {
			all = append(all, sub)
		}
	}
	return all
}

func describeShortly(to io.Writer, level string, cmd *cobra.Command) {
	if cmd.Runnable() {
		fmt.Fprintf(to, "\n%s %s\n\n%s.\n", level, cmd.CommandPath(), strings.TrimSuffix(cmd.Short, "."))
		textBlock(to, cmd.Example)
	}
}

// describeCommand writes the output of --help, without the flags that CONFIG.md describes; it links to these.
func describeCommand(to io.Writer, level string, cmd *cobra.Command) {
	if !cmd.Runnable() {
		return
	}
	fmt.Fprintf(to, "\n%s %s\n\n%s.\n", level, cmd.CommandPath(), strings.TrimSuffix(cmd.Short, "."))
	if cmd.Long != "" {
		fmt.Fprintf(to, "\n%s\n", noTags.Replace(cmd.Long))
	}
	textBlock(to, cmd.Example)
	own := pflag.NewFlagSet(cmd.Name(), pflag.ContinueOnError)
	own.SortFlags = cmd.Flags().SortFlags
	settings := map[string]bool{}
	cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		if key := settingOf(f); f.Shorthand == "" && isSetting()[key] {
			settings[key] = true
		} else {
			own.AddFlag(f)
		}
	})
	textBlock(to, cli.FlagUsages(own))
	linkSettings(to, settings)
}

// linkSettings leads to the settings of a command in CONFIG.md: first to what all processes share, then to
// the table that has most of the rest, and so on.
func linkSettings(to io.Writer, taken map[string]bool) {
	sections := settingSections()
	for n, s := range slices.Concat(sections[:1], sections) {
		if n > 0 {
			s = slices.MaxFunc(sections, func(a, b settingSection) int {
				inA, _ := namesOf(a, taken)
				inB, _ := namesOf(b, taken)
				return len(inA) - len(inB)
			})
		}
		if which := whichOf(s, taken); which != "" {
			fmt.Fprintf(to, "\nSettings in [%s](../CONFIG.md#%s): %s.\n", s.title, anchor(s.title), which)
		}
		for _, f := range s.flags {
			delete(taken, settingOf(f))
		}
	}
}

// whichOf names those settings of a section that are taken: all of them, all but some, or some.
func whichOf(s settingSection, taken map[string]bool) string {
	names, others := namesOf(s, taken)
	switch {
	case len(others) == 0:
		return "all"
	case len(others) < len(names):
		return "all but " + strings.Join(others, " ")
	}
	return strings.Join(names, " ")
}

// namesOf returns the names of those settings of a section that are taken, and of the others.
func namesOf(s settingSection, taken map[string]bool) (names, others []string) {
	for _, f := range s.flags {
		to := &others
		if taken[settingOf(f)] {
			to = &names
		}
		*to = append(*to, "`"+f.Name+"`")
	}
	return names, others
}

// newCommandsCommand prints the table of rankcache's commands, and writes a page for each of those right below the
// root.
func newCommandsCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{Use: "commands", Short: "Print the table of all commands, and write their pages", Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			root := app.NewCommand()
			if dir != "" {
				if err := writeCommandPages(dir, root); err != nil {
					return err
				}
			}
			return writeCommandTable(cmd.OutOrStdout(), root)
		}}
	cmd.Flags().StringVar(&dir, "pages", "", "`folder` to which a page a command is written")
	return cmd
}

func writeCommandTable(to io.Writer, root *cobra.Command) error {
	var text bytes.Buffer
	fmt.Fprintf(&text, "%s# Commands of %s\n\n%s\n\n", generated, root.Name(), root.Long)
	tableRow(&text, "command", "what")
	tableRow(&text, "---", "---")
	for _, cmd := range documented(root) {
		addCommandRows(&text, cmd, "commands/"+cmd.Name()+".md")
	}
	_, err := text.WriteTo(to)
	return err
}

func addCommandRows(to io.Writer, cmd *cobra.Command, page string) {
	if cmd.Runnable() {
		tableRow(to, "["+cmd.CommandPath()+"]("+page+")", noTags.Replace(cmd.Short))
	}
	for _, sub := range documented(cmd) {
		addCommandRows(to, sub, page+"#"+strings.ReplaceAll(sub.CommandPath(), " ", "-"))
	}
}

func writeCommandPages(dir string, root *cobra.Command) error {
	for _, cmd := range documented(root) {
		var text bytes.Buffer
		text.WriteString(generated)
		if cmd.Runnable() {
			describeCommand(&text, "#", cmd)
		} else {
			fmt.Fprintf(&text, "\n# %s\n\n%s.\n", cmd.CommandPath(), strings.TrimSuffix(cmd.Short, "."))
		}
		writeCommand(&text, cmd, describeCommand)
		if err := os.WriteFile(filepath.Join(dir, cmd.Name()+".md"), text.Bytes(), 0o600); err != nil { // git keeps no more of a mode than x
			return fmt.Errorf("write the page of %s: %w", cmd.CommandPath(), err)
		}
	}
	return nil
}

// textBlock writes a block that documentation tests do not take for commands to run:
// examples are held to the command line where they stand.
func textBlock(to io.Writer, text string) {
	if text = strings.TrimRight(text, "\n "); text != "" {
		fmt.Fprintf(to, "\n```text\n%s\n```\n", text)
	}
}
