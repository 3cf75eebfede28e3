package ledger

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
)

// setAll sets what a database's sessions begin with, for all of them, where the kind of database can.
func setAll(t *testing.T, rawURL string, settings ...string) {
	t.Helper()
	u, err := url.Parse(rawURL)
	must(t, err)
	db := testkit.SQL(t, rawURL)
	for _, s := range settings {
		_, err := db.ExecContext(t.Context(), "ALTER DATABASE "+strings.Trim(u.Path, "/")+" SET "+s)
		must(t, err)
	}
}

// namesStay applies changes of a member and an order with letters of many scripts, and reads them as they were.
func namesStay(t *testing.T, s *Store) {
	t.Helper()
	const member, order = "Анна 日本 \\' ü", "заказ\\1"
	h := newHistory("1_2_3", 7)
	first := h.incr(member, 1.1)
	first.OrderID = order
	feed(t, s, 0, first, h.incr(member, 0.1), h.incr("m2", 1048576.9999995232))
	var id, back string
	must(t, s.db.QueryRowContext(t.Context(), "SELECT member, order_id FROM rank_log WHERE seq = 1").Scan(&back, &id))
	if back != member || id != order {
		t.Errorf("member %q and order id %q, want %q and %q", back, id, member, order)
	}
	if p, err := s.Prove(t.Context(), "1_2_3"); err != nil || !p.Proved || p.Members != 2 {
		t.Errorf("%+v, %v", p, err)
	}
}

// Sessions are what the ledger needs, whatever is set for the database or its users.
func TestSessionSettingsAreOurs(t *testing.T) {
	for _, encoding := range []string{"LATIN1", "WIN1252", "SQL_ASCII"} {
		t.Run(encoding, func(t *testing.T) {
			url := testkit.Database(t, "postgres")
			setAll(t, url, "client_encoding = '"+encoding+"'", "standard_conforming_strings = off", "TimeZone = 'Asia/Kolkata'", "DateStyle = 'SQL, DMY'", "extra_float_digits = 0", "backslash_quote = on")
			namesStay(t, newStore(t, url))
			for _, mode := range []string{"simple_protocol", "exec"} {
				namesStay(t, emptied(t, newStore(t, url+"?default_query_exec_mode="+mode+"&client_encoding=LATIN1")))
			}
		})
	}
}

// emptied returns a ledger without rows.
func emptied(t *testing.T, s *Store) *Store {
	t.Helper()
	for _, table := range []string{"rank_log", "rank_score", "rank_board", "rank_offset"} {
		_, err := s.db.ExecContext(t.Context(), "DELETE FROM "+table)
		must(t, err)
	}
	must(t, s.Begin(t.Context(), "topic", 0, 0))
	return s
}

// MariaDB begins sessions as its server says: without autocommit, with fewer rows, in another encoding.
func TestServerSettingsOfMariaDB(t *testing.T) {
	testkit.FullOnly(t, "a MariaDB of its own takes 5 s")
	server, err := servers.StartMariaDB(t.Context(), servers.SQLOptions{Args: []string{"--autocommit=0", "--completion-type=CHAIN", "--character-set-server=latin1",
		"--skip-character-set-client-handshake", "--sql-mode=ANSI,NO_BACKSLASH_ESCAPES", "--default-time-zone=+05:30"}})
	must(t, err)
	t.Cleanup(func() { must(t, server.Close()) })
	url, err := servers.NewDatabase(t.Context(), "mysql", strings.TrimPrefix(strings.TrimSuffix(server.URL(""), "/"), "mysql://root@"), "ledger")
	must(t, err)
	db := testkit.SQL(t, url)
	_, err = db.ExecContext(t.Context(), "SET GLOBAL sql_select_limit = 1")
	must(t, err)
	s := newStore(t, url+"?charset=latin1&autocommit=0")
	for range 3 { // reads outside of transactions, and others behind them
		_, err := s.Version(t.Context())
		must(t, err)
		_, err = s.ServerVersion(t.Context())
		must(t, err)
	}
	namesStay(t, s)
}

// A database of another encoding is refused; one of a business's own books may have one.
func TestDatabaseMustBeUTF8(t *testing.T) {
	url := testkit.Database(t, "postgres")
	for _, encoding := range []string{"LATIN1", "SQL_ASCII"} {
		name := "e" + strings.ToLower(encoding) + url[len(url)-12:]
		_, err := testkit.SQL(t, url).ExecContext(t.Context(), fmt.Sprintf("CREATE DATABASE %s ENCODING '%s' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0", name, encoding))
		must(t, err)
		other := url[:strings.LastIndexByte(url, '/')+1] + name
		s, err := Open(other, nil)
		must(t, err)
		if err := s.Migrate(t.Context()); !errors.Is(err, ErrEncoding) || !strings.Contains(err.Error(), encoding) {
			t.Errorf("%s: %v", encoding, err)
		}
		must(t, s.Close())
		books, err := OpenSQL(other, nil)
		must(t, err)
		var got string
		err = books.QueryRowContext(t.Context(), "SELECT convert_from('\\xfc'::bytea, 'LATIN1')").Scan(&got)
		if encoding == "LATIN1" && (err != nil || got != "ü") || encoding == "SQL_ASCII" && !errors.Is(err, ErrEncoding) {
			t.Errorf("books in %s: %q, %v", encoding, got, err)
		}
		must(t, books.Close())
	}
}

// A connection on which no transaction can be begun is not used again.
func TestBadSessionIsNotKept(t *testing.T) {
	s := newStore(t, testkit.Database(t, "mysql"))
	s.db.SetMaxOpenConns(1)
	for _, statement := range []string{"SET autocommit = 0", "SELECT 1 FROM rank_board"} {
		_, err := s.db.ExecContext(t.Context(), statement)
		must(t, err)
	}
	if _, err := s.Latest(t.Context(), "1_2_3"); err == nil || !strings.Contains(err.Error(), "1568") {
		t.Errorf("the session has a transaction: %v", err)
	}
	if _, err := s.Latest(t.Context(), "1_2_3"); !errors.Is(err, ErrNoBoard) {
		t.Errorf("again: %v", err)
	}
}
