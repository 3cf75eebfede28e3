package bench

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const chartPage = `
| not | drawn (s) |
|---|---|
| x | 1 |

![A & B: less is better](charts/a-b.svg)

Some text.

| row | goal (ms) | ours (ms) | other, in words |
|---|---|---|---|
| x < y | 5 | 0.7 to 4.1 | 9 |
| beyond | 5 | 1,005.5 **missed** | |
| ` + "`without`" + ` | | – | |

| another | table (ms) |
|---|---|
| z | 3 |
`

func TestChartDrawsTheTableBehindIt(t *testing.T) {
	charts, err := parseCharts(chartPage)
	if err != nil || len(charts) != 1 || len(charts[0].rows) != 3 {
		t.Fatalf("%+v, %v: want one chart of three rows", charts, err)
	}
	svg := charts[0].draw()
	for text, want := range map[string]int{"<rect": 2, `class="missed"`: 1, `class="ours"`: 1, `class="goal"`: 2, "x &lt; y": 1, ">0.7 to 4.1<": 1, ">1,005.5 missed<": 1, "A &amp; B": 2, `class="bold"`: 0, ">without<": 1} {
		if n := strings.Count(svg, text); n != want {
			t.Errorf("%s stands %d times, want %d\n%s", text, n, want, svg)
		}
	}
	for dec := xml.NewDecoder(strings.NewReader(svg)); ; {
		if _, err := dec.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

func TestChartWithoutTableIsRefused(t *testing.T) {
	for _, page := range []string{"![a](charts/a.svg)\n", "![a](charts/a.svg)\n\n| a | b |\n|---|---|\n| 1 | 2 |\n", "![a](charts/a.svg)\n\n| a | b (s) |\n|---|---|\n"} {
		if _, err := parseCharts(page); err == nil {
			t.Errorf("%q: no error", page)
		}
	}
}

// TestChartsOfTheDocumentation checks that the pictures are what the tables have.
func TestChartsOfTheDocumentation(t *testing.T) {
	pages, err := filepath.Glob("../../../docs/speed/*.md")
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, page := range append(pages, "../../../docs/BENCHMARKS.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		charts, err := parseCharts(string(text))
		if err != nil {
			t.Errorf("%s: %v", page, err)
		}
		for _, c := range charts {
			files = append(files, filepath.Base(c.file))
			if got, err := os.ReadFile(filepath.Join(filepath.Dir(page), c.file)); err != nil || string(got) != c.draw() {
				t.Errorf("%s: %s is not what the table gives (%v): run make docs and commit it", page, c.file, err)
			}
		}
	}
	there, err := filepath.Glob("../../../docs/charts/*")
	if slices.Sort(files); err != nil || len(there) != len(files) {
		t.Errorf("docs/charts has %v, the pages %v (%v)", there, files, err)
	}
}
