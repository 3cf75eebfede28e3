package app

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

var quotedCode = regexp.MustCompile("(?s)<!-- from (\\S+) -->\n```(\\w+)\n(.*?)```\n")

// TestClientsPageQuotesTheRecipes holds the code of docs/CLIENTS.md against the files from which
// it was taken. Only indentation that all its lines share may be gone.
func TestClientsPageQuotesTheRecipes(t *testing.T) {
	page, err := os.ReadFile("../../docs/CLIENTS.md")
	must(t, err)
	quotes, of := quotedCode.FindAllStringSubmatch(string(page), -1), map[string]int{}
	for _, q := range quotes {
		file, err := os.ReadFile("../../" + q[1])
		must(t, err)
		if of[q[2]]++; !hasLines(string(file), q[3]) {
			t.Errorf("%s no longer has\n%s", q[1], q[3])
		}
	}
	for _, language := range []string{"go", "java", "python", "js"} {
		if blocks := strings.Count(string(page), "```"+language+"\n"); blocks == 0 || blocks != of[language] {
			t.Errorf("%d of %d blocks in %s name their file", of[language], blocks, language)
		}
	}
}

// hasLines reports whether text has the lines of code, one after another, indented by the same.
func hasLines(text, code string) bool {
	first, _, _ := strings.Cut(code, "\n")
	for line := range strings.Lines(text) {
		indent, ok := strings.CutSuffix(line, first+"\n")
		if ok && strings.Trim(indent, " \t") == "" && strings.Contains(text, indented(code, indent)) {
			return true
		}
	}
	return false
}

// indented returns the code with the indentation before each line that is not empty.
func indented(code, by string) (text string) {
	for line := range strings.Lines(code) {
		if line != "\n" {
			line = by + line
		}
		text += line
	}
	return text
}
