package faults

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestWriteTableKeepsTheRestOfThePage(t *testing.T) {
	file := filepath.Join(t.TempDir(), "page.md")
	page := "before\n" + tableBegin + "\nlast week's\n" + tableEnd + "\nafter\n"
	if err := os.WriteFile(file, []byte(page), 0o644); err != nil {
		t.Fatal(err)
	}
	row := Result{Fault: "Redis sulks", Saw: [3]string{"local", "hot", "503"}, Oldest: 1500 * time.Millisecond, Answers: 7, Wrong: 1, Failed: 3}
	for range 2 { // a second run replaces what the first has written
		if err := WriteTable(file, []Result{row}); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	got := string(text)
	want := "| Redis sulks | local | hot | 503 | 1.5 s | 0.0 s | 7 | 1 | 3 |\n"
	if !strings.HasPrefix(got, "before\n"+tableBegin) || !strings.HasSuffix(got, tableEnd+"\nafter\n") ||
		strings.Count(got, want) != 1 || strings.Contains(got, "last week") {
		t.Errorf("the page became\n%s", got)
	}
	if err := os.WriteFile(file, []byte("no markers"), 0o644); err != nil {
		t.Fatal(err)
	}
	if WriteTable(file, nil) == nil {
		t.Error("a page without markers was written")
	}
}
