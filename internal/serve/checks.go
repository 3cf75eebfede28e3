package serve

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/hotkey"
	"rankcache/internal/cli"
	"rankcache/internal/doctor"
	"rankcache/internal/roomsync"
	"rankcache/ledger"
	"rankcache/ledger/reads"
	"rankcache/origin"
	"rankcache/profile"
	"rankcache/replay/admission"
	"rankcache/rooms"
)

type targets struct {
	*Options
	roles   []string
	redis   redis.UniversalClient
	origin  *origin.Origin
	reads   *replicaCheck // nil: no --redis-read
	kafka   *doctor.Kafka
	store   *ledger.Store           // nil: no --database
	inForce atomic.Pointer[inForce] // once its check has passed
}

// inForce is what the rooms file, the rooms' sets in Redis and what is set at run time come to.
type inForce struct {
	file   *rooms.File         // with the classes set at run time
	boards []rankcache.BoardID // of which serve would keep whole copies
}

// Dependencies returns the checks of what a sidecar with these settings depends on, by the roles
// whose rights are checked, and a function that closes their connections. An empty database is not checked.
func (o *Options) Dependencies(roles []string, timeout time.Duration, database *cli.Secret) ([]doctor.Check, func(), error) {
	t, err := newTargets(o, roles, timeout, database)
	if err != nil {
		return nil, nil, err
	}
	return t.checks(), t.close, nil
}

func newTargets(o *Options, roles []string, timeout time.Duration, database *cli.Secret) (*targets, error) {
	t := &targets{Options: o, roles: roles}
	if o.write.on && slices.Contains(roles, "serve") && !slices.Contains(roles, "write") { // the sidecar does a writer's work
		t.roles = append(slices.Clone(roles), "write")
	}
	// A slow answer is a success: the check's deadline bounds it.
	o.RedisTimeout = max(o.RedisTimeout, timeout)
	total, err := origin.ParseTotalSource(o.total)
	if err != nil {
		return nil, cli.Usagef("--total: %w", err)
	}
	if database.Get() != "" {
		if t.store, err = cli.OpenDatabase(&o.Options, database); err != nil {
			return nil, err
		}
	}
	if t.redis, err = o.DialRedis(); err != nil {
		t.closeStore()
		return nil, err
	}
	t.origin = origin.New(t.redis, o.Names, origin.WithTotalSource(total), origin.WithTimeout(o.RedisTimeout))
	if t.reads, err = newReplicaCheck(t); err != nil {
		t.redis.Close()
		t.closeStore()
		return nil, err
	}
	if t.kafka = new(doctor.Kafka); !o.HasKafka() { // its checks are not made
		return t, nil
	}
	if t.kafka, err = doctor.OpenKafka(o.Kafka, o.KafkaKeys, o.Names, o.total, t.superHot, t.topicOf); err != nil {
		t.reads.close()
		t.redis.Close()
		t.closeStore()
		return nil, cli.Usagef("%w", err)
	}
	return t, nil
}

func (t *targets) close() {
	t.kafka.Close()
	t.reads.close()
	t.redis.Close()
	t.closeStore()
}

func (t *targets) closeStore() {
	if t.store != nil {
		t.store.Close()
	}
}

func (t *targets) ledgerChecks() []doctor.Check {
	if t.store == nil {
		return nil
	}
	placed := func(ctx context.Context, id string) (map[int32]int64, error) {
		return t.store.Offsets(ctx, ledger.Topic{Name: t.Names.Ledger, ID: id})
	}
	return append(doctor.Database{Store: t.store, Postgres: t.store.Kind() == "postgres"}.Checks(), t.kafka.Ledger(placed)...)
}

