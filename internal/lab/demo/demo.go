// Package demo runs everything in one process and shows an evening of gifts.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"rankcache"
	"rankcache/class"
	"rankcache/hotkey"
	"rankcache/internal/cli"
	"rankcache/internal/lab/compare"
	"rankcache/internal/lab/fill"
	"rankcache/internal/lab/nicks"
	"rankcache/internal/run"
	"rankcache/internal/serve"
	"rankcache/origin"
	"rankcache/wire"
)

// Defaults of rankcache-lab demo.
const (
	defaultDemoRate     = 3000 // gifts a second
	defaultDemoRateSlow = 300  // on miniredis, which sorts on every ranged read
	demoLife            = time.Hour
	demoReadyWait       = 2 * time.Minute
	demoToken           = "demo" // of the admin port, which is on loopback
)

// demoOptions are the settings of rankcache-lab demo.
type demoOptions struct {
	redis, kafka        string
	duration, period    time.Duration
	members, rate       int
	data, admin, health string
	profileFaults       bool
	verbose             bool
}

// NewCommand returns the command of the demo.
func NewCommand() *cobra.Command {
	o := &demoOptions{}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Watch a super-hot room being rebuilt and served, in one process",
		Long: `Run everything in one process with nothing installed: a Kafka broker (kfake), a
redis-server if one is found and miniredis if not, the writer, the sidecar, a
profile service, and a synthetic evening. A class of boards changes its period
meanwhile, shows trends, and its guard refuses a flood. With a PostgreSQL on this machine
a board of yesterday is answered from its final. At the end the local board is compared
with Redis entry by entry; the exit code is 3 if they differ.`,
		Example: `  rankcache-lab demo
  rankcache-lab demo --duration 30s --profile-faults
  rankcache-lab demo --redis redis://127.0.0.1:6379 --kafka 127.0.0.1:9092`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.members < 100 || o.rate < 0 {
				return cli.Usagef("want --members of 100 or more and --rate of 0 or more")
			}
			if _, err := class.PartsOfDay(o.period, "UTC"); err != nil {
				return cli.Usagef("--period: %w", err)
			}
			return demo(cmd.Context(), o, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.redis, "redis", "", "Redis `URL` to use instead of an own one; the demo's keys expire there after an hour")
	cli.MarkSecret(flags, "redis")
	flags.StringVar(&o.kafka, "kafka", "", "Kafka `brokers` to use instead of the embedded one; the demo's topics are deleted at the end")
	flags.DurationVar(&o.duration, "duration", 0, "end by itself after this; 0: at Ctrl-C")
	flags.DurationVar(&o.period, "period", demoPeriod, "`length` of the periods of the class gift-half-hour: whole seconds that divide a day")
	flags.IntVar(&o.members, "members", demoMembers, "members of the super-hot board")
	flags.IntVar(&o.rate, "rate", 0, "live gifts a second; 0: 3000, or 300 on miniredis")
	flags.StringVar(&o.data, "data", serve.DefaultData, "`address` of the data port")
	flags.StringVar(&o.admin, "admin", cli.DefaultAdmin, "`address` of the admin port")
	flags.StringVar(&o.health, "health", "127.0.0.1:8972", "`address` of the health port")
	flags.BoolVar(&o.profileFaults, "profile-faults", false, "make the profile service slow and failing")
	flags.BoolVarP(&o.verbose, "verbose", "v", false, "show the sidecar's and the writer's log")
	return cmd
}

// demoRun is one demo under way.
type demoRun struct {
	*demoOptions
	stdout, stderr io.Writer
	log            *slog.Logger
	screen         *screen
	servers        *demoServers
	run            string
	dir            string
	names          wire.Names
	client         *http.Client
	sidecar        *serve.Sidecar
	redisClient    redis.UniversalClient
	race           race
	begun          time.Time

	mu   sync.Mutex // of stdout and said while the shows run
	said bool       // a line stands below the drawn top 10
}

// say writes a line that the next drawing leaves alone.
func (d *demoRun) say(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.said = true
	fmt.Fprintf(d.stdout, format+"\n", args...)
}

