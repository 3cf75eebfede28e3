package bench

import (
	"errors"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

func newBenchChartCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "chart PAGE...",
		Short: "Draw the charts of Markdown pages from the tables behind them",
		Long: `Draw a bar chart as SVG from each table that follows an image of the folder charts;
make docs draws those of docs/BENCHMARKS.md and docs/speed. A column whose heading ends in a unit, such
as "TCP (µs)", is drawn, of a range such as "2.4 to 4.3" its end. The heading "goal (µs)" is a
mark: what is beyond it is missed. Bold rows and headings that begin with "ours" are ours.
The pictures are readable on light and on dark ground.`,
		Example: "  rankcache-lab bench chart docs/BENCHMARKS.md docs/speed/*.md",
		Args:    cobra.MinimumNArgs(1),
		RunE:    func(_ *cobra.Command, args []string) error { return drawCharts(args) },
	}
}

// drawCharts writes the pictures to where the pages have them.
func drawCharts(pages []string) (failed error) {
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			return errors.Join(failed, fmt.Errorf("read the page: %w", err))
		}
		charts, err := parseCharts(string(text))
		for _, c := range charts {
			file := filepath.Join(filepath.Dir(page), c.file)
			err = errors.Join(err, os.MkdirAll(filepath.Dir(file), 0o750), os.WriteFile(file, []byte(c.draw()), 0o600))
		}
		failed = errors.Join(failed, err)
	}
	return failed
}

// chart is a table and the picture that is made of it.
type chart struct {
	title, file, unit string
	goal              int   // the column of goals; 0: none
	bars              []int // the columns that are drawn
	head              []string
	rows              [][]string
}

var (
	chartImage  = regexp.MustCompile(`^!\[(.*)\]\(((?:\.\./)?charts/[a-z-]+\.svg)\)$`)
	chartUnit   = regexp.MustCompile(`^(.+) \(([^()]+)\)$`)
	chartFigure = regexp.MustCompile(`\d[\d,]*(\.\d+)?`)
)

// parseCharts returns the charts of a page.
func parseCharts(page string) (charts []*chart, err error) {
	var c *chart // the one whose table is awaited or read
	for line := range strings.Lines(page) {
		line = strings.TrimSpace(line)
		if m := chartImage.FindStringSubmatch(line); m != nil {
			c = &chart{title: html.UnescapeString(m[1]), file: m[2]}
			charts = append(charts, c)
		} else if strings.HasPrefix(line, "|") && c != nil {
			c.add(strings.Split(strings.Trim(line, "|"), "|"))
		} else if c != nil && c.head != nil {
			c = nil
		}
	}
	for _, c := range charts {
		if len(c.bars) == 0 || len(c.rows) == 0 {
			err = errors.Join(err, fmt.Errorf("%s: no table with a unit in a heading, such as \"TCP (µs)\", follows the image", c.file))
		}
	}
	return charts, err
}

// add takes one line of the table.
func (c *chart) add(cells []string) {
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	switch {
	case c.head == nil:
		c.setHead(cells)
	case !strings.HasPrefix(cells[0], "---") && len(cells) == len(c.head):
		c.rows = append(c.rows, cells)
	}
}

func (c *chart) setHead(cells []string) {
	c.head = cells
	for i, cell := range cells {
		m := chartUnit.FindStringSubmatch(cell)
		switch {
		case m == nil:
		case m[1] == "goal":
			c.goal = i
		default:
			c.head[i], c.unit = m[1], m[2]
			c.bars = append(c.bars, i)
		}
	}
}

// figure returns the last figure of a cell.
func figure(cell string) (float64, bool) {
	found := chartFigure.FindAllString(cell, -1)
	if len(found) == 0 {
		return 0, false
	}
	f, err := strconv.ParseFloat(strings.ReplaceAll(found[len(found)-1], ",", ""), 64)
	return f, err == nil
}

// Measures of a chart, in pixels.
const (
	chartWidth = 860
	chartRight = 120 // room for the figure behind the longest bar
	charWidth  = 7
	barHeight  = 12
	barGap     = 9 // between two rows
)

