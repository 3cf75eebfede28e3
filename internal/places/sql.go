package places

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"
)

// inLedger asks each table once.
func (f *Finder) inLedger(ctx context.Context, member string) (all []Found) {
	for i := range tables {
		one := Found{Place: "ledger: " + tables[i].name}
		if f.DB == nil {
			one.Unseen = "no --database"
		} else if err := f.inTable(ctx, &tables[i], member, &one); err != nil {
			one = Found{Place: one.Place, Unseen: fmt.Sprintf("%v; is the database that of rankcache ledger, and migrated?", err), Failed: true}
		}
		all = append(all, one)
	}
	return all
}

func (f *Finder) inTable(ctx context.Context, t *table, member string, found *Found) error {
	query, args := f.query(t, member)
	var at sql.NullInt64
	var where sql.NullString
	if err := f.DB.QueryRowContext(ctx, query, args...).Scan(&found.Count, &at, &where); err != nil {
		return err
	}
	if found.Where = where.String; at.Valid {
		oldest := time.UnixMilli(at.Int64).UTC()
		found.Oldest = &oldest
	}
	if found.Count > 0 {
		if found.Stays = "as long as the ledger keeps the rows of its classes"; len(t.is) > 0 {
			found.Stays = "a day, or two order lives, after the board has forgotten it, of a closed one after Redis is without it (rank_forget); else " + found.Stays
		}
	}
	return nil
}

// query counts the rows with the member, with the oldest and the place of one.
func (f *Finder) query(t *table, member string) (query string, args []any) {
	var any []string
	add := func(columns []string, mysql, postgres, text string) {
		for _, c := range columns {
			condition := mysql
			if args = append(args, text); f.Postgres {
				condition = strings.Replace(postgres, "?", fmt.Sprint("$", len(args), "::text"), 1)
			}
			any = append(any, fmt.Sprintf(condition, c))
		}
	}
	add(t.is, "%s = ?", "%s = ?", member)
	for _, writing := range writings(member) {
		add(t.texts, "INSTR(%s, ?) > 0", "strpos(%s, ?) > 0", writing)
		add(t.bytes, "INSTR(%s, ?) > 0", "position(convert_to(?, 'UTF8') in %s) > 0", writing)
	}
	at, where := cmp.Or(t.at, "NULL"), "board"
	if t.name == "rank_bad" {
		where = "topic"
	}
	return "SELECT count(*), min(" + at + "), min(" + where + ") FROM " + t.name + " WHERE " + strings.Join(any, " OR "), args
}
