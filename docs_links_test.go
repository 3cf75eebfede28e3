package rankcache_test

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	mdLink    = regexp.MustCompile(`\]\(([^)#\s]*)(?:#([^)\s]*))?\)`)
	mdHeading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	mdDropped = regexp.MustCompile(`[^\pL\pN_ -]`)
)

// TestDocumentationLinks checks that every relative link of the documentation leads
// to a file, and to a heading where it names one.
func TestDocumentationLinks(t *testing.T) {
	var files []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md", "examples/*/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %q, %v", pattern, found, err)
		}
		files = append(files, found...)
	}
	for _, file := range files {
		for _, link := range mdLink.FindAllStringSubmatch(read(t, file), -1) {
			target, anchor := link[1], link[2]
			if strings.Contains(target, ":") { // another host
				continue
			}
			to := file
			if target != "" {
				to = path.Join(path.Dir(file), target)
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s links to %s, which does not exist", file, to)
			} else if anchor != "" && !slices.Contains(anchors(read(t, to)), anchor) {
				t.Errorf("%s links to %s#%s, which has no such heading", file, to, anchor)
			}
		}
	}
}

// anchors returns the names under which the headings of a Markdown text are linked.
func anchors(text string) (names []string) {
	for _, heading := range mdHeading.FindAllStringSubmatch(text, -1) {
		names = append(names, strings.ReplaceAll(mdDropped.ReplaceAllString(strings.ToLower(heading[1]), ""), " ", "-"))
	}
	return names
}

func read(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
