package check

import (
	"slices"
	"testing"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
)

func loadCompose(t *testing.T) *types.Project {
	t.Helper()
	project, err := loader.LoadWithContext(t.Context(), types.ConfigDetails{
		WorkingDir:  "..",
		ConfigFiles: []types.ConfigFile{{Filename: "../compose.yaml"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return project
}

// The loader holds the file against the Compose specification's schema, and its references against each other.
func TestComposeStartsInOrder(t *testing.T) {
	project := loadCompose(t)
	for _, service := range project.Services {
		for name, needs := range service.DependsOn {
			if needs.Condition == types.ServiceConditionHealthy && project.Services[name].HealthCheck == nil {
				t.Errorf("%s waits until %s is healthy, which has no health check", service.Name, name)
			}
		}
	}
	var order []string
	if err := project.ForEachService(nil, func(name string, _ *types.ServiceConfig) error {
		order = append(order, name)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if slices.Index(order, "score") < slices.Index(order, "writer") || slices.Index(order, "writer") < slices.Index(order, "kafka") {
		t.Errorf("started in the order %q", order)
	}
}

// The sidecar and its app share localhost, and nothing is reachable from other machines.
func TestComposeIsForOneMachine(t *testing.T) {
	project := loadCompose(t)
	if mode := project.Services["sidecar"].NetworkMode; mode != "service:sample" {
		t.Errorf("network_mode of the sidecar is %q", mode)
	}
	published := 0
	for _, service := range project.Services {
		for _, port := range service.Ports {
			if published++; port.HostIP != "127.0.0.1" {
				t.Errorf("%s publishes %s on %q", service.Name, port.Published, port.HostIP)
			}
		}
	}
	if published != 2 {
		t.Errorf("%d ports are published, want the sample's and the operator's page", published)
	}
}

// Both ways to try rankcache run the same brokers with the same settings.
func TestComposeAndTheDemoOverlayHaveOneKafka(t *testing.T) {
	compose := loadCompose(t).Services["kafka"]
	pod := find(deployment(t, build(t, k8s+"/overlays/demo"), "kafka").Spec.Template.Spec.Containers, "kafka")
	if pod.Image != compose.Image {
		t.Errorf("images %s and %s", pod.Image, compose.Image)
	}
	for _, variable := range pod.Env {
		if value := compose.Environment[variable.Name]; value == nil || *value != variable.Value {
			t.Errorf("%s is %q in the overlay", variable.Name, variable.Value)
		}
	}
	if len(pod.Env) != len(compose.Environment) {
		t.Errorf("%d settings in the overlay, %d in compose.yaml", len(pod.Env), len(compose.Environment))
	}
}
