package app

import (
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	"rankcache/internal/testkit"
)

// TestFewOpenFiles: a process that may open few files outlives more connections than that, on each
// of its ports, and answers when they are gone.
func TestFewOpenFiles(t *testing.T) {
	t.Parallel()
	addr, kafka := testkit.Redis(t), testkit.Kafka(t)
	c := startCommand(t, "sh", "-c", `ulimit -n 96; exec "$0" "$@"`, os.Args[0], "serve", "--redis", "redis://"+addr, "--kafka", kafka,
		"--data", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--health", "127.0.0.1:0", "--resp", "127.0.0.1:0", "--rpc", "127.0.0.1:0", "--drain", "0s")
	c.WaitListening()
	for _, port := range []string{"data", "resp", "rpc", "admin", "health"} {
		var open []net.Conn
		for range 200 {
			conn, err := net.Dial("tcp", c.Addr(port))
			must(t, err)
			open = append(open, conn)
			_, _ = conn.Write([]byte("GET /x HTTP/1.1\r\n"))
		}
		for _, conn := range open {
			conn.Close()
		}
		testkit.Eventually(t, 30*time.Second, func() error {
			if status, body := c.Get("health", "/livez"); status != 200 {
				return fmt.Errorf("after connections to %s: %d %s", port, status, body)
			}
			return nil
		})
	}
	c.WaitReady(30 * time.Second)
}
