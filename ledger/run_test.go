package ledger

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
)

// loaded is a ledger that consumes while a fault happens.
type loaded struct {
	*testing.T
	store     *Store
	ledger    *Ledger
	histories []*history
	records   []*kgo.Record
}

// load starts a ledger and produces n changes of each of four boards, half of them before the fault.
func load(t *testing.T, s *Store, broker string, copies int16, n int, fault func(l *loaded)) {
	topic := testkit.Name(t)
	first, _, _ := strings.Cut(broker, ",")
	testkit.CreateReplicated(t, first, topic, 2, copies, nil)
	histories, updates := boards(4, n)
	l := &loaded{T: t, store: s, histories: histories, records: records(topic, 2, updates)}
	l.ledger, _ = start(t, s, broker, topic, "g")
	half := len(l.records) / 2
	testkit.Produce(t, first, l.records[:half]...)
	l.records = l.records[half:]
	fault(l)
	testkit.Eventually(t, 5*time.Minute, func() error { // a database that was full takes its time on a busy machine
		got, err := tryCount(t, s, "rank_log")
		if err == nil && got != len(updates) {
			err = fmt.Errorf("%d rows, want %d", got, len(updates))
		}
		return err
	})
	wantProved(t, s, histories)
}

// produce writes the rest, in ten parts, with something after the first.
func (l *loaded) produce(broker string, after func() error) {
	l.Helper()
	for part := range 10 {
		testkit.Produce(l, broker, l.records[part*len(l.records)/10:(part+1)*len(l.records)/10]...)
		if part == 0 {
			if err := after(); err != nil {
				l.Fatal(err)
			}
		}
	}
}

// The database dies, restarts or hangs under load and comes back: the ledger waits, and every change is there
// once.
func TestDatabaseDies(t *testing.T) {
	t.Parallel()
	for _, kind := range testkit.SQLKinds {
		server := testkit.StartSQL(t, kind, servers.SQLOptions{})
		for name, fault := range map[string]func(context.Context) error{
			"dies":     server.Crash,
			"restarts": server.RestartFast,
			"hangs": func(ctx context.Context) error {
				resume, err := server.Hang(ctx)
				time.AfterFunc(time.Second, func() { _ = resume() })
				return err
			},
		} {
			t.Run(kind+"/"+name, func(t *testing.T) {
				broker := testkit.Kfake(t).Addr()
				load(t, newStore(t, testkit.NewDatabase(t, kind, server.Addr())), broker, 1, 500, func(l *loaded) {
					l.produce(broker, func() error { return fault(t.Context()) })
				})
			})
		}
	}
}

// fullDisk is the size at which the database's files stop to grow: more than one of PostgreSQL's log.
const fullDisk = 24 << 20

// The database's disk is full: the ledger waits until there is more, and every change is there once.
func TestDatabaseFillsItsDisk(t *testing.T) {
	testkit.FullOnly(t, "filling a disk takes 300,000 rows")
	for _, kind := range testkit.SQLKinds {
		t.Run(kind, func(t *testing.T) {
			options := servers.SQLOptions{}
			if kind == "mysql" {
				options.Args = []string{"--innodb-log-file-size=8M"} // else its log is what is too large
			}
			server, broker := testkit.StartSQL(t, kind, options), testkit.Kfake(t).Addr()
			undo, err := servers.LimitFiles(fullDisk)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(server.Restart(t.Context()), undo()); err != nil {
				t.Fatal(err)
			}
			load(t, newStore(t, testkit.NewDatabase(t, kind, server.Addr())), broker, 1, 75_000, func(l *loaded) {
				testkit.Produce(t, broker, l.records...)
				testkit.Eventually(t, 5*testTimeout, func() error {
					if st := l.ledger.Status(); st.Waiting != "database" || st.Rows == 0 || time.Since(st.WrittenAt) < time.Second {
						return fmt.Errorf("the disk is not full: %+v", st)
					}
					return nil
				})
				t.Logf("full with %d of 300,000 rows", l.ledger.Status().Rows)
				if err := server.Crash(t.Context()); err != nil { // the next process has no limit
					t.Fatal(err)
				}
			})
		})
	}
}

// The broker that leads a partition of the ledger's topic dies: another goes on, and every change is there once.
func TestLedgerTopicLosesALeader(t *testing.T) {
	testkit.FullOnly(t, "three brokers take 20 s")
	brokers := testkit.StartKafkaCluster(t, 3, map[string]string{"min.insync.replicas": "2"})
	s := newStore(t, testkit.Database(t, "postgres"))
	load(t, s, strings.Join(brokers.Addrs(), ","), 3, 2000, func(l *loaded) {
		leader, err := brokers.Leader(t.Context(), l.records[0].Topic, 0)
		if err != nil {
			t.Fatal(err)
		}
		other := brokers.Brokers[0]
		if other == leader {
			other = brokers.Brokers[1]
		}
		if err := leader.Kill(); err != nil {
			t.Fatal(err)
		}
		l.produce(other.Addr(), func() error { return leader.Restart(t.Context()) })
	})
}