// checks returns all checks in the order of the report: those on which others depend come first.
func (t *targets) checks() []doctor.Check {
	r := doctor.Redis{Client: t.redis, Mode: t.RedisMode, Names: t.Names, Total: t.total, Log: t.LogInRedis(), Clients: t.resp.enabled(), Roles: t.roles}
	r.User, _ = t.Credentials()
	if t.isReplica() {
		r.Lags = func(ctx context.Context) (string, error) { return origin.CheckReplica(ctx, t.redis) }
	}
	checks := append([]doctor.Check{{Name: doctor.CheckRooms, Look: t.roomsFile}}, r.Checks()...)
	checks = append(checks, t.reads.checks()...)
	checks = append(checks, doctor.Boards(t.readBoards), r.Expiry(t.endless))
	if r.Log {
		checks = append(checks, r.LogCheck())
	}
	checks = append(checks, t.kafka.Checks()...)
	checks = append(checks, t.kafka.CommandTimes(t.periodic), t.kafka.Durable(t.durableOrders))
	if slices.Contains(t.roles, "controller") {
		checks = append(checks, t.kafka.Deletion())
	}
	checks = append(checks, t.ledgerChecks()...)
	if source := t.hotSource(r); source != nil {
		checks = append(checks, *source)
	}
	checks = append(checks, t.services()...)
	if t.snapshots.dir != "" {
		checks = append(checks, doctor.Folder("snapshots", "snapshot-dir", t.snapshots.dir))
	}
	if t.socket != "" {
		checks = append(checks, doctor.Socket("socket", "socket", t.socket))
	}
	if t.resp.socket != "" {
		checks = append(checks, doctor.Socket("resp-socket", "resp-socket", t.resp.socket))
	}
	checks = append(checks, doctor.Check{Name: "memory", Needs: []string{doctor.CheckBoards}, Look: t.memory}, doctor.OpenFiles(cli.Conns(t.addresses())),
		doctor.Check{Name: "ports", Look: t.ports})
	if !t.HasKafka() {
		doctor.WithoutKafka(checks, t.roles, t.LogInRedis())
	}
	return checks
}

// services returns the checks of profiles, traces and the ledger for reads, by the calls that serve makes.
func (t *targets) services() (checks []doctor.Check) {
	var needs []string
	if t.profiles.redisKey != "" {
		needs = []string{doctor.CheckRedis}
	}
	switch source, err := t.profiles.source(t.redis); {
	case err != nil:
		checks = append(checks, failed("profiles", err))
	case source != nil:
		checks = append(checks, doctor.Call("profiles", needs, func(ctx context.Context) error { return tryProfiles(ctx, source) }))
	}
	switch tracer, err := t.tracing.Tracer(&t.Options.Options); {
	case err != nil:
		checks = append(checks, failed("traces", fmt.Errorf("--otlp-endpoint, --otlp-header, OTEL_EXPORTER_OTLP_…: %w", err)))
	case tracer != nil:
		checks = append(checks, doctor.Call("traces", nil, tracer.Probe))
	}
	if t.ledgerURL == "" {
		return checks
	}
	ledger, err := reads.NewClient(t.ledgerURL, nil)
	if err != nil {
		return append(checks, failed("ledger-reads", fmt.Errorf("--ledger-url: %w", err)))
	}
	return append(checks, doctor.Call("ledger-reads", nil, ledger.Ready))
}

// tryProfiles loads the profile of a member that does not exist.
func tryProfiles(ctx context.Context, source profile.Source) error {
	answers := make([]profile.Answer, 1)
	if err := source.Load(ctx, []string{"rankcache-doctor-probe"}, answers); err != nil {
		return err
	}
	return answers[0].Err
}

func failed(name string, err error) doctor.Check {
	return doctor.Check{Name: name, Look: func(context.Context) doctor.Verdict {
		return doctor.Verdict{Status: doctor.Fail, Advice: err.Error()}
	}}
}

func (t *targets) roomsFile(context.Context) doctor.Verdict {
	if t.Rooms == "" {
		return doctor.Verdict{Status: doctor.OK, Advice: "no rooms file: only rooms set at run time can be super-hot, pinned or blocked"}
	}
	parsed, err := t.parseRooms()
	if err != nil {
		return doctor.Verdict{Status: doctor.Fail, Advice: err.Error()}
	}
	v := doctor.Verdict{Status: doctor.OK, Advice: fmt.Sprintf("%s names %d rooms, %d board rules and %d classes", t.Rooms, len(parsed.Rooms), len(parsed.Rules), len(parsed.Classes))}
	if split := splitClasses(parsed); len(split) > 0 {
		v.Advice += fmt.Sprintf("; split into shards are %s", strings.Join(split, ", "))
		if t.RedisMode == "single" || t.RedisMode == "sentinel" {
			v.Status, v.Advice = doctor.Warn, v.Advice+", and one Redis has all shards: that costs reads and buys no writes: split boards in a cluster (docs/classes/SPLIT.md)"
		}
	}
	return v
}

