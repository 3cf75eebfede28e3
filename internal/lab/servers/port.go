package servers

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports are looked for below the range from which Linux takes the local ends of outgoing connections (32768 and up). A port that the kernel hands out for
// ":0" is from that range, and between our look and the server's bind, or while a server is down for a restart, any client on the machine could get it.
const firstPort, lastPort = 15000, 32000

// FreeAddr returns a loopback host:port that nobody listens on now, and that no outgoing connection gets while a server on it is down.
func FreeAddr() (string, error) {
	port, err := freePort()
	return loopback(port), err
}

// freePort returns a loopback TCP port that nobody listens on now. Its random choice keeps test binaries that run side by side apart.
func freePort() (int, error) {
	for range 100 {
		port := firstPort + rand.IntN(lastPort-firstPort)
		l, err := net.Listen("tcp", loopback(port))
		if err != nil {
			continue
		}
		return port, l.Close()
	}
	return 0, fmt.Errorf("no free port found between %d and %d: check what listens there", firstPort, lastPort)
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
