package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"rankcache/internal/cli"
	"rankcache/internal/lab/compare"
	"rankcache/internal/serve"
	"rankcache/origin"
	"rankcache/rooms"
	"rankcache/wire"
)

// aloneOptions are the settings of rankcache-lab alone.
type aloneOptions struct {
	duration, each            time.Duration
	members, changes, reads   int
	resp, data, admin, health string
	verbose                   bool
}

// NewAloneCommand returns the command of the demo in Redis alone.
func NewAloneCommand() *cobra.Command {
	o := &aloneOptions{}
	cmd := &cobra.Command{
		Use:   "alone",
		Short: "Watch an app's own sorted sets in Redis alone, without and with a sidecar",
		Long: `Start a redis-server and an app that knows nothing of rankcache: it keeps 30 sorted sets, changes them by
ZINCRBY, and reads pages, ranks and scores with a client of Redis. It first asks Redis, then a sidecar that
has these boards whole in memory, by another port; what Redis does in each time is printed. It goes on until Ctrl-C.
Then all boards of the sidecar are compared with Redis entry by entry; the exit code is 3 if they differ.
Needs redis-server in PATH.`,
		Example: `  rankcache-lab alone
  rankcache-lab alone --changes 50 --reads 5000 --duration 20s`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.members < 100 || o.changes < 1 || o.reads < 1 || o.each < time.Second {
				return cli.Usagef("want --members of 100 or more, --changes and --reads of 1 or more, and --each of 1s or more")
			}
			return alone(cmd.Context(), o, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	flags.DurationVar(&o.duration, "duration", 0, "end by itself after this, counted from when the sidecar is measured; 0: at Ctrl-C")
	flags.DurationVar(&o.each, "each", 5*time.Second, "time for which Redis, and then the sidecar, is measured")
	flags.IntVar(&o.members, "members", demoMembers, "members of the largest board")
	flags.IntVar(&o.changes, "changes", 100, "changes a second")
	flags.IntVar(&o.reads, "reads", 3000, "reads a second: a page, somebody's rank and score")
	flags.StringVar(&o.resp, "resp", "127.0.0.1:6390", "`address` of the sidecar's RESP port")
	flags.StringVar(&o.data, "data", serve.DefaultData, "`address` of the data port")
	flags.StringVar(&o.admin, "admin", cli.DefaultAdmin, "`address` of the admin port")
	flags.StringVar(&o.health, "health", "127.0.0.1:8972", "`address` of the health port")
	flags.BoolVarP(&o.verbose, "verbose", "v", false, "show the sidecar's log")
	return cmd
}

// aloneRun is one such demo under way.
type aloneRun struct {
	*aloneOptions
	stdout  io.Writer
	screen  *screen
	log     *slog.Logger
	url     string // of Redis
	redis   *redis.Client
	sidecar *serve.Sidecar
	client  *http.Client
}

func alone(ctx context.Context, o *aloneOptions, stdout, stderr io.Writer) (err error) {
	d := &aloneRun{aloneOptions: o, stdout: stdout, screen: newScreen(stderr), client: &http.Client{Timeout: 5 * time.Second}}
	level := slog.LevelError
	if o.verbose {
		level = slog.LevelInfo
	}
	d.log = slog.New(slog.NewTextHandler(d.screen, &slog.HandlerOptions{Level: level}))
	servers := &demoServers{}
	if err := servers.startRedis(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, servers.close()) }()
	if servers.slowRedis() {
		return errors.New("no redis-server is found in PATH: install one (Debian: apt install redis-server)")
	}
	d.url = servers.redisURL
	options, err := redis.ParseURL(d.url)
	if err != nil {
		return err
	}
	d.redis = redis.NewClient(options)
	defer d.redis.Close()
	return d.run(ctx)
}

// run is the demo in order: Redis by itself, the same app with a sidecar, the check.
func (d *aloneRun) run(ctx context.Context) error {
	if err := d.fill(ctx); err != nil {
		return err
	}
	fmt.Fprintf(d.stdout, "Redis:   %s, and nothing else\nApp:     %d sorted sets, %s has %d members; %d ZINCRBY and %d reads a second (a page, a rank, a score)\n",
		d.redis.Options().Addr, aloneBoards, aloneBoard(0), d.members, d.changes, d.reads)
	if err := d.measure(ctx, "Without: the app asks Redis", d.redis.Options().Addr); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "rankcache-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	parts, running := errgroup.WithContext(ctx)
	live, stop := context.WithCancel(context.WithoutCancel(running)) // the sidecar outlives Ctrl-C for the check
	if err = d.start(live, parts, dir); err == nil {
		err = d.behind(running)
	}
	stop()
	return errors.Join(err, parts.Wait())
}

// start starts the sidecar with a rooms file in a directory.
func (d *aloneRun) start(live context.Context, parts *errgroup.Group, dir string) (err error) {
	file := filepath.Join(dir, "rooms.yaml")
	if err := os.WriteFile(file, []byte("boards: [{match: \"lb:*\", mode: super-hot}]\n"), 0o600); err != nil {
		return err
	}
	d.sidecar, err = serve.NewSidecar([]string{"--redis", d.url, "--log", "redis", "--rooms", file, "--redis-timeout", "2s", "--drain", "0s",
		"--resp", d.resp, "--data", d.data, "--admin", d.admin, "--health", d.health, "--admin-token", demoToken}, rooms.Parse, d.log)
	if err != nil {
		return err
	}
	parts.Go(func() error { return d.sidecar.Run(live) })
	fmt.Fprintf(d.stdout, "Sidecar: rankcache serve --redis %s --log redis --rooms rooms.yaml --resp %s\n         rooms.yaml: boards: [{match: \"lb:*\", mode: super-hot}]\n",
		d.url, d.sidecar.Addr("resp"))
	return nil
}

// behind has the app connect to the sidecar instead, until the duration has passed or ctx is done, and then compares.
func (d *aloneRun) behind(ctx context.Context) error {
	after := context.WithoutCancel(ctx)
	begun := time.Now()
	if err := d.awaitWhole(ctx); err != nil {
		return err
	}
	fmt.Fprintf(d.stdout, "         all boards are whole in its memory after %.1f s\n", time.Since(begun).Seconds())
	if d.duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d.duration)
		defer cancel()
	}
	err := d.measure(ctx, "With it: the app asks "+d.sidecar.Addr("resp"), d.sidecar.Addr("resp"))
	if err == nil {
		d.printCommands()
		err = d.watch(ctx)
	}
	if err != nil && ctx.Err() == nil {
		return err
	}
	fmt.Fprintln(d.stdout, "\nThe app has ended; comparing all boards of the sidecar with Redis …")
	return d.compare(after)
}

