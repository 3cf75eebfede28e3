package app

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// newDocsCommand prints the references that are made from the code. A test
// fails when the files in docs/ differ from what it prints.
func newDocsCommand() *cobra.Command {
	docs := &cobra.Command{Use: "docs", Short: "Print a generated reference (make docs writes them)", Hidden: true}
	for name, write := range references {
		docs.AddCommand(&cobra.Command{
			Use:   name,
			Short: "Print the reference of " + name,
			Args:  NoArgs,
			RunE:  func(cmd *cobra.Command, _ []string) error { return write(cmd.OutOrStdout()) },
		})
	}
	return docs
}

// references by the name of their sub-command.
var references = map[string]func(io.Writer) error{
	"config":  writeConfigReference,
	"metrics": writeMetricsReference,
}

// generated begins a reference.
const generated = "<!-- Made from the code by \"make docs\"; changes here are lost and fail a test. -->\n"

// noTags keeps <placeholders> of a text from being taken for HTML.
var noTags = strings.NewReplacer("<", "&lt;", ">", "&gt;")

// tableRow writes one row of a Markdown table.
func tableRow(to io.Writer, cells ...string) {
	for _, cell := range cells {
		fmt.Fprintf(to, "| %s ", strings.ReplaceAll(cell, "|", "\\|"))
	}
	fmt.Fprintln(to, "|")
}
