package faults

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// Result is what one row has measured: a line of the table.
type Result struct {
	Fault     string
	Saw       [3]string     // by readers of local, hot and small boards
	Oldest    time.Duration // local or hot answer
	Recovered time.Duration
	Answers   int // judged
	Wrong     int
	Lost      int // of writes that Redis lost
	Ahead     int // that held later updates too
	Failed    int // reads that were due an answer
	Spared    int // reads that failed where nothing could have answered
	Note      string
}

const (
	tableBegin = "<!-- made by make faults -->"
	tableEnd   = "<!-- end -->"
)

// WriteTable puts the table between the markers of a Markdown file.
func WriteTable(file string, results []Result) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(text), tableBegin)
	_, after, ok2 := strings.Cut(rest, tableEnd)
	if !ok || !ok2 {
		return fmt.Errorf("%s: the markers %q and %q are not both there", file, tableBegin, tableEnd)
	}
	return os.WriteFile(file, []byte(before+tableBegin+"\n\n"+table(results)+"\n"+tableEnd+after), 0o600) // the page is there and keeps its mode
}

func table(results []Result) string {
	var b strings.Builder
	b.WriteString("| fault | super-hot board | hot board | small board | oldest copy served | recovered in | answers | wrong | ahead | failed |\n")
	b.WriteString("|---|---|---|---|---|---|---|---|---|---|\n")
	for _, r := range results {
		b.WriteString(r.line())
	}
	return b.String()
}

func (r *Result) line() string {
	name := r.Fault
	if r.Note != "" {
		name += " (" + r.Note + ")"
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %s | %d | %d | %d | %d |\n", name, r.Saw[0], r.Saw[1], r.Saw[2],
		seconds(r.Oldest), seconds(r.Recovered), r.Answers, r.Wrong, r.Ahead, r.Failed)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
