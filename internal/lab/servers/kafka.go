package servers

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
)

// KafkaOptions configures how a broker is started. The zero value is a broker on a free loopback port with its data in
// a temporary folder.
type KafkaOptions struct {
	Dir   string            // its folder, kept at Close; empty: a temporary one. One that holds data of an earlier broker is taken over
	Port  int               // 0: a free one
	Libs  string            // the folder with Kafka's jars; empty: see KafkaLibs
	Heap  string            // the most memory for Java objects, as in "512m", which is the default
	Props map[string]string // broker settings, which win over the defaults, such as "log.retention.check.interval.ms": "500"

	cluster string // id of the cluster; empty: a new one
}

// Kafka is a running Apache Kafka broker, which is its own controller too (KRaft).
type Kafka struct{ *Server }

// StartKafka starts a broker and returns once it serves metadata, about three seconds later and more on a busy machine.
// ctx bounds the start, at most three minutes, not the broker's life. The error wraps ErrNotInstalled when Java or the
// jars are missing, and ends in the broker's output when it did not come up.
//
// A Restart after a Kill takes nine seconds longer, because the controller holds the dead broker's place until its
// session ends; with the setting broker.session.timeout.ms=2000 and broker.heartbeat.interval.ms=500 it takes two.
func StartKafka(ctx context.Context, o KafkaOptions) (*Kafka, error) {
	j, err := findJava(o)
	if err != nil {
		return nil, err
	}
	sp, err := kafkaSpec(ctx, j, o)
	if err != nil {
		return nil, err
	}
	s, err := launch(ctx, sp)
	if err != nil {
		return nil, err
	}
	return &Kafka{s}, nil
}

// kafkaSpec makes the broker's folder ready: settings and formatted storage.
func kafkaSpec(ctx context.Context, j java, o KafkaOptions) (sp spec, err error) {
	dir, own, err := folder(o.Dir, "kafka")
	if err != nil {
		return spec{}, err
	}
	defer func() {
		if err != nil && own {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	props, err := brokerProps(dir, o)
	if err != nil {
		return spec{}, err
	}
	settings := filepath.Join(dir, "server.properties")
	if err := os.WriteFile(settings, encodeProps(props), 0o600); err != nil {
		return spec{}, fmt.Errorf("write the broker's settings: %w", err)
	}
	if o.cluster == "" {
		o.cluster = clusterID()
	}
	if err := format(ctx, j, settings, o.cluster); err != nil {
		return spec{}, err
	}
	addr, _, _ := strings.Cut(props["advertised.listeners"][len("PLAINTEXT://"):], ",") // of several, the first
	return spec{
		name: "kafka", argv: j.command("kafka.Kafka", settings), addr: addr, dir: dir, ownDir: own,
		startTimeout: 3 * time.Minute, poll: 20 * time.Millisecond, probe: probeKafka(addr, filepath.Join(props["log.dirs"], "meta.properties")),
	}, nil
}

// clusterID returns a new one.
func clusterID() string {
	id := make([]byte, 16)
	rand.Read(id)
	id[0] &= 0x7f // an id that starts with "-" would be read as a flag
	return base64.RawURLEncoding.EncodeToString(id)
}

// format prepares the storage for a cluster; storage that is formatted already is left alone.
func format(ctx context.Context, j java, settings, cluster string) error {
	argv := j.command("kafka.tools.StorageTool", "format", "--ignore-formatted", "-t", cluster, "-c", settings)
	out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("format the broker's storage: %w; Kafka 4 needs Java 17 or newer; output:\n%s", err, out)
	}
	return nil
}

// Kfake is a fake Kafka broker inside this process. It speaks the real protocol and, unlike a real broker, makes faults
// on demand: see the embedded Cluster's Fault, ControlKey, DeleteRecords and the like.
type Kfake struct{ *kfake.Cluster }

// StartKfake starts a fake cluster, of one broker unless opts set another number, on free loopback ports. The caller
// closes it.
func StartKfake(opts ...kfake.Opt) (*Kfake, error) {
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1), kfake.DefaultNumPartitions(1)}, opts...)...)
	if err != nil {
		return nil, fmt.Errorf("start kfake: %w", err)
	}
	return &Kfake{c}, nil
}

// Addr returns the host:port of the first broker.
func (k *Kfake) Addr() string { return k.ListenAddrs()[0] }
