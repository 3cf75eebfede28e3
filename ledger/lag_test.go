package ledger

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"rankcache/internal/testkit"
)

// readOnly has a PostgreSQL database refuse writes, as a replica does after a failover, or take them again.
func readOnly(t testing.TB, admin *sql.DB, on bool) {
	t.Helper()
	var name string
	must(t, admin.QueryRow("SELECT current_database()").Scan(&name))
	_, err := admin.Exec(fmt.Sprintf("BEGIN READ WRITE; ALTER DATABASE %s SET default_transaction_read_only = %t; COMMIT", name, on))
	must(t, err)
	_, err = admin.Exec("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
	must(t, err)
}

// TestLagWhileNothingIsWritten: a database that answers and refuses writes is told as failing, and what waits for it grows.
func TestLagWhileNothingIsWritten(t *testing.T) {
	url := testkit.Database(t, "postgres")
	s, admin := newStore(t, url), testkit.SQL(t, url)
	broker, topic := testkit.Kfake(t).Addr(), testkit.Name(t)
	testkit.CreateTopic(t, broker, topic, 2, nil)
	histories, updates := boards(4, 10)
	produce := records(topic, 2, updates)
	l, _ := start(t, s, broker, topic, "g")
	testkit.Produce(t, broker, produce[:10]...)
	await(t, s, 10)

	readOnly(t, admin, true)
	testkit.Produce(t, broker, produce[10:]...)
	lag := func(want int, why string) {
		t.Helper()
		testkit.Eventually(t, testTimeout, func() error {
			metric := testutil.ToFloat64(l.metrics.lag.WithLabelValues("0")) + testutil.ToFloat64(l.metrics.lag.WithLabelValues("1"))
			err := l.WriteError()
			if st := l.Status(); st.Behind != int64(want) || metric != float64(want) || (err == nil) != (why == "") || err != nil && !strings.Contains(err.Error(), why) {
				return fmt.Errorf("%d changes behind, in metrics %v, writes: %v; want %d, %q", st.Behind, metric, err, want, why)
			}
			return nil
		})
	}
	lag(len(updates)-10, "read-only transaction")
	must(t, s.Ping(t.Context()))

	readOnly(t, admin, false)
	await(t, s, len(updates))
	lag(0, "")
	wantProved(t, s, histories)
}
