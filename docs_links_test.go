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
	mdNoProse = regexp.MustCompile("(?ms)^```.*?^```$|^\\|[^\n]*$")
	mdDropped = regexp.MustCompile(`[^\pL\pN_ -]`)
)

// TestDocumentationLinks checks that every relative link of the documentation leads
// to a file, and to a heading where it names one.
func TestDocumentationLinks(t *testing.T) {
	for _, file := range pages(t, "*.md", "docs/*.md", "docs/*/*.md", "examples/*/*.md") {
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

// TestPagesAreShort checks that no page takes more than five minutes: its text without
// tables and code, which are looked up.
func TestPagesAreShort(t *testing.T) {
	const words = 1300
	for _, file := range pages(t, "docs/*.md", "docs/*/*.md") {
		text := read(t, file)
		if strings.HasPrefix(text, "<!-- Made from the code") { // looked up
			continue
		}
		if n := len(strings.Fields(mdNoProse.ReplaceAllString(text, ""))); n > words {
			t.Errorf("%s has %d words besides tables and code, more than %d: split it by what readers want to do", file, n, words)
		}
	}
}

// TestNothingStandsTwice: a merge of two wordings leaves lines, or beginnings of points, twice in a page.
func TestNothingStandsTwice(t *testing.T) {
	for _, file := range pages(t, "*.md", "docs/*.md", "docs/*/*.md") {
		seen := map[string]bool{}
		text := read(t, file)
		if strings.HasPrefix(text, "<!-- Made from the code") {
			continue
		}
		for line := range strings.Lines(mdNoProse.ReplaceAllString(text, "")) {
			if line = strings.TrimSpace(line); len(line) > 40 && seen[line] && !strings.HasPrefix(line, "<!--") {
				t.Errorf("%s has twice: %s", file, line)
			}
			seen[line] = true
		}
	}
}

// TestFirstPagesAreShort checks that a newcomer reads little first: the five pages, and those to which they lead at once,
// that is before their section "Further".
func TestFirstPagesAreShort(t *testing.T) {
	const words, ofFive = 8800, 4000
	all, five := []string{"README.md", "docs/START.md", "docs/HTTP.md", "docs/CLASSES.md", "docs/KUBERNETES.md"}, 0
	for _, page := range slices.Clone(all) {
		five += len(strings.Fields(read(t, page)))
		first, _, ok := strings.Cut(read(t, page), "\n## Further\n")
		if !ok {
			t.Errorf("%s has no section Further", page)
		}
		for _, link := range mdLink.FindAllStringSubmatch(first, -1) {
			to := path.Join(path.Dir(page), link[1])
			if strings.HasSuffix(link[1], ".md") && !strings.Contains(link[1], ":") && !slices.Contains(all, to) {
				all = append(all, to)
			}
		}
	}
	sum := 0
	for _, page := range all {
		n := len(strings.Fields(read(t, page)))
		t.Logf("%5d %s", n, page)
		sum += n
	}
	if sum > words || five > ofFive {
		t.Errorf("%d words are to be read first, of the five pages %d; at most %d, %d", sum, five, words, ofFive)
	}
}

// TestEveryPageIsListed checks that docs/README.md, or a page that it leads to, leads to each page.
func TestEveryPageIsListed(t *testing.T) {
	listed, next := map[string]bool{}, []string{"docs/README.md"}
	for len(next) > 0 {
		page := next[0]
		next = next[1:]
		if listed[page] || !strings.HasSuffix(page, ".md") {
			continue
		}
		listed[page] = true
		for _, link := range mdLink.FindAllStringSubmatch(read(t, page), -1) {
			if link[1] != "" && !strings.Contains(link[1], ":") {
				next = append(next, path.Join(path.Dir(page), link[1]))
			}
		}
	}
	for _, page := range pages(t, "docs/*.md", "docs/*/*.md") {
		if !listed[page] {
			t.Errorf("no page leads from docs/README.md to %s", page)
		}
	}
}

// pages returns the files that match any pattern.
func pages(t *testing.T, patterns ...string) (files []string) {
	t.Helper()
	for _, pattern := range patterns {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %q, %v", pattern, found, err)
		}
		files = append(files, found...)
	}
	return files
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
