package ledger

import (
	"testing"

	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
)

// The database dies under load and comes back: the ledger waits, and every change is there
// once.
func TestDatabaseDies(t *testing.T) {
	for _, kind := range testkit.SQLKinds {
		t.Run(kind, func(t *testing.T) {
			server := testkit.StartSQL(t, kind, servers.SQLOptions{})
			s := newStore(t, testkit.NewDatabase(t, kind, server.Addr()))
			broker, topic := testkit.Kfake(t).Addr(), testkit.Name(t)
			testkit.CreateTopic(t, broker, topic, 2, nil)
			histories, updates := boards(4, 500)
			produce := records(topic, 2, updates)
			start(t, s, broker, topic, "g")
			for part := range 10 {
				testkit.Produce(t, broker, produce[part*len(produce)/10:(part+1)*len(produce)/10]...)
				if part == 5 {
					if err := server.Crash(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
			}
			await(t, s, len(updates))
			wantProved(t, s, histories)
		})
	}
}
