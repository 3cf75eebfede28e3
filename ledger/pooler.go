package ledger

import (
	"context"
	"database/sql"
	"errors"

	"github.com/jackc/pgx/v5/stdlib"
)

// ErrPooled reports that tables or their index are to be changed through a pooler. The lock of those that do belongs to
// a session of the server: through a pooler it may be left behind, or be asked for in another session.
var ErrPooled = errors.New("a pooler stands before the database, such as PgBouncer: run rankcache ledger migrate with the URL of the server itself")

// session returns a connection that is one session, for the lock of table changes. The caller closes it.
func (s *database) session(ctx context.Context) (*sql.Conn, error) {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	pooled, err := s.pools(ctx, conn)
	if err == nil && pooled {
		err = ErrPooled
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// Pooled reports whether a pooler stands before PostgreSQL.
func (s *database) Pooled(ctx context.Context) (bool, error) {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return false, err
	}
	defer conn.Close()
	return s.pools(ctx, conn)
}

// pools compares the process that the connection was told at its start with the one that serves it.
func (s *database) pools(ctx context.Context, conn *sql.Conn) (pooled bool, err error) {
	if !s.d.postgres {
		return false, nil
	}
	var serves uint32
	if err := conn.QueryRowContext(ctx, "SELECT pg_backend_pid()").Scan(&serves); err != nil {
		return false, err
	}
	err = conn.Raw(func(driver any) error {
		pooled = driver.(*stdlib.Conn).Conn().PgConn().PID() != serves
		return nil
	})
	return pooled, err
}
