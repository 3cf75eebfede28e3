package sidecar_test

import (
	"bytes"
	"compress/gzip"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"rankcache/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

var record = flag.Bool("record", false, "write the recorded answers anew")

const recordedFile = "testdata/answers.txt.gz"

// TestRecordedAnswers compares the answers to some thousand requests of each protocol with
// those that were recorded: what goes over the wire is a contract. Times, ports and what
// hashes times vary and are left out. go test -run TestRecordedAnswers ./sidecar -record
// writes them anew, for a change that is meant.
func TestRecordedAnswers(t *testing.T) {
	w := newRecordedWorld(t)
	got := make(map[string]string)
	for _, r := range w.requests() {
		if _, twice := got[r.name]; twice {
			t.Fatalf("two requests are named %s", r.name)
		}
		got[r.name] = r.answer(t)
	}
	if *record {
		writeRecorded(t, got)
	}
	want := readRecorded(t)
	differ := 0
	for name, answer := range want {
		switch other, ok := got[name]; {
		case !ok:
			t.Errorf("%s: is not asked any more", name)
		case other != answer:
			if differ++; differ <= 20 {
				t.Errorf("%s\ngot  %.3000s\nwant %.3000s", name, other, answer)
			}
		}
	}
	if differ > 20 {
		t.Errorf("%d of %d answers differ", differ, len(want))
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("%s: has no recorded answer", name)
		}
	}
	if len(want) < 3000 {
		t.Errorf("only %d answers are recorded", len(want))
	}
}

// The file has for each request a line with its name behind a form feed, and then the answer.
const separator = "\f"

func writeRecorded(t *testing.T, answers map[string]string) {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for name := range answers {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(z, "%s%s\n%s", separator, name, answers[name])
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(recordedFile, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

func readRecorded(t *testing.T) map[string]string {
	f, err := os.Open(recordedFile)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	answers := make(map[string]string)
	for part := range strings.SplitSeq(string(all), separator) {
		if name, answer, ok := strings.Cut(part, "\n"); ok {
			answers[name] = answer
		}
	}
	return answers
}
