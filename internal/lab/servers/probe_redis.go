package servers

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
)

// probeRedis asks the server for PING and for its process id. A server that wants a password says so, which is an answer too.
func probeRedis(network, addr string) func(context.Context, int) error {
	return func(ctx context.Context, pid int) error {
		conn, err := new(net.Dialer).DialContext(ctx, network, addr)
		if err != nil {
			return err
		}
		defer conn.Close()
		stop := context.AfterFunc(ctx, func() { conn.Close() })
		defer stop()
		if _, err := io.WriteString(conn, "PING\r\nINFO server\r\nQUIT\r\n"); err != nil {
			return err
		}
		return checkRedis(bufio.NewReader(conn), pid)
	}
}

func checkRedis(r *bufio.Reader, pid int) error {
	pong, err := r.ReadString('\n')
	if err != nil {
		return err
	}
	if strings.HasPrefix(pong, "-NOAUTH") {
		return nil
	}
	if pong != "+PONG\r\n" {
		return errors.New(strings.TrimSpace(pong))
	}
	info, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	if !strings.Contains(string(info), fmt.Sprintf("process_id:%d\r\n", pid)) {
		return fmt.Errorf("another server answers here, not the one with pid %d", pid)
	}
	return nil
}