func splitClasses(f *rooms.File) (names []string) {
	for _, c := range f.Classes {
		if c.Split() {
			names = append(names, c.Name())
		}
	}
	return names
}

// parseRooms returns the rooms file, an empty one if there is none.
func (t *targets) parseRooms() (*rooms.File, error) {
	if t.Rooms == "" {
		return &rooms.File{}, nil
	}
	data, err := os.ReadFile(t.Rooms)
	if err != nil {
		return nil, fmt.Errorf("--rooms: %w", err)
	}
	parsed, err := rooms.Parse(data)
	if err == nil {
		err = parsed.CheckBoards(t.Names.CheckBoard)
	}
	if err == nil {
		err = t.CheckLog(parsed)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.Rooms, err)
	}
	return parsed, nil
}

// readBoards reads what is in force, which the methods below return, and returns the number of super-hot boards.
func (t *targets) readBoards(ctx context.Context) (int, error) {
	follower := roomsync.New(roomsync.Config{File: t.Rooms, CheckBoard: t.Names.CheckBoard, Every: 100 * time.Millisecond, Origin: t.origin, Shared: t.SharedRooms(t.redis),
		Log: slog.New(slog.DiscardHandler)}, prometheus.NewRegistry())
	if err := cli.ReadRooms(ctx, follower); err != nil {
		return 0, err
	}
	boards, _ := follower.Tiers().ByPriority(rooms.ModeSuperHot) // those that linger are let go where they are too much
	slices.Sort(boards)
	t.inForce.Store(&inForce{follower.File(), boards})
	return len(boards), nil
}

func (t *targets) superHot() []rankcache.BoardID { return t.inForce.Load().boards }

func (t *targets) topicOf(id rankcache.BoardID) string {
	return t.inForce.Load().file.Log(t.Names, id).Topic
}

// periodic reports whether a class in force has periods.
func (t *targets) periodic() bool { return t.inForce.Load().file.Periodic() }

// durableOrders returns the longest order life of the durable classes in force.
func (t *targets) durableOrders() time.Duration { return t.inForce.Load().file.DurableOrders() }

// endless returns the super-hot boards without a period.
func (t *targets) endless() (boards []doctor.Endless) {
	for _, b := range t.superHot() {
		board, kind, of := t.inForce.Load().file.Board(b)
		switch {
		case !of:
			boards = append(boards, doctor.Endless{Board: b})
		case board.Period.Tag == "":
			boards = append(boards, doctor.Endless{Board: b, Keep: kind.Keep})
		}
	}
	return boards
}

// hotSource returns the check of the server-side source of hot keys, nil without a hot tier.
func (t *targets) hotSource(r doctor.Redis) *doctor.Check {
	source, err := t.poll.NewSource(t.redis, t.Names, slog.New(slog.DiscardHandler), nil)
	check := &doctor.Check{Name: "hot-source"}
	switch source := source.(type) {
	case *hotkey.Tencent:
		check.Look = func(ctx context.Context) doctor.Verdict { return tryTencent(ctx, source) }
	case *hotkey.RedisHotKeys:
		*check = r.HotKeys()
	case *hotkey.Fleet:
		*check = doctor.Call("hot-source", []string{doctor.CheckRedis}, func(ctx context.Context) error { _, err := source.Hot(ctx); return err })
	case nil:
		switch {
		case err != nil:
			*check = failed("hot-source", err)
		case !t.hotKeys:
			return nil
		default:
			check.Look = t.ownReads
		}
	}
	return check
}

