// Package docs (no public API) has the pages that the program itself shows.
package docs

import (
	"embed"
	"io/fs"
	"strings"
)

//go:embed RUNBOOKS.md runbooks/*.md
var pages embed.FS

// Runbooks is RUNBOOKS.md, and behind it the sections of runbooks/*.md: what to do about each alert.
var Runbooks = runbooks(pages)

func runbooks(pages fs.FS) string {
	var all strings.Builder
	areas, _ := fs.Glob(pages, "runbooks/*.md") // fails for bad patterns only
	for i, name := range append([]string{"RUNBOOKS.md"}, areas...) {
		text, err := fs.ReadFile(pages, name)
		if err != nil {
			panic(err) // it is in the binary
		}
		if _, sections, ok := strings.Cut(string(text), "\n## "); ok && i > 0 {
			text = []byte("\n## " + sections)
		}
		all.Write(text)
	}
	return all.String()
}
