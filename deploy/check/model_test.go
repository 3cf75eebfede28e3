package check

import (
	"encoding/json"
	"testing"

	"sigs.k8s.io/kustomize/api/resmap"
)

// These are the parts of a Deployment that the tests look at.
type (
	workload struct {
		Metadata meta
		Spec     struct {
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
		Volumes                       []struct {
			Name     string
			EmptyDir *struct{ SizeLimit string }
		}
	}
	container struct {
		Name, Image, RestartPolicy string
		Args                       []string
		Env                        []struct{ Name, Value string }
		StartupProbe, ReadinessProbe,
		LivenessProbe *probe
		Lifecycle struct {
			PostStart, PreStop struct{ Exec struct{ Command []string } }
		}
		Resources       struct{ Requests, Limits map[string]string }
		SecurityContext securityContext
		VolumeMounts    []struct{ Name, MountPath, SubPath string }
	}
	probe struct {
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

// deployments returns all Deployments of a build.
func deployments(t *testing.T, built resmap.ResMap) (all []workload) {
	t.Helper()
	for _, r := range built.Resources() {
		if r.GetKind() != "Deployment" {
			continue
		}
		data, err := r.MarshalJSON()
		if err != nil {
			t.Fatal(err)
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
	for _, w := range deployments(t, built) {
		if w.Metadata.Name == name {
			return w
		}
	}
	t.Fatalf("no Deployment %s", name)
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