// ownReads tells what a fleet without a source of hot keys does not notice.
func (t *targets) ownReads(context.Context) doctor.Verdict {
	return doctor.Verdict{Status: doctor.OK, Advice: fmt.Sprintf("no source of hot keys here: a board gets hot by %g reads/s of this sidecar (--hot-promote-rate), or by the verdict of rankcache keep or poll; "+
		"without one, what many pods read rarely is not noticed: name such boards hot in the rooms file", cmp.Or(t.hot.PromoteRate, hotkey.DefaultPromoteRate))}
}

// tryTencent makes the call that the poller makes, with the same credentials.
func tryTencent(ctx context.Context, source *hotkey.Tencent) doctor.Verdict {
	hot, err := source.Hot(ctx)
	var call *hotkey.CallError
	switch {
	case err == nil:
		return doctor.Verdict{Status: doctor.OK, Advice: fmt.Sprintf("the cloud's API answers: %d hot boards", len(hot.Boards))}
	case errors.As(err, &call) && call.After == hotkey.AfterOperator:
		return doctor.Verdict{Status: doctor.Fail, Advice: err.Error()}
	}
	return doctor.Verdict{Status: doctor.Warn, Advice: err.Error()}
}

// ports checks whether serve could listen. Addresses that a running sidecar uses pass.
func (t *targets) ports(ctx context.Context) doctor.Verdict {
	opened, err := cli.OpenListeners(slog.New(slog.DiscardHandler), t.addresses()...)
	opened.Close()
	if err == nil {
		return doctor.Verdict{Status: doctor.OK, Advice: "all addresses can be listened on"}
	}
	if isSidecar(ctx, t.health) {
		return doctor.Verdict{Status: doctor.OK, Advice: "a rankcache answers on the health port and uses the addresses"}
	}
	return doctor.Verdict{Status: doctor.Fail, Advice: err.Error()}
}

// maxAlive is more than a liveness probe answers, in bytes.
const maxAlive = 1 << 20

// isSidecar reports whether a rankcache answers liveness on the address.
func isSidecar(ctx context.Context, health string) bool {
	at, err := cli.ParseAddress("health", health)
	if err != nil {
		return false
	}
	base, client := at.Client()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/livez", nil)
	if err != nil {
		return false
	}
	resp, err := client.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	var alive struct{ State string }
	return json.NewDecoder(io.LimitReader(resp.Body, maxAlive)).Decode(&alive) == nil && alive.State == "alive"
}

// memory compares the super-hot boards with --memory-budget, by the estimate with which serve admits boards.
func (t *targets) memory(ctx context.Context) doctor.Verdict {
	limits, _ := findMemoryLimits() // the zero value: unknown
	budget, err := limits.budget(t.memoryBudget)
	if err != nil {
		return doctor.Verdict{Status: doctor.Fail, Advice: err.Error()}
	}
	budget = newMemoryShare(limits, budget, t.profileBytes(), t.KafkaKeys, nil).expected()
	boards := t.superHot()
	sizes, err := boardSizes{origin: t.origin}.Sizes(ctx, boards)
	if err != nil && !errors.Is(err, rankcache.ErrUnreadable) {
		return doctor.Unasked(fmt.Errorf("the boards' sizes: %w", err))
	}
	m := doctor.Memory{Budget: cmp.Or(budget, limits.Limit),
		Source: fmt.Sprintf("--memory-budget %s; the %s has %d MiB", t.memoryBudget, limits.Source, limits.Limit>>20)}
	fill := int64(0) // boards are filled one after the other when memory is short
	for _, size := range sizes {
		if size != nil {
			m.Boards++
			m.Members += int64(size.Members)
			m.Estimate += admission.Estimate(*size)
			fill = max(fill, admission.Fill(*size))
		}
	}
	m.Estimate += fill
	v := m.Judge()
	if err != nil { // the others are judged
		v.Status, v.Advice = doctor.Fail, err.Error()+"; "+v.Advice
	}
	return v
}

// profileBytes returns the budget of the profile cache, 0 without one.
func (t *targets) profileBytes() int64 {
	if source, err := t.profiles.source(t.redis); err != nil || source == nil {
		return 0
	}
	return t.profiles.budgetMB << 20
}
