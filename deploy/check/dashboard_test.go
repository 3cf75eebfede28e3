package check

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
)

// dashboard is the part of a Grafana dashboard that is looked at.
type dashboard struct {
	UID, Title    string
	SchemaVersion int
	Panels        []panel
	Templating    struct{ List []struct{ Name string } }
}

type panel struct {
	ID                 int
	Title, Description string
	Type               string
	GridPos            struct{ X, Y, W, H int }
	Targets            []struct{ Expr, RefID string }
	FieldConfig        struct{ Defaults struct{ Unit string } }
}

var (
	metricName    = regexp.MustCompile(`\brankcache_[a-z_]+`)
	histogramPart = regexp.MustCompile(`_(bucket|sum|count)$`)
)

// TestEveryPartHasARow: what writers, ledger and controller do can be seen.
func TestEveryPartHasARow(t *testing.T) {
	rows := map[string]bool{}
	for _, p := range readDashboard(t).Panels {
		if p.Type == "row" {
			rows[p.Title] = true
		}
	}
	for _, want := range []string{"Writers", "Rewinds", "Ledger", "Controller and finals"} {
		if !rows[want] {
			t.Errorf("no row %q", want)
		}
	}
}

func readDashboard(t *testing.T) (d dashboard) {
	t.Helper()
	data, err := os.ReadFile(k8s + "/components/dashboard/rankcache.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestDashboardsQueriesAreGood(t *testing.T) {
	d := readDashboard(t)
	if d.UID == "" || d.Title == "" || len(d.Panels) < 8 {
		t.Errorf("dashboard %q %q with %d panels", d.UID, d.Title, len(d.Panels))
	}
	recorded := map[string]bool{}
	for _, r := range allRules(t) {
		recorded[r.Record] = true
	}
	metrics, err := os.ReadFile("../../docs/METRICS.md")
	if err != nil {
		t.Fatal(err)
	}
	ids := map[int]bool{}
	for _, p := range d.Panels {
		if ids[p.ID] || p.Title == "" || p.GridPos.W == 0 || p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("panel %d %q: want an id of its own, a title and a place", p.ID, p.Title)
		}
		ids[p.ID] = true
		if p.Type != "row" && (len(p.Targets) == 0 || p.Description == "" || p.FieldConfig.Defaults.Unit == "") {
			t.Errorf("panel %q: want a query, a description and a unit", p.Title)
		}
		for _, target := range p.Targets {
			expr := strings.NewReplacer("$__rate_interval", "5m", "$job", "j", "$board", "b").Replace(target.Expr)
			if _, err := promQL.ParseExpr(expr); err != nil {
				t.Errorf("panel %q: %s: %v", p.Title, target.Expr, err)
			}
			for _, name := range metricName.FindAllString(expr, -1) {
				if !strings.Contains(string(metrics), "`"+histogramPart.ReplaceAllString(name, "")+"`") {
					t.Errorf("panel %q reads %s, which is not in docs/METRICS.md", p.Title, name)
				}
			}
			for _, name := range recordName.FindAllString(expr, -1) {
				if !recorded[name] {
					t.Errorf("panel %q reads %s, which is not recorded", p.Title, name)
				}
			}
		}
	}
}
