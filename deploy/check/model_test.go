package check

import (
	"encoding/json"
	"testing"

	"sigs.k8s.io/kustomize/api/resmap"
)

// These are the parts of a Deployment, and of what else has pods, that the tests look at.
type (
	workload struct {
		Kind     string
		Metadata meta
		Spec     struct {
			Replicas int
			Template struct {
				Metadata meta
				Spec     podSpec
			}
		}
	}
	meta struct {
		Name   string
		Labels map[string]string
	}
	podSpec struct {
		AutomountServiceAccountToken  *bool
		EnableServiceLinks            *bool
		TerminationGracePeriodSeconds *int
		InitContainers, Containers    []container
		TopologySpreadConstraints     []spreadConstraint
		Volumes                       []struct {
			Name      string
			EmptyDir  *struct{ SizeLimit string }
			ConfigMap struct{ Name string }
		}
	}
	container struct {
		Name, Image, RestartPolicy string
		Args                       []string
		Env                        []envVar
		StartupProbe, ReadinessProbe,
		LivenessProbe *probe
		Lifecycle struct {
			PostStart, PreStop struct{ Exec struct{ Command []string } }
		}
		Resources       struct{ Requests, Limits map[string]string }
		SecurityContext securityContext
		VolumeMounts    []struct{ Name, MountPath, SubPath string }
	}
	// spreadConstraint and disruptionBudget select pods by labels.
	spreadConstraint struct {
		TopologyKey, WhenUnsatisfiable string
		MaxSkew                        int
		LabelSelector                  labelSelector
	}
	disruptionBudget struct {
		Spec struct {
			MaxUnavailable, MinAvailable any
			Selector                     labelSelector
		}
	}
	labelSelector struct{ MatchLabels map[string]string }

	envVar struct{ Name, Value string }
	probe  struct {
		HTTPGet                         struct{ Path string }
		PeriodSeconds, FailureThreshold int
	}
	securityContext struct {
		RunAsNonRoot, ReadOnlyRootFilesystem, AllowPrivilegeEscalation *bool
		RunAsUser                                                      *int
		Capabilities                                                   struct{ Drop []string }
		SeccompProfile                                                 struct{ Type string }
	}
)

// workloads returns what has pods, of whatever kind.
func workloads(t *testing.T, built resmap.ResMap) (all []workload) {
	t.Helper()
	for _, r := range built.Resources() {
		data, err := r.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		var pods struct {
			Spec struct{ Template json.RawMessage }
		}
		if json.Unmarshal(data, &pods) != nil || pods.Spec.Template == nil {
			continue
		}
		var w workload
		if err := json.Unmarshal(data, &w); err != nil {
			t.Fatal(err)
		}
		all = append(all, w)
	}
	return all
}

func deployment(t *testing.T, built resmap.ResMap, name string) workload {
	t.Helper()
	return workloadOf(t, built, "Deployment", name)
}

func workloadOf(t *testing.T, built resmap.ResMap, kind, name string) workload {
	t.Helper()
	for _, w := range workloads(t, built) {
		if w.Kind == kind && w.Metadata.Name == name {
			return w
		}
	}
	t.Fatalf("no %s %s", kind, name)
	return workload{}
}

// find returns the named container, nil if there is none.
func find(containers []container, name string) *container {
	for i := range containers {
		if containers[i].Name == name {
			return &containers[i]
		}
	}
	return nil
}
