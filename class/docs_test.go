package class

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// TestExamplesOfTheDocumentation checks that the tables of docs/classes/PERIODS.md and SEASONS.md are what
// the code makes.
func TestExamplesOfTheDocumentation(t *testing.T) {
	doc, err := os.ReadFile("../docs/classes/PERIODS.md")
	seasons, err2 := os.ReadFile("../docs/classes/SEASONS.md")
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	doc = append(doc, seasons...)
	for name, table := range map[string]string{"periods": periodTable(t), "days": dayTable(t), "boards": boardTable(t), "starts": startsTable(t)} {
		if !strings.Contains(string(doc), table) {
			t.Errorf("docs/classes does not have the table of %s, which is now\n%s", name, table)
		}
	}
}

const clock = "2006-01-02 15:04"

// periodTable shows the period of one instant for each kind of period.
func periodTable(t *testing.T) string {
	var b strings.Builder
	b.WriteString("| `period` | tag | from | until | next tag |\n|---|---|---|---|---|\n")
	for _, period := range []string{"1m", "15m", "30m", "1h", "6h", "day", "week", "month", "year"} {
		c := calendar(t, period, "Asia/Shanghai")
		p, err := c.At(instant(t, "2026-11-22T17:20:30+08:00"))
		next, err2 := c.Next(p)
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		fmt.Fprintf(&b, "| `%s` | `%s` | %s | %s | `%s` |\n", period, p.Tag, p.Start.Format(clock), p.End.Format(clock), next.Tag)
	}
	return b.String()
}

// dayTable shows unusual days by their first and last hour.
func dayTable(t *testing.T) string {
	var b strings.Builder
	b.WriteString("| zone | day | begins | ends | hours | last tag of `1h` | of `30m` |\n|---|---|---|---|---|---|---|\n")
	for _, c := range [][2]string{{"Europe/Berlin", "20260329"}, {"Europe/Berlin", "20261025"}, {"America/Sao_Paulo", "20171015"}, {"Asia/Beirut", "20260329"},
		{"Asia/Beirut", "20261024"}, {"Australia/Lord_Howe", "20261004"}, {"Asia/Kathmandu", "20261122"}} {
		day, err := calendar(t, "day", c[0]).Parse(c[1])
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "| %s | `%s` | %s | %s | %v |", c[0], day.Tag, day.Start.Format("15:04 -0700"), day.End.Format("2006-01-02 15:04 -0700"), day.End.Sub(day.Start).Hours())
		for _, period := range []string{"1h", "30m"} {
			last, err := calendar(t, period, c[0]).At(day.End.Add(-1))
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&b, " `%s` |", last.Tag)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// startsTable shows days that begin at some time of a clock that is set.
func startsTable(t *testing.T) string {
	var b strings.Builder
	b.WriteString("| zone | `starts` | day | begins | ends | hours |\n|---|---|---|---|---|---|\n")
	for _, c := range [][3]string{{"Asia/Shanghai", "05:00", "20261122"}, {"Europe/Berlin", "05:00", "20260328"}, {"Europe/Berlin", "05:00", "20261024"}, {"Europe/Berlin", "02:30", "20260329"}, {"Europe/Berlin", "02:30", "20261025"}} {
		at, err := time.Parse("15:04", c[1])
		if err != nil {
			t.Fatal(err)
		}
		day, err := starting(t, "day", c[0], at.Sub(at.Truncate(24*time.Hour))).Parse(c[2])
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "| %s | `%s` | `%s` | %s | %s | %v |\n", c[0], c[1], day.Tag, day.Start.Format("2006-01-02 15:04 -0700"), day.End.Format("2006-01-02 15:04 -0700"), day.End.Sub(day.Start).Hours())
	}
	return b.String()
}

// boardTable shows ids.
func boardTable(t *testing.T) string {
	var b strings.Builder
	b.WriteString("| class | `board` | `period` | id |\n|---|---|---|---|\n")
	for _, c := range [][3]string{{"gift-half-hour", "gift:{zone}:{period}", "30m"}, {"gift-day", "giftday:{zone}:{period}", "day"}, {"fans", "fans_{app}_{host}", "none"}} {
		class := newClass(t, c[0], c[1], c[2])
		dims := map[string]string{}
		for i, name := range class.Dimensions() {
			dims[name] = []string{"7", "88"}[i]
		}
		board, err := class.At(dims, instant(t, "2026-11-22T17:20:30+08:00"))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "| %s | `%s` | `%s` | `%s` |\n", c[0], c[1], c[2], board.ID)
	}
	return b.String()
}
