package ledger

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
)

type inspector struct{ *database } // finds out what the ledger's user may do. It changes nothing.

// ServerVersion returns the kind and version of the server in its own words.
func (s inspector) ServerVersion(ctx context.Context) (version string, err error) {
	query := "SELECT CONCAT(VERSION(), ' ', @@version_comment)"
	if s.d.postgres {
		query = "SELECT version()"
	}
	err = s.db.QueryRowContext(ctx, query).Scan(&version)
	return version, err
}

// Encodings returns those of the database and of a session, by the server's names.
func (s inspector) Encodings(ctx context.Context) (database, session string, err error) {
	query := "SELECT @@character_set_database, @@character_set_client"
	if s.d.postgres {
		query = "SELECT current_setting('server_encoding'), current_setting('client_encoding')"
	}
	err = s.db.QueryRowContext(ctx, query).Scan(&database, &session)
	return database, session, err
}

// tableHead finds a table in a migration, and its second column, which may be updated in all of them.
var tableHead = regexp.MustCompile(`CREATE TABLE IF NOT EXISTS (\w+) \(\n.*\n +(\w+)`)

// tables returns the second column of each table of the migrations.
func (s inspector) tables() map[string]string {
	tables := make(map[string]string)
	for _, file := range schema(s).files() {
		text, _ := migrations.ReadFile(file) // embedded, so it is there
		for _, m := range tableHead.FindAllSubmatch(text, -1) {
			tables[string(m[1])] = string(m[2])
		}
	}
	return tables
}

// Denied returns the rights that the user lacks, such as "DELETE on rank_log", by statements that touch no row.
func (s inspector) Denied(ctx context.Context) (rights []string, err error) {
	tables := s.tables()
	overriding := ""
	if s.d.postgres {
		overriding = " OVERRIDING SYSTEM VALUE"
	}
	for _, table := range slices.Sorted(maps.Keys(tables)) {
		for _, try := range [][2]string{
			{"SELECT", "SELECT 1 FROM %[1]s WHERE 1 = 0"},
			{"INSERT", "INSERT INTO %[1]s" + overriding + " SELECT * FROM %[1]s WHERE 1 = 0"},
			{"UPDATE", "UPDATE %[1]s SET %[2]s = %[2]s WHERE 1 = 0"},
			{"DELETE", "DELETE FROM %[1]s WHERE 1 = 0"},
		} {
			_, err := s.db.ExecContext(ctx, fmt.Sprintf(try[1], table, tables[table]))
			switch {
			case isDenied(err):
				rights = append(rights, try[0]+" on "+table)
			case err != nil:
				return nil, fmt.Errorf("trying %s on %s: %w", try[0], table, err)
			}
		}
	}
	return rights, nil
}

// MayCreate reports whether the user may make tables. In MariaDB and MySQL a right that comes by a role is not seen.
func (s inspector) MayCreate(ctx context.Context) (may bool, err error) {
	query := "SELECT COALESCE(has_schema_privilege(current_schema(), 'CREATE'), false)"
	if !s.d.postgres {
		const mine = " WHERE privilege_type = 'CREATE' AND grantee = CONCAT('''', REPLACE(CURRENT_USER(), '@', '''@'''), '''')"
		query = "SELECT EXISTS (SELECT 1 FROM information_schema.user_privileges" + mine +
			") OR EXISTS (SELECT 1 FROM information_schema.schema_privileges" + mine + " AND DATABASE() LIKE table_schema)"
	}
	err = s.db.QueryRowContext(ctx, query).Scan(&may)
	return may, err
}
