package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"rankcache/internal/watch"
)

const (
	// maxConns is more than the parts of a ledger use at once: the consumer, retention, status and checks.
	maxConns    = 8
	dialTimeout = 5 * time.Second // bounds a connection's start
)

// Store is the ledger's database. It is safe for concurrent use.
type Store struct {
	*database
	schema
	offsets
	retention
	results
	prover
	changes
	snapshots
	inspector
	rankIndex
	forgettings
}

// Open returns the database of a URL, postgres://user:password@host:port/name or mysql://…, whose query are options of
// the driver. New connections log in with the user and password of the URL that current returns then; nil: of rawURL.
// files are those of [CertificateFiles], read again for each connection. It connects to nothing. No error holds the
// URL, which is a secret.
func Open(rawURL string, current func() string, files ...*watch.File[*watch.Certs]) (*Store, error) {
	s := &database{}
	var err error
	if s.db, s.d, err = open(rawURL, current, "UTF8", files); err != nil {
		return nil, err
	}
	return &Store{database: s, schema: schema{s}, offsets: offsets{s}, retention: retention{s}, results: results{s}, prover: prover{s}, changes: changes{s}, snapshots: snapshots{s}, inspector: inspector{s}, rankIndex: rankIndex{s}, forgettings: forgettings{s}}, nil
}

// OpenSQL opens, as [Open], a database that is not the ledger's, in any encoding. The caller closes it.
func OpenSQL(rawURL string, current func() string, files ...*watch.File[*watch.Certs]) (*sql.DB, error) {
	db, _, err := open(rawURL, current, "", files)
	return db, err
}

func open(rawURL string, current func() string, encoding string, files []*watch.File[*watch.Certs]) (db *sql.DB, d *dialect, err error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil, nil, errors.New("database: not a URL: want postgres://user:password@host:port/name or mysql://…, special signs of the password as %XX")
	}
	switch u.Scheme {
	case "postgres", "postgresql":
		d = postgres
		db, err = openPostgres(rawURL, u.Query().Has("default_query_exec_mode"), login(u.User, current), encoding, files)
	case "mysql", "mariadb":
		d = mysqlDialect
		db, err = openMySQL(u, login(u.User, current))
	default:
		err = errors.New("database: want a URL that begins with postgres:// or mysql://")
	}
	if err != nil {
		return nil, nil, err
	}
	db.SetMaxOpenConns(maxConns)
	db.SetMaxIdleConns(maxConns)
	db.SetConnMaxIdleTime(time.Minute)
	return db, d, nil
}

// login returns the function that gives user and password of now.
func login(first *url.Userinfo, current func() string) func() *url.Userinfo {
	return func() *url.Userinfo {
		if current == nil {
			return first
		}
		u, err := url.Parse(current())
		if err != nil || u.User == nil {
			return first
		}
		return u.User
	}
}

// openPostgres returns the database. What a session must be is set at its start, and wins over what is set for the
// server, the database or the user. Unless the URL sets a mode, no statement is prepared under a name, which would
// belong to a session: a pooler in transaction mode, such as PgBouncer, hands each transaction to another one.
func openPostgres(rawURL string, modeSet bool, login func() *url.Userinfo, encoding string, files []*watch.File[*watch.Certs]) (*sql.DB, error) {
	conf, err := pgx.ParseConfig(rawURL)
	if err != nil { // its text may quote the URL
		return nil, errors.New("database: PostgreSQL's driver does not take the URL: check host, port and the options in its query")
	}
	if conf.ConnectTimeout == 0 {
		conf.ConnectTimeout = dialTimeout
	}
	if !modeSet {
		conf.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	}
	maps.Copy(conf.RuntimeParams, map[string]string{"client_encoding": "UTF8", "standard_conforming_strings": "on", "TimeZone": "UTC", "DateStyle": "ISO, MDY"})
	if m := conf.DefaultQueryExecMode; m == pgx.QueryExecModeSimpleProtocol || m == pgx.QueryExecModeExec { // doubles are text
		conf.RuntimeParams["extra_float_digits"] = "3"
	}
	certs := &certificates{files: files, last: conf}
	return stdlib.OpenDB(*conf, stdlib.OptionBeforeConnect(func(_ context.Context, conf *pgx.ConnConfig) error {
		now := certs.now(rawURL)
		conf.TLSConfig, conf.Fallbacks = now.TLSConfig, now.Fallbacks
		if now := login(); now != nil {
			conf.User = now.Username()
			conf.Password, _ = now.Password()
		}
		return nil
	}), stdlib.OptionAfterConnect(func(ctx context.Context, conn *pgx.Conn) error {
		is := conn.PgConn().ParameterStatus("server_encoding")
		if is != "SQL_ASCII" && (is == encoding || encoding == "") { // the server converts any other, but for SQL_ASCII, which is none
			return nil
		}
		return errors.Join(fmt.Errorf("%w: %s, want UTF8: make one by CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0", ErrEncoding, is), conn.Close(ctx))
	})), nil
}

// ErrEncoding reports a database whose texts have another encoding than names.
var ErrEncoding = errors.New("encoding of the database")

func openMySQL(u *url.URL, login func() *url.Userinfo) (*sql.DB, error) {
	conf, err := mysql.ParseDSN("/?" + u.RawQuery)
	if err != nil {
		return nil, errors.New("database: the driver does not take an option in the query of the URL")
	}
	host, port := u.Hostname(), u.Port()
	if port == "" {
		port = "3306"
	}
	conf.DBName = strings.Trim(u.Path, "/")
	err = conf.Apply(mysql.Charset("utf8mb4", ""), mysql.BeforeConnect(func(_ context.Context, conf *mysql.Config) error {
		if now := login(); now != nil {
			conf.User = now.Username()
			conf.Passwd, _ = now.Password()
		}
		return nil
	}))
	if err != nil {
		return nil, err
	}
	conf.Net, conf.Addr = "tcp", net.JoinHostPort(host, port)
	if conf.Timeout == 0 {
		conf.Timeout = dialTimeout
	}
	conf.Logger = &mysql.NopLogger{} // errors are returned as well
	conf.InterpolateParams = true    // one round trip a statement, and no limit of 65,535 values
	if !u.Query().Has("maxAllowedPacket") {
		conf.MaxAllowedPacket = 0 // the server's: it ends a connection that sends more, and an error would not tell why
	}
	conf.ClientFoundRows = false // rows that stay as they are don't count
	if conf.Params == nil {
		conf.Params = make(map[string]string)
	}
	maps.Copy(conf.Params, map[string]string{"sql_mode": "'STRICT_ALL_TABLES'", "autocommit": "1", "completion_type": "0", "time_zone": "'+00:00'", "unique_checks": "1",
		"sql_select_limit": "18446744073709551615", "sql_auto_is_null": "0"})
	connector, err := mysql.NewConnector(conf)
	if err != nil {
		return nil, fmt.Errorf("database: %w", err)
	}
	return sql.OpenDB(connector), nil
}
