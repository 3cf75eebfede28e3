package bench

import (
	"encoding/json"
	"fmt"
	"html"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"rankcache/internal/app"
)

func newBenchChartCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "chart FILE",
		Short: "Draw the JSON of bench read as an SVG bar chart",
		Long: `Draw the CPU time of a request, row by row, from the JSON that bench read -o json
has printed. The picture is readable on light and on dark ground.`,
		Example: "  rankcache-lab bench chart read.json > read.svg",
		Args:    app.OneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			report, err := readReportFile(args[0])
			if err != nil {
				return err
			}
			return drawChart(cmd.OutOrStdout(), report)
		},
	}
}

func readReportFile(path string) (*readReport, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the report: %w", err)
	}
	var report readReport
	if err := json.Unmarshal(data, &report); err != nil {
		return nil, fmt.Errorf("%s is not what bench read -o json prints: %w", path, err)
	}
	if len(report.Rows) == 0 {
		return nil, fmt.Errorf("%s has no rows: draw what bench read -o json has printed", path)
	}
	return &report, nil
}

// Measures of the chart, in pixels.
const (
	chartWidth = 860
	chartLeft  = 250 // where the bars begin
	chartRight = 80  // room for the figure behind the longest bar
	chartTop   = 64
	barHeight  = 11
	barGap     = 10 // between two rows
)

const chartStyle = `<style>
text{font:13px system-ui,sans-serif;fill:#1f2328}
.small{font-size:11px}.head{font-size:15px;font-weight:600}
.tcp{fill:#0969da}.unix{fill:#54aeff}.tcp.other{fill:#6e7781}.unix.other{fill:#afb8c1}
@media(prefers-color-scheme:dark){
text{fill:#e6edf3}
.tcp{fill:#2f81f7}.unix{fill:#79c0ff}.tcp.other{fill:#8b949e}.unix.other{fill:#57606a}}
</style>
`

// drawChart draws two bars a row, TCP and Unix socket, all to one scale.
func drawChart(to io.Writer, report *readReport) error {
	var bars strings.Builder
	longest := 0.0
	for _, row := range report.Rows {
		longest = max(longest, row.CPU)
	}
	y, last := chartTop, ""
	for _, row := range report.Rows {
		if row.Name != last {
			if last != "" {
				y += barGap
			}
			last = row.Name
			fmt.Fprintf(&bars, `<text x="%d" y="%d" text-anchor="end">%s</text>`+"\n", chartLeft-8, y+barHeight, html.EscapeString(row.Name))
		}
		drawBar(&bars, row, y, row.CPU/max(longest, 1e-9)*(chartWidth-chartLeft-chartRight))
		y += barHeight + 1
	}
	_, err := fmt.Fprintf(to, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" role="img">
<title>Server CPU time of one request</title>
%s<text class="head" x="8" y="22">Server CPU time of one request, µs (less is better)</text>
<text class="small" x="8" y="42">%s; %d connections, %d members; the upper bar is TCP on loopback, the lower one a Unix socket</text>
%s</svg>
`, chartWidth, y+barGap, chartStyle, html.EscapeString(report.Machine.CPU), report.Settings.Connections, report.Settings.Members, bars.String())
	return err
}

func drawBar(to io.Writer, row readRow, y int, width float64) {
	class := "unix"
	if row.Transport == "tcp" {
		class = "tcp"
	}
	if !strings.HasPrefix(row.Name, "rankcache ") {
		class += " other"
	}
	fmt.Fprintf(to, `<rect class="%s" x="%d" y="%d" width="%.1f" height="%d" rx="2"/>`+"\n", class, chartLeft, y, max(width, 1), barHeight)
	fmt.Fprintf(to, `<text class="small" x="%.1f" y="%d">%.1f</text>`+"\n", chartLeft+width+5, y+barHeight-1, row.CPU)
}
