package doctor

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// CheckDatabase is the name of the check on which the others of the database depend.
const CheckDatabase = "database"

const checkSchema = "database-schema"

// Inspected is the ledger's database. Its methods change nothing.
type Inspected interface {
	ServerVersion(context.Context) (string, error)
	Encodings(context.Context) (database, session string, err error)
	Version(context.Context) (int, error) // of the tables; 0: there are none
	Wanted() int                          // version that this program works with
	MayCreate(context.Context) (bool, error)
	Denied(context.Context) ([]string, error)
	Pooled(context.Context) (bool, error) // whether a pooler stands before it
}

// Database has the checks of the ledger's database. The caller closes it.
type Database struct {
	Store    Inspected
	Postgres bool // else MariaDB or MySQL
}

// Checks returns the checks of the database; all depend on the first.
func (d Database) Checks() []Check {
	return []Check{
		{CheckDatabase, nil, d.reachable},
		{checkSchema, []string{CheckDatabase}, d.schema},
		{"database-rights", []string{checkSchema}, d.rights},
	}
}

func (d Database) reachable(ctx context.Context) Verdict {
	version, err := d.Store.ServerVersion(ctx)
	if err != nil {
		return Verdict{Fail, explain(err)}
	}
	database, session, err := d.Store.Encodings(ctx)
	if err != nil {
		return Verdict{Fail, explain(err)}
	}
	v := judgeServer(version, d.Postgres)
	v.Advice += fmt.Sprintf("; encoding of the database %s, of sessions %s", database, session)
	return v
}

func (d Database) schema(ctx context.Context) Verdict {
	version, err := d.Store.Version(ctx)
	if err != nil {
		return Unasked(err)
	}
	create := true
	if version < d.Store.Wanted() {
		if pooled, err := d.Store.Pooled(ctx); err != nil || pooled {
			return judgePooled(version, d.Store.Wanted(), err)
		}
		if create, err = d.Store.MayCreate(ctx); err != nil {
			return Unasked(fmt.Errorf("the right to make tables: %w", err))
		}
	}
	return judgeSchema(version, d.Store.Wanted(), create, d.Postgres)
}

func (d Database) rights(ctx context.Context) Verdict {
	version, err := d.Store.Version(ctx)
	if err == nil && version != d.Store.Wanted() {
		return Verdict{Skip, "not checked: the tables are not this version's yet"}
	}
	denied, err := d.Store.Denied(ctx)
	switch {
	case err != nil:
		return Unasked(err)
	case len(denied) > 0:
		return failf("the user lacks %s: grant SELECT, INSERT, UPDATE and DELETE on the rank_… tables", list(denied))
	}
	return okf("the user may read and change the rank_… tables")
}

// release is the first major and minor number in a server's version.
var release = regexp.MustCompile(`(\d+)(?:\.(\d+))?`)

// judgeServer judges a server's own words about its version.
func judgeServer(version string, isPostgres bool) Verdict {
	name, major, minor := "MySQL", 8, 0
	switch low := strings.ToLower(version); {
	case isPostgres:
		name, major = "PostgreSQL", 11
	case strings.Contains(low, "mariadb"):
		name, major, minor = "MariaDB", 10, 2
	}
	m := release.FindStringSubmatch(version)
	if m == nil {
		return warnf("the version of the database is unknown (%.80s): want %s %d.%d or newer", version, name, major, minor)
	}
	gotMajor, _ := strconv.Atoi(m[1]) // digits
	gotMinor, _ := strconv.Atoi(m[2])
	if gotMajor < major || gotMajor == major && gotMinor < minor {
		return failf("%s %s is not supported: want %d.%d or newer", name, m[0], major, minor)
	}
	return okf("%s %s answers", name, m[0])
}

// judgePooled judges tables that are of an earlier version behind a pooler, through which they can't be changed.
func judgePooled(version, wanted int, err error) Verdict {
	if err != nil {
		return Unasked(err)
	}
	return failf("the tables are of version %d (0: none), this program wants %d, and a pooler stands before the database, such as PgBouncer: run rankcache ledger migrate with the URL of the server itself", version, wanted)
}

// judgeSchema judges the version of the tables; create is whether the user may make some.
func judgeSchema(version, wanted int, create, isPostgres bool) Verdict {
	const remedy = "run rankcache ledger migrate as a user that may"
	switch {
	case version > wanted:
		return failf("the tables are of version %d, this program knows %d: update it", version, wanted)
	case version == wanted:
		return okf("the tables are of version %d, as this program wants them", version)
	case create:
		return okf("the tables are of version %d (0: none), and the user may make those of version %d: rankcache ledger does so at its start, or %s", version, wanted, remedy)
	case isPostgres:
		return failf("the tables are of version %d (0: none), this program wants %d, and the user may not make tables: %s", version, wanted, remedy)
	}
	return warnf("the tables are of version %d (0: none), this program wants %d, and no right of this user to make tables was seen (one by a role is not): %s", version, wanted, remedy)
}
