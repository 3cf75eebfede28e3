package check

import (
	"encoding/json"
	"slices"
	"testing"

	"sigs.k8s.io/kustomize/api/resmap"
)

// networkPolicy is the part of a NetworkPolicy that the test looks at.
type networkPolicy struct {
	Spec struct {
		Egress []struct{ Ports []struct{ Port int } }
	}
}

// TestWritersReachKafka, with TLS or without, Redis and the names of both.
func TestWritersReachKafka(t *testing.T) {
	ports := egress(t, build(t, k8s+"/overlays/everything"), "rankcache-writer")
	for _, want := range []int{53, 6379, 9092, 9093} {
		if !slices.Contains(ports, want) {
			t.Errorf("port %d is closed: %v", want, ports)
		}
	}
}

// egress returns the ports that a policy lets its pods call.
func egress(t *testing.T, built resmap.ResMap, name string) (ports []int) {
	t.Helper()
	for _, r := range built.Resources() {
		if r.GetKind() != "NetworkPolicy" || r.GetName() != name {
			continue
		}
		data, err := r.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		var p networkPolicy
		if err := json.Unmarshal(data, &p); err != nil {
			t.Fatal(err)
		}
		for _, rule := range p.Spec.Egress {
			for _, port := range rule.Ports {
				ports = append(ports, port.Port)
			}
		}
	}
	return ports
}
