package faults

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// Tally counts what callers saw. All methods may be called concurrently.
type Tally struct {
	// Due reports whether the question must be answered while the fault lasts,
	// because an origin or a copy that may be served exists; nil: all are. Before
	// the fault and after the recovery all are.
	Due func(*Question) bool

	mu     sync.Mutex
	asked  [phases]int
	seen   map[sight]int
	oldest map[string]time.Duration // by source, while the fault lasted
	failed []string                 // reads that were due
	spared int                      // reads that failed and were not
}

// sight is what was seen while the fault lasted.
type sight struct{ tier, what string }

// NewTally returns an empty tally.
func NewTally(due func(*Question) bool) *Tally {
	return &Tally{Due: due, seen: map[sight]int{}, oldest: map[string]time.Duration{}}
}

func (t *Tally) count(a *Ask, r *Reply) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.asked[a.Phase]++
	during := a.Phase == Faulty || a.Phase == Recovering
	if during {
		t.seen[sight{a.Tier, r.what()}]++
		t.oldest[r.Source] = max(t.oldest[r.Source], r.Age)
	}
	switch {
	case !r.failed():
	case during && t.Due != nil && !t.Due(&a.Question):
		t.spared++
	default:
		t.failed = append(t.failed, fmt.Sprintf("%s, phase %d: %s of %s (%s): %v", time.Now().UTC().Format("15:04:05.000"), a.Phase, a.Kind, a.Board, a.Tier, r.Err))
	}
}

// what the caller saw, in a word.
func (r *Reply) what() string {
	switch {
	case r.Code == 0:
		return "no answer"
	case r.Code == 200:
		return r.Source
	case r.Code == 404:
		return "404"
	}
	return fmt.Sprint(r.Code)
}

// Asked returns how many answers have come to requests of a phase.
func (t *Tally) Asked(p Phase) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.asked[p]
}

// Seen returns how often callers of a tier saw something while the fault lasted.
func (t *Tally) Seen(tier, what string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.seen[sight{tier, what}]
}

// saw lists what the callers of one tier got while the fault lasted, most frequent
// first. That a member is not there is an answer like any other.
func (t *Tally) saw(tier string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	counts, sum := map[string]int{}, 0
	for s, n := range t.seen {
		if s.tier == tier && s.what != "404" {
			counts[s.what] += n
			sum += n
		}
	}
	whats := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(counts[b]-counts[a], strings.Compare(a, b))
	})
	if len(whats) == 1 {
		return whats[0]
	}
	for i, what := range whats {
		whats[i] = fmt.Sprintf("%s %s", what, share(counts[what], sum))
	}
	return strings.Join(whats, ", ")
}

func share(n, of int) string {
	if percent := 100 * n / of; percent > 0 {
		return fmt.Sprintf("%d %%", percent)
	}
	return "<1 %"
}

// Result is what one row has measured: a line of the table.
type Result struct {
	Fault     string
	Saw       [3]string     // by readers of local, hot and small boards
	Oldest    time.Duration // local or hot answer
	Recovered time.Duration
	Answers   int // judged
	Wrong     int
	Lost      int // of writes that Redis lost
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
	b.WriteString("| fault | super-hot board | hot board | small board | oldest copy served | recovered in | answers | wrong | failed |\n")
	b.WriteString("|---|---|---|---|---|---|---|---|---|\n")
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
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %s | %d | %d | %d |\n", name, r.Saw[0], r.Saw[1], r.Saw[2],
		seconds(r.Oldest), seconds(r.Recovered), r.Answers, r.Wrong, r.Failed)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
