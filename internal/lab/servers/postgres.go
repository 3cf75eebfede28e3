package servers

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	_ "github.com/go-sql-driver/mysql" // the driver of MariaDB
	_ "github.com/jackc/pgx/v5/stdlib" // the driver of PostgreSQL
)

// SQLOptions configures how a PostgreSQL or MariaDB is started. The zero value is a server on a free loopback port with
// its data in a temporary folder.
type SQLOptions struct {
	Args []string // further arguments of the server, which win over the defaults: commits don't reach the disk, but outlive the process
}

// SQL is a running PostgreSQL or MariaDB.
type SQL struct {
	*Server
	Kind string // "postgres" or "mysql", which is also a database that is there from the beginning
}

// URL returns how to connect to a database of the server as its administrator, who has no password.
func (s *SQL) URL(database string) string { return SQLURL(s.Kind, s.addr, database) }

// SQLURL returns the URL of a database at host:port.
func SQLURL(kind, addr, database string) string {
	user := "rankcache"
	if kind == "mysql" {
		user = "root"
	}
	return kind + "://" + user + "@" + addr + "/" + database
}

// OpenSQL returns the database of a URL that [SQLURL] has made. The caller closes it.
func OpenSQL(url string) (*sql.DB, error) {
	rest, mysql := strings.CutPrefix(url, "mysql://")
	if !mysql {
		return sql.Open("pgx", url)
	}
	host, name, _ := strings.Cut(strings.TrimPrefix(rest, "root@"), "/")
	return sql.Open("mysql", "root@tcp("+host+")/"+name)
}

// NewDatabase makes a database on the server at host:port and returns its URL. The error of a name that is taken is the
// server's.
func NewDatabase(ctx context.Context, kind, addr, name string) (string, error) {
	db, err := OpenSQL(SQLURL(kind, addr, kind))
	if err != nil {
		return "", err
	}
	defer db.Close()
	if _, err := db.ExecContext(ctx, "CREATE DATABASE "+name); err != nil {
		return "", fmt.Errorf("make database %s: %w", name, err)
	}
	return SQLURL(kind, addr, name), nil
}

// Crash kills the server and starts it again once its helper processes have noticed.
func (s *SQL) Crash(ctx context.Context) error {
	if err := s.Kill(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return pollUntil(ctx, func() error { return s.Restart(ctx) })
}

// RestartFast stops the server without waiting for its clients to leave, and starts it again.
func (s *SQL) RestartFast(ctx context.Context) error {
	if s.Kind == "postgres" {
		if err := s.signal(syscall.SIGINT); err != nil { // it waits for them after SIGTERM
			return err
		}
		err := pollUntil(ctx, func() error {
			if s.Running() {
				return errors.New("postgres is still running")
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return s.Restart(ctx)
}

// Hang freezes the server and the processes of its connections, until resume is called.
func (s *SQL) Hang(ctx context.Context) (resume func() error, err error) {
	var pids []int
	if s.Kind == "postgres" {
		if pids, err = s.backends(ctx); err != nil {
			return nil, err
		}
	}
	all := func(sig syscall.Signal) error {
		err := s.signal(sig)
		for _, pid := range pids {
			if gone := syscall.Kill(pid, sig); !errors.Is(gone, syscall.ESRCH) {
				err = errors.Join(err, gone)
			}
		}
		return err
	}
	return func() error { return all(syscall.SIGCONT) }, all(syscall.SIGSTOP)
}

// backends returns the processes of PostgreSQL that serve connections.
func (s *SQL) backends(ctx context.Context) (pids []int, err error) {
	db, err := OpenSQL(s.URL(s.Kind))
	if err != nil {
		return nil, err
	}
	defer db.Close()
	rows, err := db.QueryContext(ctx, "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var pid int
		if err := rows.Scan(&pid); err != nil {
			return nil, err
		}
		pids = append(pids, pid)
	}
	return pids, rows.Err()
}

// StartPostgres starts the newest PostgreSQL of Debian's packages, or the one in PATH, and returns once it serves,
// about two seconds later. PostgreSQL refuses to run as root, so root runs it as the user postgres, or nobody where
// there is none. ctx bounds the start. The error wraps ErrNotInstalled when it is missing.
func StartPostgres(ctx context.Context, o SQLOptions) (*SQL, error) {
	initdb, server := postgresProgram("initdb"), postgresProgram("postgres")
	if initdb == "" || server == "" {
		return nil, fmt.Errorf("postgres: %w: install it (Debian's package postgresql) or put it in PATH", ErrNotInstalled)
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	as, err := withoutRoot()
	if err != nil {
		return nil, err
	}
	dir, err := sqlFolder("postgres", as)
	if err != nil {
		return nil, err
	}
	data := filepath.Join(dir, "data")
	if err := prepare(dir, as, initdb, "-D", data, "-U", "rankcache", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"); err != nil {
		return nil, err
	}
	argv := []string{server, "-D", data, "-p", strconv.Itoa(port), "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=", "-c", "fsync=off"}
	s, err := launch(ctx, spec{name: "postgres", argv: append(argv, o.Args...), addr: loopback(port), dir: dir, ownDir: true, as: as,
		startTimeout: time.Minute, poll: 20 * time.Millisecond, probe: probePostgres(data)})
	if err != nil {
		return nil, err
	}
	return &SQL{s, "postgres"}, nil
}

// postgresProgram returns the path of a program of PostgreSQL, or "". Debian keeps them out of PATH, one folder a
// version.
func postgresProgram(name string) string {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	if len(found) > 0 {
		return slices.Max(found)
	}
	path, _ := exec.LookPath(name)
	return path
}

// probePostgres reads what the server writes into its folder: its process id, and at the end that it is ready.
func probePostgres(data string) func(context.Context, int) error {
	return func(_ context.Context, pid int) error {
		text, err := os.ReadFile(filepath.Join(data, "postmaster.pid"))
		if err != nil {
			return err
		}
		lines := strings.Fields(string(text))
		if len(lines) == 0 || lines[0] != strconv.Itoa(pid) || lines[len(lines)-1] != "ready" {
			return errors.New("postmaster.pid is not of this server or not ready")
		}
		return nil
	}
}

// withoutRoot returns as whom a server that refuses root is run: nil, which is this user, unless it is root.
func withoutRoot() (*syscall.Credential, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		u, err = user.Lookup("nobody")
	}
	if err != nil {
		return nil, fmt.Errorf("a user other than root: %w", err)
	}
	uid, uerr := strconv.ParseUint(u.Uid, 10, 32)
	gid, gerr := strconv.ParseUint(u.Gid, 10, 32)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, errors.Join(uerr, gerr)
}

// GiveToSQL makes a file that of the user as whom databases run.
func GiveToSQL(file string) error {
	as, err := withoutRoot()
	if err != nil || as == nil {
		return err
	}
	return os.Chown(file, int(as.Uid), int(as.Gid))
}

// sqlFolder makes a temporary folder that belongs to the server's user.
func sqlFolder(name string, as *syscall.Credential) (string, error) {
	dir, _, err := folder("", name)
	if err == nil && as != nil {
		err = os.Chown(dir, int(as.Uid), int(as.Gid))
	}
	return dir, err
}

// prepare runs what makes the data folder; if that fails, the folder is removed.
func prepare(dir string, as *syscall.Credential, argv ...string) error {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.SysProcAttr = dir, childAttr(as)
	if out, err := cmd.CombinedOutput(); err != nil {
		return errors.Join(fmt.Errorf("%s: %w; output:\n%s", filepath.Base(argv[0]), err, out), os.RemoveAll(dir))
	}
	return nil
}
