// Package try watches a Redis for some seconds and tells what sidecars would spare it. It reads INFO commandstats twice,
// and in between, with consent, MONITOR, which names the keys. The entry function is [Watch].
package try

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache/internal/tick"
)

const (
	// maxLines bounds what MONITOR costs a busy Redis, and the memory for keys that are told apart.
	maxLines = 500_000
	// shown is how many keys and commands are printed.
	shown = 8
)

// Report is what was seen; its JSON is stable. Rates are per second, shares from 0 to 1.
type Report struct {
	Seconds  float64   `json:"seconds"`
	Calls    float64   `json:"calls"`
	Commands []Command `json:"commands"`       // the most called first
	Keys     []Key     `json:"keys,omitempty"` // the most read first; none without MONITOR
	// What Redis would be spared if these keys were super-hot; without keys: if all sorted sets were.
	Spared     float64 `json:"spared"`      // of its calls
	SparedTime float64 `json:"spared_time"` // of its time in commands
}

// Command is a command that Redis was given. Local is how many of its calls would be answered from memory.
type Command struct {
	Name  string  `json:"name"`
	Calls float64 `json:"calls"`
	Local float64 `json:"local"`
	us    float64
}

// Key is a sorted set, and its reads that would be answered from memory.
type Key struct {
	Key     string             `json:"key"`
	Members int64              `json:"members"`
	Reads   float64            `json:"reads"`
	Of      map[string]float64 `json:"of"` // by command
}

// Watch watches for that long, or until ctx is done; local are the commands that a sidecar answers from memory. Without
// consent to MONITOR no key is named. It changes nothing.
func Watch(ctx context.Context, client *redis.Client, length time.Duration, local []string, consent bool) (*Report, error) {
	before, err := commandStats(ctx, client)
	if err != nil {
		return nil, err
	}
	r, begin := &Report{}, time.Now()
	if consent {
		err = r.monitor(ctx, client, length, local)
	} else if !tick.Sleep(ctx, length) {
		err = ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	r.Seconds = time.Since(begin).Seconds()
	ofKeys := r.keepKeys(ctx, client)
	after, err := commandStats(ctx, client)
	for name, c := range after {
		c.Calls, c.us = (c.Calls-before[name].Calls)/r.Seconds, c.us-before[name].us
		if c.Calls <= 0 || name == "INFO" || name == "MONITOR" {
			continue
		}
		if slices.Contains(local, name) {
			c.Local = c.Calls
		}
		if consent {
			c.Local = min(c.Local, ofKeys[name])
		}
		r.Commands = append(r.Commands, c)
	}
	r.judge()
	return r, err
}

// commandStats returns how often each command was called since Redis started, and the µs that it took.
func commandStats(ctx context.Context, client *redis.Client) (map[string]Command, error) {
	text, err := client.Info(ctx, "commandstats").Result()
	if err != nil {
		return nil, fmt.Errorf("INFO commandstats, which has what Redis is asked: %w", err)
	}
	all := map[string]Command{}
	for line := range strings.Lines(text) {
		name, fields, _ := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":")
		c := Command{Name: strings.ToUpper(name)}
		if n, _ := fmt.Sscanf(fields, "calls=%g,usec=%g", &c.Calls, &c.us); n == 2 { // not the heading
			all[c.Name] = c
		}
	}
	return all, nil
}

