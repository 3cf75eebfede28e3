package app

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
)

// startSASL starts a broker on a port that takes one password; 0: a free port.
func startSASL(t *testing.T, port int, password string) (*servers.Kfake, int) {
	t.Helper()
	broker, err := servers.StartKfake(kfake.EnableSASL(), kfake.Superuser("PLAIN", "app", password), kfake.Ports(port))
	must(t, err)
	t.Cleanup(broker.Close)
	_, text, _ := strings.Cut(broker.Addr(), ":")
	port, err = strconv.Atoi(text)
	must(t, err)
	return broker, port
}

// TestKafkaPasswordIsReadAgain: the broker takes another password from some moment on,
// and sidecar and writer log in with it once it is in the file.
func TestKafkaPasswordIsReadAgain(t *testing.T) {
	t.Parallel()
	dir, name := t.TempDir(), testkit.Name(t)
	secret := filepath.Join(dir, "password")
	must(t, os.WriteFile(secret, []byte("old\n"), 0o600))
	roomsFile := filepath.Join(dir, "rooms.yaml")
	must(t, os.WriteFile(roomsFile, fmt.Appendf(nil, "boards: [{match: %q, mode: super-hot}]\n", name), 0o600))
	broker, port := startSASL(t, 0, "old")
	common := []string{"--redis", "redis://" + testkit.Redis(t), "--redis-timeout", "2s", "--kafka", broker.Addr(), "--rooms", roomsFile, "--topic-commands", name + "_commands",
		"--kafka.security.protocol=sasl_plaintext", "--kafka.sasl.mechanism=PLAIN", "--kafka.sasl.username=app", "--kafka.sasl.password-file=" + secret}
	s := startListening(t, append([]string{"serve", "--data", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--health", "127.0.0.1:0"}, common...)...)
	w := startListening(t, append([]string{"write", "--scores", "127.0.0.1:0", "--health", "127.0.0.1:0", "--command-partitions", "1"}, common...)...)

	kafkaIs := func(state string) func() error {
		return func() error {
			code, body := s.Get("admin", "/status?expect=dependencies.kafka.state="+state)
			if code != http.StatusOK {
				return fmt.Errorf("%d %s", code, body)
			}
			return nil
		}
	}
	n := 0
	post := func() error {
		n++
		body := fmt.Sprintf(`{"order":"%d","board":%q,"member":"m","op":"incr","delta":1}`, n, name)
		resp, err := http.Post(w.URL("scores", "/v1/scores"), "application/json", strings.NewReader(body))
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("the post is answered %s", resp.Status)
		}
		return nil
	}
	testkit.Eventually(t, time.Minute, kafkaIs("ok"))
	testkit.Eventually(t, time.Minute, post)

	broker.Close()
	startSASL(t, port, "new")
	testkit.Eventually(t, time.Minute, kafkaIs("failing"))
	must(t, os.WriteFile(secret, []byte("new\n"), 0o600))
	testkit.Eventually(t, time.Minute, kafkaIs("ok"))
	testkit.Eventually(t, time.Minute, post)
}
