// Package reference makes the pages of docs/ that list what the code has: settings, metrics,
// commands and the answers to clients of Redis. "make docs" writes them, and a test fails
// where a page differs.
package reference

import (
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"rankcache/internal/cli"
)

// pages by the name of their sub-command.
var pages = map[string]func(io.Writer) error{"config": writeConfig, "metrics": writeMetrics, "resp": writeRESP}

// NewCommand returns the command that prints the pages.
func NewCommand() *cobra.Command {
	docs := &cobra.Command{Use: "docs", Short: "Print a generated page of docs/ (make docs writes them)", Hidden: true}
	for name, write := range pages {
		docs.AddCommand(&cobra.Command{
			Use:   name,
			Short: "Print the page of " + name,
			Args:  cli.NoArgs,
			RunE:  func(cmd *cobra.Command, _ []string) error { return write(cmd.OutOrStdout()) },
		})
	}
	docs.AddCommand(newCommandsCommand(), newLabCommand())
	return docs
}

// generated begins a reference.
const generated = "<!-- Made from the code by \"make docs\"; changes here are lost and fail a test. -->\n"

var sectionHeading = regexp.MustCompile(`(?m)^## (.+)$`)

// noTags keeps <placeholders> of a text from being taken for HTML.
var noTags = strings.NewReplacer("<", "&lt;", ">", "&gt;")

// tableRow writes one row of a Markdown table.
func tableRow(to io.Writer, cells ...string) {
	for _, cell := range cells {
		fmt.Fprintf(to, "| %s ", strings.ReplaceAll(cell, "|", "\\|"))
	}
	fmt.Fprintln(to, "|")
}

// writeSections writes the intro, links to the sections, and the sections.
func writeSections(to io.Writer, intro, sections string) error {
	var links []string
	for _, heading := range sectionHeading.FindAllStringSubmatch(sections, -1) {
		links = append(links, "["+heading[1]+"](#"+anchor(heading[1])+")")
	}
	_, err := io.WriteString(to, generated+intro+"\n"+strings.Join(links, " · ")+"\n"+sections)
	return err
}

// anchor returns the name under which a heading is linked.
func anchor(heading string) string {
	return strings.NewReplacer(" ", "-", ",", "").Replace(strings.ToLower(heading))
}