// demo runs until the duration has passed or ctx is done, then compares.
func demo(ctx context.Context, o *demoOptions, stdout, stderr io.Writer) (err error) {
	d := &demoRun{demoOptions: o, stdout: stdout, stderr: stderr, screen: newScreen(stderr), names: wire.DefaultNames(),
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}, Timeout: 5 * time.Second}}
	level := slog.LevelError
	if o.verbose {
		level = slog.LevelInfo
	}
	d.log = slog.New(slog.NewTextHandler(d.screen, &slog.HandlerOptions{Level: level}))
	if d.servers, err = startDemoServers(ctx, o.redis, o.kafka); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.servers.close()) }()
	if d.dir, err = os.MkdirTemp("", "rankcache-demo-"); err != nil {
		return err
	}
	defer os.RemoveAll(d.dir)
	d.nameRun()
	return d.evening(ctx)
}

// nameRun gives servers that outlive the demo names that no other run has.
func (d *demoRun) nameRun() {
	d.run = "tonight"
	if d.redis != "" || d.kafka != "" {
		d.run = strconv.FormatInt(time.Now().Unix(), 36)
	}
	d.names.Commands = "demo_" + d.run + "_commands"
	d.names.Rooms = "demo_" + d.run + "_rooms"
	d.names.Refused = "demo_" + d.run + "_refused"
	d.names.ClassPrefix = "demo_" + d.run + "_class_"
	d.names.Ends = "demo_" + d.run + "_ends"
	d.begun = time.Now()
	if d.rate == 0 {
		d.rate = defaultDemoRate
		if d.servers.slowRedis() {
			d.rate = defaultDemoRateSlow
		}
	}
}

// evening is the demo in order: the past, the rebuild, the live part, the check.
func (d *demoRun) evening(ctx context.Context) error {
	e := newEvening(d.run, d.members, 1)
	fmt.Fprintf(d.stdout, "Redis:  %s\nKafka:  %s\n", d.servers.redisWhat, d.servers.kafkaWhat)
	fmt.Fprintf(d.stdout, "Before: %d gifts of %d members are put into the log of %s\n", demoHistory*d.members, d.members, e.starBoard())
	if err := d.past(ctx, e); err != nil {
		return err
	}
	defer d.clean(context.WithoutCancel(ctx), e)
	if err := d.pastRace(ctx); err != nil {
		return fmt.Errorf("the ledger's database: %w", err)
	}
	parts, ctx := errgroup.WithContext(ctx)
	live, stop := context.WithCancel(context.WithoutCancel(ctx)) // the parts outlive Ctrl-C for the check
	if err := d.start(live, parts, e); err != nil {
		stop()
		return errors.Join(err, parts.Wait())
	}
	err := d.live(ctx, e)
	stop()
	return errors.Join(err, parts.Wait())
}

// past leaves in Redis and in the log what the writer would have left there,
// without the order numbers of long ago.
func (d *demoRun) past(ctx context.Context, e *evening) error {
	filler, err := fill.NewTopic(ctx, d.servers.kafka, d.names.Topic(e.starBoard()), 1)
	if err != nil {
		return err
	}
	defer filler.Close()
	for _, topic := range []string{d.names.Commands, d.names.Refused} {
		if err := fill.CreateTopic(ctx, filler.Client, topic, 1); err != nil {
			return err
		}
	}
	updates, board := e.history()
	for i := range updates {
		if err := filler.Put(&updates[i]); err != nil {
			return err
		}
	}
	if err := filler.Flush(ctx); err != nil {
		return err
	}
	d.redisClient, err = origin.Dial(origin.Options{URL: d.servers.redisURL, Mode: origin.ModeSingle, Timeout: 2 * time.Second})
	if err != nil {
		return err
	}
	return board.Redis(ctx, d.redisClient, d.names, demoLife)
}

func (d *demoRun) clean(ctx context.Context, e *evening) {
	d.redisClient.Del(ctx, d.names.Ends)
	_ = d.redisClient.Close()
	topics := []string{d.names.Commands, d.names.Refused, d.names.Topic(e.starBoard())}
	for day := d.begun; day.Before(time.Now().Add(d.period + 24*time.Hour)); day = day.Add(24 * time.Hour) {
		topics = append(topics, d.names.ClassTopic(demoClass, day.UTC().Format("20060102")))
	}
	for _, topic := range topics {
		if err := fill.DeleteTopic(ctx, d.servers.kafka, topic); err != nil {
			d.log.Error("clean up", "err", err)
		}
	}
}

