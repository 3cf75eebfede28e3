package testkit

import (
	"context"
	"crypto/rand"
	"database/sql"
	"strings"
	"testing"

	"rankcache/internal/lab/servers"
)

// SQLKinds are the kinds of database that the ledger is tested with: in full size MariaDB too, which takes as long
// again.
var SQLKinds = sqlKinds()

func sqlKinds() []string {
	if Full() {
		return []string{"postgres", "mysql"}
	}
	return []string{"postgres"}
}

var sharedSQL = map[string]*sharedServer{
	"postgres": {env: EnvPostgres, start: startSQL(servers.StartPostgres)},
	"mysql":    {env: EnvMariaDB, start: startSQL(servers.StartMariaDB)},
}

func startSQL(start func(context.Context, servers.SQLOptions) (*servers.SQL, error)) func() (handle, error) {
	return func() (handle, error) {
		s, err := start(context.Background(), servers.SQLOptions{})
		if err != nil {
			return handle{}, err
		}
		return handle{addr: s.Addr(), output: s.Output, close: s.Close}, nil
	}
}

// Database returns the URL of a new, empty database of a kind on the PostgreSQL or MariaDB that all tests share. It
// skips where the server is not installed, and prints that.
func Database(t testing.TB, kind string) string {
	t.Helper()
	h, err := sharedSQL[kind].get(t)
	orSkip(t, err)
	return NewDatabase(t, kind, h.addr)
}

// NewDatabase returns the URL of a new, empty database of a kind on the server at addr.
func NewDatabase(t testing.TB, kind, addr string) string {
	t.Helper()
	url, err := servers.NewDatabase(t.Context(), kind, addr, "t"+strings.ToLower(rand.Text()[:12]))
	if err != nil {
		t.Fatal(err)
	}
	return url
}

// PooledDatabase returns the URL of a database that [Database] has returned, behind a PgBouncer in transaction mode,
// which ends with the test.
func PooledDatabase(t testing.TB, url string) string {
	t.Helper()
	rest, name := strings.TrimPrefix(url, "postgres://rankcache@"), url[strings.LastIndexByte(url, '/')+1:]
	s, err := servers.StartPgBouncer(t.Context(), strings.TrimSuffix(rest, "/"+name))
	orSkip(t, err)
	endWith(t, "pgbouncer", s)
	return servers.SQLURL("postgres", s.Addr(), name)
}

// SQL returns a connection to the database of a URL that Database has returned, for what tests do by hand.
func SQL(t testing.TB, url string) *sql.DB {
	t.Helper()
	db, err := servers.OpenSQL(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// StartSQL starts a PostgreSQL ("postgres") or MariaDB ("mysql") for this test alone, two to four seconds, and ends it
// with the test.
func StartSQL(t testing.TB, kind string, o servers.SQLOptions) *servers.SQL {
	t.Helper()
	start := servers.StartPostgres
	if kind == "mysql" {
		start = servers.StartMariaDB
	}
	s, err := start(t.Context(), o)
	orSkip(t, err)
	endWith(t, kind, s)
	return s
}
