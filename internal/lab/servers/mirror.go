package servers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"time"
)

// MirrorOptions configures a mirror.
type MirrorOptions struct {
	From, To string            // host:port of a broker of the one cluster and of the other
	Topics   string            // those that are mirrored, under their names: regular expressions with commas between
	Props    map[string]string // further settings of MirrorMaker, which win
}

// Mirror is Kafka's MirrorMaker 2 in a process of its own, of one direction. It has no port; Addr is that of the broker
// it writes to.
type Mirror struct{ *Server }

// The names that the two clusters have for MirrorMaker. Its own topics are named after them.
const mirrorSource, mirrorTarget = "source", "target"

// StartMirror starts a mirror and returns once it has made its own topics in the cluster that it writes to, some ten
// seconds and 300 MB later. It mirrors some seconds after that. ctx bounds the start, at most three minutes. The error
// wraps ErrNotInstalled when Java or the jars are missing.
//
// Killed and restarted it begins where it noted its place last, up to a minute before: so much is in the mirror twice.
func StartMirror(ctx context.Context, o MirrorOptions) (*Mirror, error) {
	j, err := findJava(KafkaOptions{Heap: "256m"})
	if err != nil {
		return nil, err
	}
	if j.more, err = mirrorLibs(j.libs); err != nil {
		return nil, err
	}
	dir, own, err := folder("", "mirror")
	if err != nil {
		return nil, err
	}
	settings := filepath.Join(dir, "mirror.properties")
	if err := os.WriteFile(settings, encodeProps(mirrorProps(o)), 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("write the mirror's settings: %w", err), os.RemoveAll(dir))
	}
	s, err := launch(ctx, spec{
		name: "mirror", argv: j.command("org.apache.kafka.connect.mirror.MirrorMaker", settings, "--clusters", mirrorTarget), addr: o.To, dir: dir, ownDir: own,
		startTimeout: 3 * time.Minute, poll: 200 * time.Millisecond, probe: probeMirror(o.To),
	})
	if err != nil {
		return nil, err
	}
	return &Mirror{s}, nil
}

// mirrorLibs returns the folder with the jars that MirrorMaker has beside the broker's: the broker's own, if they are
// all there.
func mirrorLibs(broker string) (string, error) {
	for _, dir := range []string{broker, filepath.Join(broker, "..", "..", "kafka-mirror", "libs")} {
		if jars, err := filepath.Glob(filepath.Join(dir, "connect-mirror-[0-9]*.jar")); err == nil && len(jars) > 0 {
			return dir, nil
		}
	}
	return "", fmt.Errorf("the jars of MirrorMaker: %w beside %s: run scripts/setup.sh kafka", ErrNotInstalled, broker)
}

// mirrorProps returns the settings of a mirror, with the caller's on top. Everything but what one small broker needs is
// as users have it; topics are looked for every second.
func mirrorProps(o MirrorOptions) map[string]string {
	props := map[string]string{
		"clusters":                                  mirrorSource + "," + mirrorTarget,
		mirrorSource + ".bootstrap.servers":         o.From,
		mirrorTarget + ".bootstrap.servers":         o.To,
		"replication.policy.class":                  "org.apache.kafka.connect.mirror.IdentityReplicationPolicy",
		"replication.factor":                        "1",
		"sync.topic.acls.enabled":                   "false", // these brokers have none
		"refresh.topics.interval.seconds":           "1",
		"tasks.max":                                 "1",
		mirrorSource + ".admin.metadata.max.age.ms": "1000",
	}
	for _, own := range []string{"offset.storage", "status.storage", "config.storage", "offset-syncs.topic", "checkpoints.topic", "heartbeats.topic"} {
		props[own+".replication.factor"] = "1"
	}
	way := mirrorSource + "->" + mirrorTarget
	props[way+".enabled"], props[way+".topics"] = "true", o.Topics
	maps.Copy(props, o.Props)
	return props
}

// probeMirror asks for the topic in which a mirror notes its places.
func probeMirror(addr string) func(context.Context, int) error {
	return func(ctx context.Context, _ int) error {
		const topic = "mm2-offsets." + mirrorSource + ".internal"
		md, err := metadata(ctx, addr, topic)
		if err != nil {
			return err
		}
		if len(md.Topics) == 0 || md.Topics[0].ErrorCode != 0 {
			return fmt.Errorf("there is no topic %s yet", topic)
		}
		return nil
	}
}
