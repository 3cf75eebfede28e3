package demo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"rankcache"
	"rankcache/class"
	"rankcache/internal/lab/compare"
	"rankcache/internal/lab/servers"
	"rankcache/ledger"
	"rankcache/ledger/reads"
	"rankcache/wire"
)

// demoRace is a class with a ledger. Its last board ended an evening ago, so that only its final is left.
const demoRace = "grand-prix"

// race is the final that the demo shows.
type race struct {
	board class.Board // without an id: there is no database to keep a final in
	url   string      // of the ledger's reads
}

// raceYAML is the class, which no writer has: nobody drives while one watches.
func (d *demoRun) raceYAML() string {
	return fmt.Sprintf("- {name: %s, board: \"demo_%s_race:{period}\", period: %s, keep: %s, order: asc, ops: [best], ledger: true}\n", demoRace, d.run, d.period, demoLife)
}

// pastRace leaves in a database what a controller would have left there of the race, and serves the ledger's reads
// until ctx is done.
func (d *demoRun) pastRace(ctx context.Context) error {
	db, err := servers.StartPostgres(ctx, servers.SQLOptions{})
	if errors.Is(err, servers.ErrNotInstalled) {
		fmt.Fprintln(d.stdout, "Ledger: no PostgreSQL is found, so no final is shown")
		return nil
	}
	if err != nil {
		return err
	}
	d.servers.closers = append(d.servers.closers, db.Close)
	store, err := ledger.Open(db.URL("postgres"), nil)
	if err != nil {
		return err
	}
	d.servers.closers = append(d.servers.closers, store.Close)
	f, err := d.parseRooms([]byte("classes:\n" + d.raceYAML()))
	if err == nil {
		d.race.board, err = f.Class(demoRace).At(nil, d.begun.Add(-24*time.Hour))
	}
	if err == nil {
		err = store.Migrate(ctx)
	}
	if err == nil {
		err = store.SaveFinal(ctx, d.raceFinal(newEvening(d.run, d.members, 5)))
	}
	if err != nil {
		return err
	}
	fmt.Fprintln(d.stdout, "Ledger: the PostgreSQL found on this machine, with the final of a race of yesterday")
	return d.serveReads(ctx, store)
}

// raceFinal is the race's result: three lap times, the lowest first.
func (d *demoRun) raceFinal(e *evening) *ledger.Final {
	b, made := d.race.board, d.race.board.Period.End.Add(time.Minute)
	f := &ledger.Final{MadeAt: made.UnixMilli(), Final: wire.Final{Board: b.ID, Class: demoRace, Tag: b.Period.Tag, Start: b.Period.Start.UnixMilli(), End: b.Period.End.UnixMilli(),
		State: rankcache.State{Run: 1, Seq: 3, HasSum: true}, Members: 3, Form: rankcache.ScoreLowest}}
	for i := range f.Members {
		entry := rankcache.Entry{Member: e.member(uint64(i)), Score: f.Form.Raw(61.5 + float64(i)/4)}
		f.Top, f.State.Sum = append(f.Top, entry), f.State.Sum+wire.Hash(entry.Member, entry.Score)
	}
	f.State.Sum &= wire.SumMask
	return f
}

func (d *demoRun) serveReads(ctx context.Context, store *ledger.Store) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	reads.New(reads.Config{Store: store, Current: time.Now, Log: slog.New(slog.DiscardHandler), Registerer: prometheus.NewRegistry()}).Register(mux)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	d.servers.closers = append(d.servers.closers, server.Close)
	go func() { _ = server.Serve(l) }()
	d.race.url = "http://" + l.Addr().String()
	return nil
}

// raceArgs are the sidecar's arguments for the final: a rooms file of its own, and the ledger.
func (d *demoRun) raceArgs(rooms string) ([]string, error) {
	if d.race.url == "" {
		return nil, nil
	}
	path := filepath.Join(d.dir, "with-race.yaml")
	text := strings.Replace(rooms, "classes:\n", "classes:\n"+d.raceYAML(), 1)
	return []string{"--rooms", path, "--ledger-url", d.race.url}, os.WriteFile(path, []byte(text), 0o600)
}

// tellRace reports the race's final as the sidecar answers it.
func (d *demoRun) tellRace(ctx context.Context) error {
	if d.race.url == "" {
		return nil
	}
	page, err := compare.Fetch(ctx, d.client, fmt.Sprintf("%s/v1/classes/%s/top?at=%s&limit=3&profiles=1", d.base(), demoRace, d.race.board.Period.Tag))
	if err != nil {
		return err
	}
	var line strings.Builder
	for _, e := range page.Entries {
		fmt.Fprintf(&line, "  %d. %s %.3f s", e.Rank, nick(e.Member, e.Profile), e.Score)
	}
	fmt.Fprintf(d.stdout, "* yesterday's race %s, which Redis no longer has, from its %s:%s\n", page.Board, page.Source, line.String())
	return nil
}
