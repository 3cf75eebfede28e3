package servers

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// EnvKafkaLibs names the folder with Kafka's jars when it is not the module's own cache.
const EnvKafkaLibs = "RANKCACHE_TEST_KAFKA_LIBS"

// KafkaLibs returns the folder with Kafka's jars: the one named by RANKCACHE_TEST_KAFKA_LIBS, or .cache/kafka/libs
// below the module root, which is looked for from the working folder up. The error wraps ErrNotInstalled when there is
// none.
func KafkaLibs() (string, error) {
	dir := os.Getenv(EnvKafkaLibs)
	if dir == "" {
		root, err := ModuleRoot()
		if err != nil {
			return "", fmt.Errorf("the jars of Kafka: %w: set %s to their folder (%v)", ErrNotInstalled, EnvKafkaLibs, err)
		}
		dir = filepath.Join(root, ".cache", "kafka", "libs")
	}
	return dir, checkLibs(dir)
}

func checkLibs(dir string) error {
	jars, err := filepath.Glob(filepath.Join(dir, "kafka_2.*.jar"))
	if err != nil || len(jars) == 0 {
		return fmt.Errorf("the jars of Kafka: %w in %s: run scripts/setup.sh, or set %s to their folder", ErrNotInstalled, dir, EnvKafkaLibs)
	}
	return nil
}

// ModuleRoot returns the nearest folder with a go.mod, from the working folder up.
func ModuleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		_, err := os.Stat(filepath.Join(dir, "go.mod"))
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return dir, err
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("no go.mod here or above")
		}
		dir = up
	}
}

// java is how Kafka's programs are run.
type java struct {
	bin, libs, heap string
	more            string // a further folder with jars; empty: none
}

func findJava(o KafkaOptions) (java, error) {
	j := java{libs: o.Libs, heap: o.Heap}
	if j.heap == "" {
		j.heap = "512m"
	}
	var err error
	if j.libs == "" {
		j.libs, err = KafkaLibs()
	} else if j.libs, err = filepath.Abs(j.libs); err == nil {
		err = checkLibs(j.libs)
	}
	if err != nil {
		return java{}, err
	}
	if j.bin, err = exec.LookPath("java"); err != nil {
		return java{}, fmt.Errorf("java: %w: install version 17 or newer (Debian's package default-jre-headless)", ErrNotInstalled)
	}
	return j, nil
}

// command returns the command line that runs a class. Compiling with the quick compiler only and collecting on one
// thread saves a second of each start and is no slower for a broker that lives for one test run. Log lines below WARN
// are left out.
func (j java) command(class string, args ...string) []string {
	argv := []string{j.bin, "-Xmx" + j.heap, "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Dlog4j2.level=WARN",
		"-cp", filepath.Join(j.libs, "*"), class}
	if j.more != "" {
		argv[len(argv)-2] += string(filepath.ListSeparator) + filepath.Join(j.more, "*")
	}
	return append(argv, args...)
}

// brokerProps returns the settings of one node that is broker and controller, with the caller's on top. Whatever a
// consumer notices is left as users have it, such as the three seconds in which a new group gathers its members
// (group.initial.rebalance.delay.ms); what is changed is what one node needs.
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