const chartStyle = `<style>
text{font:13px system-ui,-apple-system,"Segoe UI","DejaVu Sans",sans-serif;fill:#1f2328}
.small{font-size:11px}.head{font-size:15px;font-weight:600}.bold{font-weight:600}
.ours{fill:#0969da}.other{fill:#6e7781}.missed{fill:#cf222e}.second{opacity:.6}
.goal{stroke:#1a7f37;stroke-width:2}
@media(prefers-color-scheme:dark){
text{fill:#e6edf3}
.ours{fill:#4493f8}.other{fill:#8b949e}.missed{fill:#f85149}
.goal{stroke:#3fb950}}
</style>
`

// draw returns the picture: one bar a row and column, all to one scale.
func (c *chart) draw() string {
	left, longest := 0, 0.0
	for _, row := range c.rows {
		left = max(left, 8+charWidth*utf8.RuneCountInString(row[0])) // with the asterisks of bold type, which is wider
		for i, cell := range row {
			if f, ok := figure(cell); ok && (i == c.goal && i > 0 || slices.Contains(c.bars, i)) {
				longest = max(longest, f)
			}
		}
	}
	left += 16
	scale, y := float64(chartWidth-left-chartRight)/max(longest, 1e-9), 58
	var body strings.Builder
	for _, row := range c.rows {
		c.drawRow(&body, row, left, y, scale)
		y += len(c.bars)*(barHeight+1) + barGap
	}
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" role="img">
<title>%s</title>
%s<text class="head" x="8" y="22">%[3]s</text>
<text class="small" x="8" y="42">%[5]s</text>
%[6]s</svg>
`, chartWidth, y, html.EscapeString(c.title), chartStyle, html.EscapeString(c.legend()), body.String())
}

// legend tells what the bars are.
func (c *chart) legend() string {
	text := c.unit + ", " + c.head[c.bars[0]]
	if len(c.bars) > 1 {
		text = c.unit + "; upper bar: " + c.head[c.bars[0]] + ", lower bar: " + c.head[c.bars[1]]
	}
	if c.goal > 0 {
		text += "; the green line is the goal, what is beyond it is red"
	}
	return text
}

func (c *chart) drawRow(to *strings.Builder, row []string, left, y int, scale float64) {
	bold, height := "", len(c.bars)*(barHeight+1)-1
	if strings.HasPrefix(row[0], "**") {
		bold = ` class="bold"`
	}
	fmt.Fprintf(to, `<text%s x="%d" y="%d" text-anchor="end">%s</text>`+"\n", bold, left-8, y+height/2+5, html.EscapeString(plain(row[0])))
	goal := 0.0
	if c.goal > 0 {
		goal, _ = figure(row[c.goal])
	}
	for n, i := range c.bars {
		f, ok := figure(row[i])
		if !ok {
			continue
		}
		class := "other"
		if bold != "" || strings.HasPrefix(c.head[i], "ours") {
			class = "ours"
		}
		if goal > 0 && f > goal {
			class = "missed"
		}
		if n > 0 {
			class += " second"
		}
		at := y + n*(barHeight+1)
		fmt.Fprintf(to, `<rect class="%s" x="%d" y="%d" width="%.1f" height="%d" rx="2"/>`+"\n", class, left, at, max(f*scale, 1), barHeight)
		text := max(f, goal)*scale + float64(left) + 6
		fmt.Fprintf(to, `<text class="small" x="%.1f" y="%d">%s</text>`+"\n", text, at+barHeight-2, html.EscapeString(plain(row[i])))
	}
	if goal > 0 {
		fmt.Fprintf(to, `<path class="goal" d="M%.1f %dv%d"/>`+"\n", float64(left)+goal*scale, y-2, height+4)
	}
}

// plain returns the text of a cell without bold type and code.
func plain(cell string) string { return strings.NewReplacer("**", "", "`", "").Replace(cell) }
