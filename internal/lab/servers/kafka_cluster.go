package servers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// KafkaCluster is a running Kafka cluster, each node of which is broker and controller. The nodes' ids are 1, 2, 3 … in
// the order of Brokers.
type KafkaCluster struct{ Brokers []*Kafka }

// StartKafkaCluster starts n brokers of 256 MiB heap each and returns once each knows the others, about ten seconds
// later. A broker that is silent for three seconds loses its place; topics have three copies unless they are created
// with another number. Props are settings of every broker. ctx bounds the start. The error wraps ErrNotInstalled when
// Java or the jars are missing.
func StartKafkaCluster(ctx context.Context, n int, props map[string]string) (*KafkaCluster, error) {
	nodes, err := clusterNodes(n, props)
	if err != nil {
		return nil, err
	}
	c := &KafkaCluster{Brokers: make([]*Kafka, n)}
	var starts errgroup.Group
	for i, o := range nodes {
		starts.Go(func() (err error) { // side by side: a node serves nothing before a majority is there
			c.Brokers[i], err = StartKafka(ctx, o)
			return err
		})
	}
	if err = starts.Wait(); err == nil {
		err = c.waitWhole(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// clusterNodes returns the options of each node.
func clusterNodes(n int, props map[string]string) ([]KafkaOptions, error) {
	nodes, voters, copies := make([]KafkaOptions, n), make([]string, n), strconv.Itoa(min(n, 3))
	id := clusterID()
	for i := range nodes {
		addr, err := FreeAddr()
		if err != nil {
			return nil, err
		}
		controller, err := FreeAddr()
		if err != nil {
			return nil, err
		}
		voters[i] = fmt.Sprintf("%d@%s", i+1, controller)
		nodes[i] = KafkaOptions{Heap: "256m", cluster: id, Props: map[string]string{
			"node.id":              strconv.Itoa(i + 1),
			"listeners":            "PLAINTEXT://" + addr + ",CONTROLLER://" + controller,
			"advertised.listeners": "PLAINTEXT://" + addr,

			"default.replication.factor":                       copies,
			"offsets.topic.replication.factor":                 copies,
			"transaction.state.log.replication.factor":         copies,
			"share.coordinator.state.topic.replication.factor": copies,
			"broker.session.timeout.ms":                        "3000",
			"broker.heartbeat.interval.ms":                     "500",
		}}
		maps.Copy(nodes[i].Props, props)
	}
	for _, o := range nodes {
		o.Props["controller.quorum.voters"] = strings.Join(voters, ",")
	}
	return nodes, nil
}

// waitWhole waits until every broker knows all of them.
func (c *KafkaCluster) waitWhole(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return pollUntil(ctx, func() error {
		for _, b := range c.Brokers {
			md, err := metadata(ctx, b.Addr())
			if err == nil && len(md.Brokers) < len(c.Brokers) {
				err = fmt.Errorf("%s knows %d of %d brokers", b.Addr(), len(md.Brokers), len(c.Brokers))
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// Addrs returns host:port of every broker.
func (c *KafkaCluster) Addrs() []string {
	addrs := make([]string, len(c.Brokers))
	for i, b := range c.Brokers {
		addrs[i] = b.Addr()
	}
	return addrs
}

// Leader returns the broker that leads a partition, as reported by the first broker that answers.
func (c *KafkaCluster) Leader(ctx context.Context, topic string, partition int32) (*Kafka, error) {
	var errs []error
	for _, b := range c.Brokers {
		md, err := metadata(ctx, b.Addr(), topic)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for _, p := range md.Topics[0].Partitions {
			if p.Partition == partition && 1 <= p.Leader && int(p.Leader) <= len(c.Brokers) {
				return c.Brokers[p.Leader-1], nil
			}
		}
		return nil, fmt.Errorf("partition %d of topic %s has no leader", partition, topic)
	}
	return nil, errors.Join(errs...)
}

// Close kills the brokers and removes their folders.
func (c *KafkaCluster) Close() error {
	var errs []error
	for _, b := range c.Brokers {
		if b != nil { // it did not start
			errs = append(errs, b.Close())
		}
	}
	return errors.Join(errs...)
}

// Output returns what the brokers printed last.
func (c *KafkaCluster) Output() string {
	var all strings.Builder
	for _, b := range c.Brokers {
		fmt.Fprintf(&all, "--- broker on %s\n%s", b.Addr(), b.Output())
	}
	return all.String()
}
