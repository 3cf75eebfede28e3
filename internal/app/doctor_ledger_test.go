package app

import (
	"net/url"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"rankcache/internal/doctor"
	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
	"rankcache/ledger"
)

// With a database, doctor checks the server, the tables, the rights and the topic.
func TestDoctorOnTheLedger(t *testing.T) {
	t.Parallel()
	brokers := testkit.Kafka(t)
	for _, kind := range testkit.SQLKinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			database, topic, commands := testkit.Database(t, kind), testkit.Name(t), testkit.Name(t)
			at := func(database string) (map[string]doctor.Finding, string) {
				found, _, text := examine(t, "--redis", "redis://"+testkit.Redis(t), "--kafka", brokers, "--database", database,
					"--topic-ledger", topic, "--topic-commands", commands, "--key-rooms", testkit.Name(t))
				return found, text
			}
			found, _ := at(database)
			expect(t, found, "database", "ok: answers; encoding of the database "+map[string]string{"postgres": "UTF8, of sessions UTF8", "mysql": ""}[kind])
			expect(t, found, "database-schema", "ok: (0: none), and the user may make")
			expect(t, found, "database-rights", "skip")
			expect(t, found, "ledger-topic", "fail: there is no topic "+topic)
			expect(t, found, "ledger-lag", "skip")

			if kind == "postgres" {
				found, _ = at(testkit.PooledDatabase(t, database))
				expect(t, found, "database", "ok: answers")
				expect(t, found, "database-schema", "fail: a pooler stands before the database")
			}

			testkit.CreateTopic(t, brokers, topic, 2, map[string]string{"retention.ms": "86400000"})
			testkit.CreateTopic(t, brokers, commands, 1, nil)
			testkit.Produce(t, brokers, &kgo.Record{Topic: topic, Value: []byte("x")}, &kgo.Record{Topic: topic, Value: []byte("y")})
			store, err := ledger.Open(database, nil)
			must(t, err)
			defer store.Close()
			must(t, store.Migrate(t.Context()))
			found, _ = at(database)
			expect(t, found, "database-schema", "ok: as this program wants them")
			expect(t, found, "database-rights", "ok")
			expect(t, found, "ledger-topic", "warn: keeps changes for 24h")
			expect(t, found, "ledger-lag", "ok: 2 changes are not written yet, 2 of 2 partitions were never read")
			must(t, store.Begin(t.Context(), topic, 0, 7))
			found, _ = at(database)
			expect(t, found, "ledger-lag", "fail: it was made anew")

			found, text := at(readOnly(t, kind, database))
			expect(t, found, "database-rights", "fail: the user lacks INSERT on rank_bad, UPDATE on rank_bad, DELETE on rank_bad")
			found, more := at("postgres://nobody:hush-hush@127.0.0.1:1/none")
			expect(t, found, "database", "fail: nothing listens")
			expect(t, found, "database-schema", "skip")
			if strings.Contains(text+more, "hush") {
				t.Errorf("a password is shown: %s %s", text, more)
			}
		})
	}
}

// A database that went away after its first check has no finding about its tables or rights.
func TestDoctorOnADatabaseThatIsAway(t *testing.T) {
	for _, kind := range testkit.SQLKinds {
		store, err := ledger.Open(servers.SQLURL(kind, "127.0.0.1:1", "none"), nil)
		must(t, err)
		for _, check := range (doctor.Database{Store: store, Postgres: kind == "postgres"}).Checks()[1:] {
			if v := check.Look(t.Context()); v.Status != doctor.Unknown {
				t.Errorf("%s, %s: %s: %s", kind, check.Name, v.Status, v.Advice)
			}
		}
		store.Close()
	}
}

// readOnly returns the URL of a user that may only read the database.
func readOnly(t *testing.T, kind, database string) string {
	u, err := url.Parse(database)
	must(t, err)
	db, name := testkit.SQL(t, database), strings.Trim(u.Path, "/")
	user := name + "r"
	statements := []string{"CREATE USER " + user + " IDENTIFIED BY 'hush-hush'", "GRANT SELECT ON " + name + ".* TO " + user}
	if kind == "postgres" {
		statements = []string{"CREATE ROLE " + user + " LOGIN PASSWORD 'hush-hush'", "GRANT SELECT ON ALL TABLES IN SCHEMA public TO " + user}
	}
	for _, s := range statements {
		_, err := db.ExecContext(t.Context(), s)
		must(t, err)
	}
	u.User = url.UserPassword(user, "hush-hush")
	return u.String()
}
