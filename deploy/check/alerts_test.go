package check

import (
	"bytes"
	"cmp"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// recordName is what a recording rule is called.
var recordName = regexp.MustCompile(`\brankcache:\w+:\w+`)

// rules returns the alerts, checked as promtool check rules does. What they read of recording
// rules is replaced by the expressions of these.
func rules(t *testing.T) (alerts []rulefmt.Rule) {
	t.Helper()
	exprs := map[string]string{}
	all := allRules(t)
	for _, r := range all {
		if r.Record != "" && (!recordName.MatchString(r.Record) || exprs[r.Record] != "") {
			t.Errorf("%s is recorded twice, or has no name as rankcache:what:how", r.Record)
		}
		exprs[r.Record] = r.Expr
	}
	for _, r := range all {
		if r.Alert == "" {
			continue
		}
		r.Expr = recordName.ReplaceAllStringFunc(r.Expr, func(name string) string {
			if exprs[name] == "" {
				t.Errorf("%s reads %s, which is not recorded", r.Alert, name)
			}
			return "(" + exprs[name] + ")"
		})
		alerts = append(alerts, r)
	}
	return alerts
}

func allRules(t *testing.T) (all []rulefmt.Rule) {
	t.Helper()
	for _, r := range buildWith(t, k8s+"/components/alerts").Resources() {
		if r.GetKind() != "PrometheusRule" {
			continue
		}
		data, err := r.MarshalJSON() // JSON is YAML
		var object struct{ Spec json.RawMessage }
		if err == nil {
			err = json.Unmarshal(data, &object)
		}
		if err != nil {
			t.Fatal(err)
		}
		groups, errs := rulefmt.Parse(object.Spec, false, model.UTF8Validation, promQL, slog.New(slog.DiscardHandler))
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		for _, g := range groups.Groups {
			if time.Duration(g.Interval) != evaluateEvery {
				t.Errorf("group %s is evaluated every %v, the tests do so every %v", g.Name, g.Interval, evaluateEvery)
			}
			all = append(all, g.Rules...)
		}
	}
	if len(all) == 0 {
		t.Fatal("no alerts")
	}
	return all
}

// alertCase is a moment of some series, and how many instances of an alert fire
// at it.
type alertCase struct {
	Name   string
	Every  time.Duration // between two samples; 0: scrapeEvery
	At     time.Duration
	Fires  int
	Series []string
}

// readCases returns the cases of each alert.
func readCases(t *testing.T) map[string][]alertCase {
	t.Helper()
	var list []struct {
		Alert string
		Cases []alertCase
	}
	data, err := os.ReadFile("testdata/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	if err := decoder.Decode(&list); err != nil {
		t.Fatal(err)
	}
	cases := map[string][]alertCase{}
	for _, one := range list {
		cases[one.Alert] = one.Cases
	}
	return cases
}

func TestAlertsFireWhenTheyShould(t *testing.T) {
	cases := readCases(t)
	for _, rule := range rules(t) {
		fired, quiet := false, false
		for _, c := range cases[rule.Alert] {
			n := firing(t, rule.Expr, time.Duration(rule.For), parseSeries(t, c.Series, cmp.Or(c.Every, scrapeEvery)), c.At)
			if n != c.Fires {
				t.Errorf("%s, %s: %d fire at %v, want %d", rule.Alert, c.Name, n, c.At, c.Fires)
			}
			fired, quiet = fired || c.Fires > 0, quiet || c.Fires == 0
		}
		if !fired || !quiet {
			t.Errorf("%s: want a case in which it fires and one in which it does not", rule.Alert)
		}
	}
}

// TestShareOfEachTier: no alert reads that.
func TestShareOfEachTier(t *testing.T) {
	s := parseSeries(t, []string{`rankcache_requests_total{job="j",pod="a",route="top",result="ok",source="local"} 0+50x10`,
		`rankcache_requests_total{job="j",pod="b",route="member",result="ok",source="local"} 0+25x10`,
		`rankcache_requests_total{job="j",pod="b",route="top",result="ok",source="redis"} 0+25x10`,
		`rankcache_requests_total{job="j",pod="b",route="openapi",result="ok",source=""} 0+900x10`}, scrapeEvery)
	for _, r := range allRules(t) {
		if r.Record != "rankcache:request_source:ratio_rate5m" {
			continue
		}
		if all, local := firing(t, r.Expr, 0, s, 8*time.Minute), firing(t, "("+r.Expr+`) == 0.75`, 0, s, 8*time.Minute); all != 2 || local != 1 {
			t.Errorf("%d shares, %d of three quarters; want 2 and 1", all, local)
		}
		return
	}
	t.Error("not recorded")
}

func TestEveryAlertHasItsRunbookAndEveryRunbookItsAlert(t *testing.T) {
	index, err := os.ReadFile("../../docs/RUNBOOKS.md")
	if err != nil {
		t.Fatal(err)
	}
	page := pagesOfRunbooks(t, string(index))
	for _, rule := range rules(t) {
		if want := runbooks(t) + "/runbooks/" + page[rule.Alert] + "#" + strings.ToLower(rule.Alert); rule.Annotations["runbook_url"] != want {
			t.Errorf("%s points at %s, want %s", rule.Alert, rule.Annotations["runbook_url"], want)
		}
		if s := rule.Labels["severity"]; s != "critical" && s != "warning" || rule.Annotations["summary"] == "" {
			t.Errorf("%s has severity %q and summary %q", rule.Alert, s, rule.Annotations["summary"])
		}
		delete(page, rule.Alert)
	}
	for alert, file := range page {
		t.Errorf("%s has the runbook of %s, which is no alert", file, alert)
	}
}

// pagesOfRunbooks returns the page of each alert's runbook, which has all parts, and to which the index leads.
func pagesOfRunbooks(t *testing.T, index string) map[string]string {
	t.Helper()
	page := map[string]string{}
	files, err := filepath.Glob("../../docs/runbooks/*.md")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, section := range strings.Split(string(text), "\n## ")[1:] {
			alert, _, _ := strings.Cut(section, "\n")
			if strings.HasPrefix(alert, "Rankcache") {
				page[alert] = filepath.Base(file)
			}
			if link := "](runbooks/" + filepath.Base(file) + "#" + strings.ToLower(alert) + ")"; page[alert] != "" && !strings.Contains(index, link) {
				t.Errorf("RUNBOOKS.md has no link %s", link)
			}
			for _, part := range []string{"**Symptom.**", "**Cause.**", "**Look.**", "**Do.**"} {
				if page[alert] != "" && !strings.Contains(section, part) {
					t.Errorf("%s: %s has no %s", file, alert, part)
				}
			}
		}
	}
	return page
}

