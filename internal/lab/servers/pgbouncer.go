package servers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// StartPgBouncer starts a PgBouncer in transaction mode in front of the PostgreSQL at host:port, whose administrator
// logs in without a password, and returns once it serves. Few server connections have statements of one client meet
// those of others. ctx bounds the start. The error wraps ErrNotInstalled when it is missing.
func StartPgBouncer(ctx context.Context, postgres string) (*Server, error) {
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		if program = "/usr/sbin/pgbouncer"; !exists(program) {
			return nil, fmt.Errorf("pgbouncer: %w: install it (Debian's package pgbouncer) or put it in PATH", ErrNotInstalled)
		}
	}
	host, to, err := net.SplitHostPort(postgres)
	if err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	as, err := withoutRoot() // it refuses to run as root
	if err != nil {
		return nil, err
	}
	dir, err := sqlFolder("pgbouncer", as)
	if err != nil {
		return nil, err
	}
	settings := fmt.Sprintf("[databases]\n* = host=%s port=%s\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = %d\nunix_socket_dir =\nauth_type = trust\nauth_file = %s\n"+
		"pool_mode = transaction\ndefault_pool_size = 3\n", host, to, port, filepath.Join(dir, "users"))
	err = errors.Join(os.WriteFile(filepath.Join(dir, "users"), []byte(`"rankcache" ""`+"\n"), 0o644), os.WriteFile(filepath.Join(dir, "pgbouncer.ini"), []byte(settings), 0o644)) // #nosec G306 -- of another user, without secrets
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return launch(ctx, spec{name: "pgbouncer", argv: []string{program, filepath.Join(dir, "pgbouncer.ini")}, addr: loopback(port), dir: dir, ownDir: true, as: as,
		startTimeout: time.Minute, poll: 20 * time.Millisecond, probe: func(ctx context.Context, _ int) error {
			db, err := OpenSQL(SQLURL("postgres", loopback(port), "postgres"))
			if err != nil {
				return err
			}
			defer db.Close()
			return db.PingContext(ctx)
		}})
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
