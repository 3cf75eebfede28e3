package servers

import (
	"bytes"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
)

// brokerProps returns the settings of one node that is broker and controller, with the caller's on top. Whatever a consumer notices is left as users have it,
// such as the three seconds in which a new group gathers its members (group.initial.rebalance.delay.ms); what is changed is what one node needs.
func brokerProps(dir string, o KafkaOptions) (map[string]string, error) {
	port, err := o.Port, error(nil)
	if port == 0 {
		if port, err = freePort(); err != nil {
			return nil, err
		}
	}
	controller, err := freePort()
	if err != nil {
		return nil, err
	}
	props := map[string]string{
		"process.roles":                  "broker,controller",
		"node.id":                        "1",
		"controller.quorum.voters":       "1@" + loopback(controller),
		"listeners":                      "PLAINTEXT://" + loopback(port) + ",CONTROLLER://" + loopback(controller),
		"advertised.listeners":           "PLAINTEXT://" + loopback(port),
		"controller.listener.names":      "CONTROLLER",
		"inter.broker.listener.name":     "PLAINTEXT",
		"listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
		"log.dirs":                       filepath.Join(dir, "data"),
		"num.partitions":                 "1",
		"auto.create.topics.enable":      "false",
	}
	maps.Copy(props, oneReplica)
	maps.Copy(props, o.Props)
	return props, nil
}

// oneReplica lets the broker's own topics live on one node.
var oneReplica = map[string]string{
	"offsets.topic.replication.factor":                 "1",
	"offsets.topic.num.partitions":                     "1",
	"transaction.state.log.replication.factor":         "1",
	"transaction.state.log.min.isr":                    "1",
	"transaction.state.log.num.partitions":             "1",
	"share.coordinator.state.topic.replication.factor": "1",
	"share.coordinator.state.topic.min.isr":            "1",
}

// encodeProps writes a Java properties file, sorted so that two runs can be compared.
func encodeProps(props map[string]string) []byte {
	var b bytes.Buffer
	for _, k := range slices.Sorted(maps.Keys(props)) {
		fmt.Fprintf(&b, "%s=%s\n", k, props[k])
	}
	return b.Bytes()
}
