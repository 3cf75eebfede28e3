package app

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// WriteCommands writes the reference of all commands below root as Markdown:
// the output of --help, without the flags that all commands share.
func WriteCommands(to io.Writer, root *cobra.Command) error {
	var text bytes.Buffer
	fmt.Fprintf(&text, "%s# Commands of %s\n\n%s\n", generated, root.Name(), root.Long)
	writeCommand(&text, root)
	_, err := text.WriteTo(to)
	return err
}

func writeCommand(to io.Writer, cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		if sub.Hidden || sub.Name() == "help" || sub.Name() == "completion" {
			continue
		}
		if sub.Runnable() {
			fmt.Fprintf(to, "\n## %s\n\n%s.\n", sub.CommandPath(), strings.TrimSuffix(sub.Short, "."))
			if sub.Long != "" {
				fmt.Fprintf(to, "\n%s\n", noTags.Replace(sub.Long))
			}
			textBlock(to, sub.Example)
			textBlock(to, sub.LocalNonPersistentFlags().FlagUsages())
		}
		writeCommand(to, sub)
	}
}

// textBlock writes a block that documentation tests do not take for commands to run:
// examples are held to the command line where they stand.
func textBlock(to io.Writer, text string) {
	if text = strings.TrimRight(text, "\n "); text != "" {
		fmt.Fprintf(to, "\n```text\n%s\n```\n", text)
	}
}