// common is the settings that the demo's writer and sidecar share.
func (d *demoRun) common() []string {
	return []string{
		"--redis", d.servers.redisURL, "--kafka", d.servers.kafka,
		"--topic-commands", d.names.Commands, "--key-rooms", d.names.Rooms,
		"--topic-refused", d.names.Refused, "--topic-class-updates", d.names.ClassPrefix, "--key-ends", d.names.Ends,
		"--redis-timeout", "2s", // one machine runs everything
		"--rooms", filepath.Join(d.dir, "rooms.yaml"),
	}
}

// start starts the writer, the profile service and the sidecar, and returns
// when the sidecar is ready.
func (d *demoRun) start(live context.Context, parts *errgroup.Group, e *evening) error {
	file := d.classYAML() + fmt.Sprintf("rooms:\n- {uid: %q, mode: super-hot, boards: [%q]}\nboards:\n- {match: %q, mode: blocked}\n",
		demoStarUID, e.starBoard(), e.blockedBoard())
	if err := os.WriteFile(filepath.Join(d.dir, "rooms.yaml"), []byte(file), 0o600); err != nil {
		return err
	}
	w, err := run.NewWriter(d.writeArgs(), d.parseRooms, d.log)
	if err != nil {
		return err
	}
	parts.Go(func() error { return w.Run(live) })
	profiles, url, err := nicks.Serve(d.profileFaults)
	if err != nil {
		return err
	}
	context.AfterFunc(live, func() { profiles.Close() })
	more, err := d.raceArgs(file)
	if err != nil {
		return err
	}
	if d.sidecar, err = serve.NewSidecar(append(d.serveArgs(url), more...), d.parseRooms, d.log); err != nil {
		return err
	}
	fmt.Fprintln(d.stdout, "Now:    the sidecar starts and replays the log")
	begin := time.Now()
	d.screen.Follow(d.sidecar.Boards())
	parts.Go(func() error { return d.sidecar.Run(live) })
	if err := d.waitReady(live); err != nil {
		return err
	}
	d.screen.Close()
	fmt.Fprintf(d.stdout, "Ready:  %s is open after %.2f s\n", e.starBoard(), time.Since(begin).Seconds())
	return d.tellRace(live)
}

func (d *demoRun) writeArgs() []string {
	return append(d.common(), "--scores", "", "--health", "", "--group", "demo_"+d.run, "--board-life", demoLife.String())
}

func (d *demoRun) serveArgs(profileURL string) []string {
	return append(d.common(), "--data", d.data, "--resp", "127.0.0.1:0", "--rpc", "127.0.0.1:0", "--admin", d.admin, "--health", d.health, "--drain", "0s",
		"--admin-token", demoToken, "--profile-url", profileURL,
		"--hot-residency", "10s", "--hot-exit-after", "5s", "--hot-cool-down", "5s") // a room cools down while one watches
}

func (d *demoRun) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, demoReadyWait)
	defer cancel()
	for {
		ready, reason := d.sidecar.Ready()
		if ready {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the sidecar is not ready: %s", reason)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// live lets gifts and readers loose until the duration has passed or ctx is
// done, and then compares the board with Redis.
func (d *demoRun) live(ctx context.Context, e *evening) error {
	after := context.WithoutCancel(ctx)
	d.printCurls(e)
	if d.duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d.duration)
		defer cancel()
	}
	givers := errgroup.Group{}
	seq := uint64(demoHistory * d.members) // what Redis has to count in the end
	givers.Go(func() error {
		given, err := giveGifts(ctx, d.servers.kafka, d.names.Commands, newEvening(d.run, d.members, 2), d.rate)
		seq += given
		return err
	})
	givers.Go(func() error { watchRooms(ctx, d.client, d.base(), newEvening(d.run, d.members, 3)); return nil })
	givers.Go(func() error { return d.showClass(ctx, newEvening(d.run, d.members, 4)) })
	d.show(ctx, e)
	if err := givers.Wait(); err != nil {
		return err
	}
	fmt.Fprintln(d.stdout, "\nThe last gift is given; comparing the local board with Redis …")
	rows, err := compare.Board(after, d.client, d.base(), e.starBoard(), origin.New(d.redisClient, d.names), seq)
	return d.judge(rows, seq, err)
}

