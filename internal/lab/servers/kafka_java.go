package servers

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
)

// EnvKafkaLibs names the folder with Kafka's jars when it is not the module's own cache.
const EnvKafkaLibs = "RANKCACHE_TEST_KAFKA_LIBS"

// KafkaLibs returns the folder with Kafka's jars: the one named by RANKCACHE_TEST_KAFKA_LIBS, or .cache/kafka/libs below the module root, which is looked for from
// the working folder up. The error wraps ErrNotInstalled when there is none.
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
type java struct{ bin, libs, heap string }

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

// command returns the command line that runs a class. Compiling with the quick compiler only and collecting on one thread saves a second of each start and
// is no slower for a broker that lives for one test run. Log lines below WARN are left out.
func (j java) command(class string, args ...string) []string {
	argv := []string{j.bin, "-Xmx" + j.heap, "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Dlog4j2.level=WARN",
		"-cp", filepath.Join(j.libs, "*"), class}
	return append(argv, args...)
}
