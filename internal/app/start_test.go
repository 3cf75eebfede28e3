package app

import (
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
)

// TestStartWordByWord runs the commands of "Run it" in docs/START.md in one shell, in
// their order, from a folder with nothing in it but what was built. Only addresses
// are replaced.
func TestStartWordByWord(t *testing.T) {
	testkit.FullOnly(t, "the documented commands are run")
	text, err := os.ReadFile("../../docs/START.md")
	must(t, err)
	script := startSection(string(text))
	for _, word := range []string{"make build", "rankcache write", "rankcache serve", "rooms set", "kill"} {
		must(t, contains(script, word))
	}
	s := newFreshStage(t)
	out := s.shell(t, script)
	if note, err := os.ReadFile(filepath.Join(s.dir, "failed")); err == nil {
		t.Errorf("%s", note)
	}
	for _, want := range []string{`"source":"local"`, `"member":"1000123"`, "room 99 is super-hot", "0 failed"} {
		if err := contains(out, want); err != nil {
			t.Error(err)
		}
	}
}

// startSection returns the commands of the section "Run it", without the
// indentation of the list.
func startSection(text string) string {
	_, text, _ = strings.Cut(text, "\n## Run it")
	text, _, _ = strings.Cut(text, "\n## ")
	var script strings.Builder
	inside := false
	for line := range strings.Lines(text) {
		line = strings.TrimPrefix(line, "   ")
		switch {
		case strings.HasPrefix(line, "```"):
			inside = !inside
		case inside:
			script.WriteString(line)
		}
	}
	return script.String()
}

// newFreshStage returns a stage on which nothing runs yet but servers that are empty.
func newFreshStage(t *testing.T) *stage {
	s := &stage{dir: t.TempDir()}
	redis, brokers, name := testkit.StartRedis(t, servers.RedisOptions{}).Addr(), testkit.Kafka(t), testkit.Name(t)
	at := freePorts(t, "8970", "8971", "8972", "8973", "8974")
	pairs := []string{"redis://redis:6379", "redis://" + redis, "kafka:9092", brokers}
	for port, addr := range maps.All(at) {
		pairs = append(pairs, "localhost:"+port, addr, "127.0.0.1:"+port, addr, " :"+port, " "+addr)
	}
	s.names = strings.NewReplacer(pairs...)
	must(t, os.MkdirAll(filepath.Join(s.dir, "bin"), 0o755))
	must(t, os.MkdirAll(filepath.Join(s.dir, "tools"), 0o755))
	s.curl(t, "tools/curl")
	s.write(t, "tools/make", "#!/bin/sh\n[ \"$*\" = build ]\n"+shimNote)
	s.write(t, "bin/rankcache", fmt.Sprintf(`#!/bin/sh
case "$1" in
serve) exec %[1]q "$@" --data %[2]s --admin %[3]s --health %[4]s --drain 0s;;
write) exec %[1]q "$@" --scores %[5]s --health %[6]s --drain 0s;;
doctor) set -- "$@" --data %[2]s --health %[4]s;;
esac
%[1]q "$@"
`, os.Args[0], at["8970"], at["8971"], at["8972"], at["8973"], at["8974"])+shimNote)
	s.env = append(os.Environ(), envRunMain+"=1", "PATH="+filepath.Join(s.dir, "tools")+":"+os.Getenv("PATH"), "RANKCACHE_ADMIN="+at["8971"],
		"RANKCACHE_TOPIC_UPDATES="+name+"_", "RANKCACHE_TOPIC_COMMANDS="+name, "RANKCACHE_GROUP="+name)
	return s
}

// freePorts returns an address on loopback for each name, that had no
// listener a moment ago.
func freePorts(t *testing.T, names ...string) map[string]string {
	at := map[string]string{}
	for _, name := range names {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
		defer ln.Close()
		at[name] = ln.Addr().String()
	}
	return at
}

// shell runs a script, and ends what it leaves running.
func (s *stage) shell(t *testing.T, script string) string {
	t.Helper()
	file := filepath.Join(s.dir, "output")
	out, err := os.Create(file) // a pipe would be waited for
	must(t, err)
	defer out.Close()
	cmd := exec.Command("sh", "-c", s.names.Replace(script))
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = s.dir, s.env, out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	must(t, cmd.Start())
	end := func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // of this group alone
	late := time.AfterFunc(3*time.Minute, end)
	err = cmd.Wait()
	late.Stop()
	end()
	text, _ := os.ReadFile(file)
	if err != nil {
		t.Errorf("the script ends with %v", err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			for _, name := range []string{"output", "write.log", "serve.log"} {
				log, _ := os.ReadFile(filepath.Join(s.dir, name))
				t.Logf("%s:\n%s", name, log)
			}
		}
	})
	return string(text)
}
