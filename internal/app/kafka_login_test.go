package app

import (
	"fmt"
	"net"
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

// TestWrongKafkaPasswordIsReported: the status and the log of a sidecar whose password the
// broker refuses have that, the user and the settings to check, but not the password.
func TestWrongKafkaPasswordIsReported(t *testing.T) {
	t.Parallel()
	t.Run("kfake", func(t *testing.T) { // which closes the connection without a word
		broker, _ := startSASL(t, 0, "right")
		wrongPasswordIsSaid(t, broker.Addr())
	})
	t.Run("kafka", func(t *testing.T) { wrongPasswordIsSaid(t, startKafkaSASL(t)) })
}

// startKafkaSASL starts a broker of its own with a listener that takes a password, and
// returns that listener's address.
func startKafkaSASL(t *testing.T) string {
	t.Helper()
	plain, login, controller := freeAddr(t), freeAddr(t), freeAddr(t)
	testkit.StartKafka(t, servers.KafkaOptions{Props: map[string]string{
		"listeners":                                  "PLAINTEXT://" + plain + ",LOGIN://" + login + ",CONTROLLER://" + controller,
		"advertised.listeners":                       "PLAINTEXT://" + plain + ",LOGIN://" + login,
		"controller.quorum.voters":                   "1@" + controller,
		"listener.security.protocol.map":             "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,LOGIN:SASL_PLAINTEXT",
		"sasl.enabled.mechanisms":                    "PLAIN",
		"listener.name.login.plain.sasl.jaas.config": `org.apache.kafka.common.security.plain.PlainLoginModule required user_app="right";`,
	}})
	return login
}

// freeAddr returns an address of loopback without a listener.
func freeAddr(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer ln.Close()
	return ln.Addr().String()
}

func wrongPasswordIsSaid(t *testing.T, broker string) {
	name := testkit.Name(t)
	roomsFile := filepath.Join(t.TempDir(), "rooms.yaml")
	must(t, os.WriteFile(roomsFile, fmt.Appendf(nil, "boards: [{match: %q, mode: super-hot}]\n", name), 0o600))
	s := startListening(t, "serve", "--data", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--health", "127.0.0.1:0",
		"--redis", "redis://"+testkit.Redis(t), "--kafka", broker, "--rooms", roomsFile,
		"--kafka.security.protocol=sasl_plaintext", "--kafka.sasl.mechanism=PLAIN", "--kafka.sasl.username=app", "--kafka.sasl.password=wr0ng-secret")
	var status string
	defer func() { t.Log(status) }()
	testkit.Eventually(t, time.Minute, func() error {
		code, body := s.Get("admin", "/status?expect=dependencies.kafka.state=failing")
		if status = body; code != http.StatusOK {
			return fmt.Errorf("%d %s", code, body)
		}
		for _, want := range []string{"authentication failed for user app", "check --kafka.sasl.username"} {
			if !strings.Contains(body, want) {
				return fmt.Errorf("%q is not in %s", want, body)
			}
		}
		return nil
	})
	if strings.Contains(status, "wr0ng-secret") || strings.Contains(s.Log(), "wr0ng-secret") {
		t.Error("the password is in the status or in the log")
	}
}
