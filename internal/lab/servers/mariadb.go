package servers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// StartMariaDB starts the mariadbd found in PATH or where Debian has it and returns once it serves, about three seconds
// later. ctx bounds the start. The error wraps ErrNotInstalled when it is missing.
func StartMariaDB(ctx context.Context, o SQLOptions) (*SQL, error) {
	server, install := systemProgram("mariadbd"), systemProgram("mariadb-install-db")
	if server == "" || install == "" {
		return nil, fmt.Errorf("mariadbd: %w: install it (Debian's package mariadb-server) or put it in PATH", ErrNotInstalled)
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	dir, err := sqlFolder("mariadb", nil)
	if err != nil {
		return nil, err
	}
	data, pidFile := filepath.Join(dir, "data"), filepath.Join(dir, "pid")
	run := []string{"--no-defaults", "--datadir=" + data}
	if os.Getuid() == 0 {
		run = append(run, "--user=root")
	}
	if err := prepare(dir, nil, append(append([]string{install}, run...), "--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve")...); err != nil {
		return nil, err
	}
	argv := append(append([]string{server}, run...), "--bind-address=127.0.0.1", "--port="+strconv.Itoa(port), "--socket="+filepath.Join(dir, "s"),
		"--pid-file="+pidFile, "--skip-name-resolve", "--skip-log-bin", "--innodb-flush-log-at-trx-commit=2")
	s, err := launch(ctx, spec{name: "mariadbd", argv: append(argv, o.Args...), addr: loopback(port), dir: dir, ownDir: true,
		startTimeout: time.Minute, poll: 20 * time.Millisecond, probe: probeMariaDB(loopback(port), pidFile)})
	if err != nil {
		return nil, err
	}
	return &SQL{s, "mysql"}, nil
}

// systemProgram returns the path of a program, or ""; /usr/sbin is not in every user's PATH.
func systemProgram(name string) string {
	for _, name := range []string{name, "/usr/sbin/" + name} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// probeMariaDB compares the file with the server's process id, and waits for the greeting of a connection.
func probeMariaDB(addr, pidFile string) func(context.Context, int) error {
	return func(ctx context.Context, pid int) error {
		text, err := os.ReadFile(pidFile)
		if err != nil {
			return err
		}
		if strings.TrimSpace(string(text)) != strconv.Itoa(pid) {
			return errors.New("the file with the process id is not of this server")
		}
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
		if err != nil {
			return err
		}
		defer conn.Close()
		if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
			return err
		}
		_, err = conn.Read(make([]byte, 1))
		return err
	}
}