func (d *aloneRun) printCommands() {
	board := aloneBoard(0)
	fmt.Fprintf(d.stdout, `
Look at http://%[1]s/ in a browser; changes there take the token "%[2]s".

Or try, while it runs:
  redis-cli -h %[3]s ZREVRANGE %[4]s 0 9 WITHSCORES
  redis-cli -h %[3]s ZINCRBY %[4]s 100000 you
  curl 'http://%[5]s/v1/boards/%[4]s/top?limit=10&me=you'
  curl 'http://%[1]s/status'

`, d.sidecar.Addr("admin"), demoToken, hostAndPort(d.sidecar.Addr("resp")), board, d.sidecar.Addr("data"))
}

// watch shows the top 10 of the largest board while the app goes on.
func (d *aloneRun) watch(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	app := newAloneApp(d, d.sidecar.Addr("resp"))
	done := make(chan error, 1)
	go func() { done <- app.run(ctx) }()
	every := 5 * time.Second
	if d.screen.isTerm {
		every = time.Second
	}
	for again := false; ; again = d.screen.isTerm {
		page, err := compare.Fetch(ctx, d.client, fmt.Sprintf("http://%s/v1/boards/%s/top?limit=10", d.sidecar.Addr("data"), aloneBoard(0)))
		if err == nil {
			drawTop(d.stdout, page, again)
		}
		select {
		case err := <-done:
			return err
		case <-time.After(every):
		}
	}
}

// compare holds each board of the sidecar against Redis.
func (d *aloneRun) compare(ctx context.Context) error {
	all := 0
	reader := origin.New(d.redis, wire.DefaultNames())
	for n := range aloneBoards {
		stamps, err := reader.Stamps(ctx, []boardID{aloneBoard(n)})
		if err != nil {
			return err
		}
		rows, err := compare.Board(ctx, d.client, "http://"+d.sidecar.Addr("data"), aloneBoard(n), reader, stamps[0].Seq)
		if errors.Is(err, compare.ErrDiffers) {
			return &cli.ExitError{Code: cli.ExitDiffers, Err: fmt.Errorf("board %s: %w", aloneBoard(n), err)}
		}
		if err != nil {
			return fmt.Errorf("board %s can't be compared with Redis: %w", aloneBoard(n), err)
		}
		all += rows
	}
	fmt.Fprintf(d.stdout, "Equal: %d boards, %d entries, one by one.\n", aloneBoards, all)
	return nil
}
