package check

import (
	"slices"
	"strings"
	"testing"
)

// TestRankcacheContainersAreLockedUp asks of every rankcache container what a
// careful cluster asks.
func TestRankcacheContainersAreLockedUp(t *testing.T) {
	seen := 0
	for _, dir := range kustomizations(t) {
		for _, w := range workloads(t, build(t, dir)) {
			pod := w.Spec.Template.Spec
			for _, c := range append(pod.InitContainers, pod.Containers...) {
				if c.Name == "rankcache" {
					seen++
					c.check(t, dir+" "+w.Metadata.Name)
				}
			}
		}
	}
	if seen < 6 {
		t.Errorf("only %d rankcache containers seen", seen)
	}
}

func (c *container) check(t *testing.T, where string) {
	t.Helper()
	s := c.SecurityContext
	for what, ok := range map[string]bool{
		"runs as root":                isTrue(s.RunAsNonRoot) && s.RunAsUser != nil && *s.RunAsUser > 0,
		"can write to its root":       isTrue(s.ReadOnlyRootFilesystem),
		"may gain privileges":         s.AllowPrivilegeEscalation != nil && !*s.AllowPrivilegeEscalation,
		"keeps capabilities":          strings.Join(s.Capabilities.Drop, "") == "ALL",
		"has no seccomp profile":      s.SeccompProfile.Type == "RuntimeDefault",
		"has no memory limit":         c.Resources.Limits["memory"] != "",
		"is throttled by a CPU limit": c.Resources.Limits["cpu"] == "",
		"requests nothing":            c.Resources.Requests["memory"] != "" && c.Resources.Requests["cpu"] != "",
		"has no readiness probe":      c.ReadinessProbe != nil && c.ReadinessProbe.HTTPGet.Path == "/readyz",
		"has no liveness probe":       c.LivenessProbe != nil && c.LivenessProbe.HTTPGet.Path == "/livez",
		"has no tag on its image":     strings.Contains(c.Image, ":"),
	} {
		if !ok {
			t.Errorf("%s: rankcache %s", where, what)
		}
	}
	for _, v := range c.VolumeMounts {
		if v.SubPath != "" {
			t.Errorf("%s: %s is mounted by subPath, which never sees a change", where, v.Name)
		}
	}
}

func isTrue(b *bool) bool { return b != nil && *b }

func TestOurPodsGetNoTokenAndTimeToStop(t *testing.T) {
	for _, w := range workloads(t, build(t, k8s+"/overlays/everything")) {
		pod := w.Spec.Template.Spec
		if pod.AutomountServiceAccountToken == nil || *pod.AutomountServiceAccountToken {
			t.Errorf("%s gets a service-account token", w.Metadata.Name)
		}
		if pod.EnableServiceLinks == nil || *pod.EnableServiceLinks {
			t.Errorf("%s gets a variable for every Service, some of which may begin with RANKCACHE_", w.Metadata.Name)
		}
		if pod.TerminationGracePeriodSeconds == nil || *pod.TerminationGracePeriodSeconds <= drainSeconds {
			t.Errorf("%s is killed before it has drained", w.Metadata.Name)
		}
		for _, v := range pod.Volumes {
			if v.EmptyDir != nil && v.EmptyDir.SizeLimit == "" {
				t.Errorf("%s: %s has no size limit", w.Metadata.Name, v.Name)
			}
		}
	}
}

// drainSeconds is what plain.yaml sets, which is more than the default.
const drainSeconds = 20

func TestNativeSidecarGatesTheApp(t *testing.T) {
	pod := deployment(t, build(t, k8s+"/base"), "sample").Spec.Template.Spec
	c := find(pod.InitContainers, "rankcache")
	if c == nil || c.RestartPolicy != "Always" {
		t.Fatalf("no native sidecar: %+v", c)
	}
	p := c.StartupProbe
	if p == nil || p.HTTPGet.Path != "/startupz" || p.PeriodSeconds*p.FailureThreshold < 300 {
		t.Errorf("startup probe %+v, want /startupz with minutes of patience", p)
	}
}

// TestEndOfAPod: only a sidecar that is stopped after the app may end its drain
// early, and the sample waits until no Service sends new callers.
func TestEndOfAPod(t *testing.T) {
	for dir, early := range map[string]bool{k8s + "/base": true, k8s + "/overlays/everything": true, k8s + "/overlays/pre-1.29": false} {
		pod := deployment(t, build(t, dir), "sample").Spec.Template.Spec
		c := find(append(pod.InitContainers, pod.Containers...), "rankcache")
		if slices.Contains(c.Args, "--drain-early") != early {
			t.Errorf("%s: want --drain-early %v: %v", dir, early, c.Args)
		}
		hook := find(pod.Containers, "sample").Lifecycle.PreStop.Exec.Command
		if !slices.Equal(hook, []string{"/sample", "-sleep=5s"}) {
			t.Errorf("%s: the sample's preStop hook is %v", dir, hook)
		}
	}
}

func TestBefore129TheSidecarIsThePodsFirstContainer(t *testing.T) {
	w := deployment(t, build(t, k8s+"/overlays/pre-1.29"), "sample")
	pod := w.Spec.Template.Spec
	if len(pod.InitContainers) != 0 || len(pod.Containers) != 2 || pod.Containers[0].Name != "rankcache" || pod.Containers[0].RestartPolicy != "" {
		t.Fatalf("containers %+v, init containers %+v", pod.Containers, pod.InitContainers)
	}
	if hook := strings.Join(pod.Containers[0].Lifecycle.PostStart.Exec.Command, " "); !strings.HasPrefix(hook, "/rankcache wait ") {
		t.Errorf("the start hook is %q, which does not hold the app back", hook)
	}
	drain := ""
	for _, e := range pod.Containers[0].Env {
		if e.Name == "RANKCACHE_DRAIN" {
			drain = e.Value
		}
	}
	if drain != "20s" || *pod.TerminationGracePeriodSeconds <= drainSeconds {
		t.Errorf("drains for %q of %d s", drain, *pod.TerminationGracePeriodSeconds)
	}
}