// judge tells what came of the comparison. A side that can't be read is no difference.
func (d *demoRun) judge(rows int, seq uint64, err error) error {
	switch {
	case errors.Is(err, compare.ErrDiffers):
		return &cli.ExitError{Code: cli.ExitDiffers, Err: fmt.Errorf("the local board: %w", err)}
	case err != nil:
		return fmt.Errorf("the local board could not be compared with Redis: %w", err)
	}
	fmt.Fprintf(d.stdout, "Equal: %d entries, one by one, after %d gifts.\n", rows, seq)
	return nil
}

func (d *demoRun) base() string { return "http://" + d.sidecar.Addr("data") }

func (d *demoRun) printCurls(e *evening) {
	admin, health := d.sidecar.Addr("admin"), d.sidecar.Addr("health")
	_, respPort, _ := net.SplitHostPort(d.sidecar.Addr("resp"))
	fmt.Fprintf(d.stdout, `
Look at http://%[7]s/ in a browser; changes there take the token "%[8]s".

Or try, while it runs:
  curl '%[1]s/v1/boards/%[2]s/top?limit=10&profiles=1'
  curl '%[1]s/v1/boards/%[2]s/members/%[3]s?around=4'
  curl '%[1]s/v1/boards/%[4]s/top?limit=10'          # a small room: Redis answers
  curl '%[1]s/v1/boards/%[5]s/top'                   # a blocked one
  curl '%[1]s/v1/classes/%[10]s/top?limit=3&trend=1'   # a board each %[11]s
  curl '%[1]s/v1/classes/%[10]s/top?at=previous'       # the period before
  curl -N 'http://%[12]s/v1/boards/%[2]s/live?limit=3'   # the page, and each change of it
  curl -i 'http://%[6]s/readyz'
  curl 'http://%[7]s/status'
  curl 'http://%[7]s/hotkeys'
  redis-cli -p %[9]s ZREVRANGE %[2]s 0 9 WITHSCORES

`, d.base(), e.starBoard(), e.giver(), e.smallBoard(0), e.blockedBoard(), health, admin, demoToken, respPort, demoClass, d.period, d.sidecar.Addr("rpc"))
}

// show draws the live top 10 and reports which rooms become hot and cool down.
func (d *demoRun) show(ctx context.Context, e *evening) {
	every := 5 * time.Second
	if d.screen.isTerm {
		every = time.Second
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	hot := map[rankcache.BoardID]bool{}
	for again := false; ; again = d.screen.isTerm {
		page, err := compare.Fetch(ctx, d.client, fmt.Sprintf("%s/v1/boards/%s/top?limit=10&profiles=1", d.base(), e.starBoard()))
		d.mu.Lock()
		if d.printHot(hot) || d.said {
			again = false // the lines stay above the next drawing
		}
		if err == nil {
			drawTop(d.stdout, page, again)
			d.said = false
		}
		d.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// printHot prints what changed among the hot rooms and reports whether anything did.
func (d *demoRun) printHot(hot map[rankcache.BoardID]bool) (printed bool) {
	now := map[rankcache.BoardID]bool{}
	for _, row := range d.sidecar.Hot() {
		if row.State != hotkey.StateHot {
			continue
		}
		now[row.Board] = true
		if !hot[row.Board] {
			fmt.Fprintf(d.stdout, "* %s became hot (%s, %.0f requests/s)\n", row.Board, row.Cause, row.Rate)
			hot[row.Board], printed = true, true
		}
	}
	for board := range hot {
		if !now[board] {
			fmt.Fprintf(d.stdout, "* %s cooled down\n", board)
			delete(hot, board)
			printed = true
		}
	}
	return printed
}