// monitor counts by key the reads of MONITOR that could be answered from memory.
func (r *Report) monitor(ctx context.Context, client *redis.Client, length time.Duration, local []string) error {
	var conn net.Conn // of a client of its own, which logs in
	at, dial := *client.Options(), client.Options().Dialer
	at.Dialer = func(ctx context.Context, network, addr string) (c net.Conn, err error) {
		c, err = dial(ctx, network, addr)
		conn = c
		return c, err
	}
	one := redis.NewClient(&at)
	defer one.Close()
	if err := one.Ping(ctx).Err(); err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	begin, lines, keys := time.Now(), bufio.NewReaderSize(conn, 1<<20), map[string]*Key{}
	err := conn.SetDeadline(begin.Add(length))
	if err == nil {
		_, err = conn.Write([]byte("MONITOR\r\n"))
	}
	for n, line := 0, ""; n < maxLines && err == nil; n++ {
		if line, err = lines.ReadString('\n'); err == nil && line[0] == '-' {
			err = errors.New(strings.TrimSpace(line[1:]))
		}
		if name, key, ok := parse(line); ok && slices.Contains(local, name) {
			if keys[key] == nil {
				keys[key] = &Key{Key: key, Of: map[string]float64{}}
			}
			keys[key].Of[name]++
		}
	}
	for _, k := range keys {
		for name := range k.Of {
			k.Of[name] /= time.Since(begin).Seconds()
			k.Reads += k.Of[name]
		}
		r.Keys = append(r.Keys, *k)
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) && err != nil {
		return fmt.Errorf("MONITOR: %w", err)
	}
	return nil
}

// parse returns command and key of a line such as `+1.2 [0 127.0.0.1:6] "zrevrange" "board" "0" "49"`. What a script
// reads has neither: it stays with Redis.
func parse(line string) (name, key string, ok bool) {
	from, text, found := strings.Cut(line, `] "`)
	name, text, ok = strings.Cut(text, `" `)
	quoted, _ := strconv.QuotedPrefix(text) // "" is no key
	key, err := strconv.Unquote(quoted)
	return strings.ToUpper(name), key, ok && found && err == nil && !strings.HasSuffix(from, " lua")
}

// keepKeys keeps the keys that were read most, and returns how often these were, by command.
func (r *Report) keepKeys(ctx context.Context, client *redis.Client) map[string]float64 {
	of := map[string]float64{}
	slices.SortFunc(r.Keys, func(a, b Key) int { return cmp.Or(cmp.Compare(b.Reads, a.Reads), cmp.Compare(a.Key, b.Key)) })
	r.Keys = r.Keys[:min(len(r.Keys), shown)]
	for i, k := range r.Keys {
		r.Keys[i].Members = client.ZCard(ctx, k.Key).Val() // 0 of one that has gone
		for name, n := range k.Of {
			of[name] += n
		}
	}
	return of
}

func (r *Report) judge() {
	slices.SortFunc(r.Commands, func(a, b Command) int { return cmp.Compare(b.Calls, a.Calls) })
	us, spared, sparedUs := 0.0, 0.0, 0.0
	for _, c := range r.Commands {
		r.Calls, us = r.Calls+c.Calls, us+c.us
		spared, sparedUs = spared+c.Local, sparedUs+c.us*c.Local/c.Calls
	}
	r.Spared, r.SparedTime = spared/max(r.Calls, 1), sparedUs/max(us, 1)
}

// Print writes the report for people: one screen.
func (r *Report) Print(to io.Writer) error {
	table, of := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0), "all sorted sets"
	if len(r.Keys) > 0 {
		of = "these keys"
		fmt.Fprintln(table, "READS/S\tMEMBERS\tBY\tKEY")
	}
	for _, k := range r.Keys {
		by := slices.SortedFunc(maps.Keys(k.Of), func(a, b string) int { return cmp.Compare(k.Of[b], k.Of[a]) })
		fmt.Fprintf(table, "%.1f\t%d\t%.40s\t%.60q\n", k.Reads, k.Members, strings.Join(by, " "), k.Key)
	}
	fmt.Fprintln(table, "\nCALLS/S\tFROM MEMORY\tCOMMAND")
	for _, c := range r.Commands[:min(len(r.Commands), shown)] {
		fmt.Fprintf(table, "%.1f\t%.1f\t%s\n", c.Calls, c.Local, c.Name)
	}
	fmt.Fprintf(table, "\nIf %s were super-hot boards, Redis would be spared %.0f %% of %.0f commands/s, and %.0f %% of its time in commands.\n",
		of, 100*r.Spared, r.Calls, 100*r.SparedTime)
	return table.Flush()
}
