package ledger

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"testing"
)

// TestVersionsAreTheNamesOfFiles: a version is a file's place among the others, so a name that leaves one out would let a later file
// take the place of one that databases have already.
func TestVersionsAreTheNamesOfFiles(t *testing.T) {
	var names [2][]string
	for kind, d := range []*dialect{postgres, mysqlDialect} {
		for i, file := range (schema{&database{d: d}}).files() {
			names[kind] = append(names[kind], path.Base(file))
			if want := fmt.Sprintf("%04d_", i+1); !strings.HasPrefix(path.Base(file), want) {
				t.Errorf("%s: version %d, want a name that begins with %s", file, i+1, want)
			}
		}
	}
	if fmt.Sprint(names[0]) != fmt.Sprint(names[1]) || len(names[0]) == 0 {
		t.Errorf("the kinds of databases have %v and %v", names[0], names[1])
	}
}

func TestTablesOfALaterVersionAreRefused(t *testing.T) {
	both(t, func(t *testing.T, s *Store) {
		if err := s.Migrate(t.Context()); err != nil {
			t.Errorf("a second time: %v", err)
		}
		if _, err := s.db.ExecContext(t.Context(), "INSERT INTO rank_schema (version) VALUES (99)"); err != nil {
			t.Fatal(err)
		}
		if err := s.Migrate(t.Context()); !errors.Is(err, ErrSchema) {
			t.Errorf("%v, want %v", err, ErrSchema)
		}
	})
}
