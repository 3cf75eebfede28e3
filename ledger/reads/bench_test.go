package reads

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"rankcache"
	"rankcache/internal/testkit"
	"rankcache/ledger"
	"rankcache/wire"
)

// BenchmarkReads asks for a board of 57,000 members over HTTP: its top 50, and a member in
// the middle.
func BenchmarkReads(b *testing.B) {
	const members = 57_000
	for _, kind := range testkit.SQLKinds {
		store, err := ledger.Open(testkit.Database(b, kind), nil)
		must(b, err)
		b.Cleanup(func() { store.Close() })
		must(b, store.Migrate(b.Context()))
		must(b, store.MakeRankIndex(b.Context()))
		must(b, store.Begin(b.Context(), "topic", 0, 0))
		fillBoard(b, store, members)
		mux := http.NewServeMux()
		New(Config{Store: store, Current: time.Now, Log: slog.New(slog.DiscardHandler), Registerer: prometheus.NewRegistry()}).Register(mux)
		server := httptest.NewServer(mux)
		b.Cleanup(server.Close)
		client, err := NewClient(server.URL, nil)
		must(b, err)
		began := time.Now()
		must(b, rankcache.One(b.Context(), client, rankcache.Query{Board: "bench", Limit: 50}).Err)
		b.Logf("%s: the first read, which proves the board: %v", kind, time.Since(began))
		b.Run(kind+"/top50", func(b *testing.B) {
			for b.Loop() {
				must(b, rankcache.One(b.Context(), client, rankcache.Query{Board: "bench", Limit: 50}).Err)
			}
		})
		friends := rankcache.Query{Board: "bench", Mode: rankcache.Competition}
		for range rankcache.MaxTop {
			friends.Members = append(friends.Members, fmt.Sprint("m", rand.IntN(members)))
		}
		b.Run(kind+"/friends", func(b *testing.B) {
			for b.Loop() {
				must(b, rankcache.One(b.Context(), client, friends).Err)
			}
		})
		b.Run(kind+"/middle", func(b *testing.B) {
			for b.Loop() {
				must(b, rankcache.One(b.Context(), client, rankcache.Query{Board: "bench", Members: []string{fmt.Sprint("m", members/2)}}).Err)
			}
		})
	}
}

func fillBoard(b *testing.B, store *ledger.Store, members int) {
	b.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	u := wire.LedgerUpdate{Update: wire.Update{Board: "bench", Op: wire.OpSet, Run: 7, HasSum: true, At: 1700000000000}, Class: "gift", Dims: map[string]string{}, Tag: "t"}
	batch, first := ledger.NewBatch("topic"), int64(0)
	for i := range int64(members) {
		change := u
		u.Sum = (u.Sum + wire.Hash(fmt.Sprint("m", i), float64(i))) & (1<<48 - 1)
		change.Member, change.Score, change.Sum, change.Seq, change.Members = fmt.Sprint("m", i), float64(i), u.Sum, uint64(i)+1, int(i)+1
		change.OrderID = fmt.Sprint("o", r.Uint64())
		if !batch.Add(&change, 0, first, i) {
			_, err := store.Apply(b.Context(), batch)
			must(b, err)
			batch, first = ledger.NewBatch("topic"), i
			batch.Add(&change, 0, first, i)
		}
	}
	_, err := store.Apply(b.Context(), batch)
	must(b, err)
}
