package servers

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kfake"
)

// Kfake is a fake Kafka broker inside this process. It speaks the real protocol and, unlike a real broker, makes faults on demand: see the embedded Cluster's
// Fault, ControlKey, DeleteRecords and the like.
type Kfake struct{ *kfake.Cluster }

// StartKfake starts a fake cluster, of one broker unless opts say otherwise, on free loopback ports. The caller closes it.
func StartKfake(opts ...kfake.Opt) (*Kfake, error) {
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1), kfake.DefaultNumPartitions(1)}, opts...)...)
	if err != nil {
		return nil, fmt.Errorf("start kfake: %w", err)
	}
	return &Kfake{c}, nil
}

// Addr returns the host:port of the first broker.
func (k *Kfake) Addr() string { return k.ListenAddrs()[0] }