// runbooks returns where the pages are read, which is set in one place.
func runbooks(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(k8s + "/components/alerts/runbooks.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var config struct{ Data struct{ URL string } }
	if err := yaml.Unmarshal(data, &config); err != nil || config.Data.URL == "" {
		t.Fatalf("runbooks.yaml: %+v, %v", config, err)
	}
	return config.Data.URL
}

// TestRunbooksOfYourOwn: what docs/kubernetes/COMPONENTS.md tells to write into an overlay.
func TestRunbooksOfYourOwn(t *testing.T) {
	const more = `patches:
  - target: {kind: PrometheusRule, name: rankcache}
    patch: |-
      - {op: add, path: /metadata/annotations, value: {runbooks: "https://docs.example.org/rankcache/v1.2.3"}}
replacements:
  - source: {kind: PrometheusRule, name: rankcache, fieldPath: metadata.annotations.runbooks}
    targets:
      - select: {kind: PrometheusRule, name: rankcache}
        options: {delimiter: /runbooks/}
        fieldPaths: [spec.groups.*.rules.*.annotations.runbook_url]
`
	docs, err := os.ReadFile("../../docs/kubernetes/COMPONENTS.md")
	if err != nil || !strings.Contains(string(docs), more) {
		t.Errorf("docs/kubernetes/COMPONENTS.md has other text (%v):\n%s", err, more)
	}
	text, err := buildText(t, k8s+"/base", k8s+"/components/alerts", more).AsYaml()
	if n := strings.Count(string(text), "runbook_url: https://docs.example.org/rankcache/v1.2.3/runbooks/"); err != nil || n != len(rules(t)) {
		t.Errorf("%d of %d alerts point at the overlay's runbooks (%v)", n, len(rules(t)), err)
	}
}
