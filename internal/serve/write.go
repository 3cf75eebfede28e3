package serve

import (
	"cmp"
	"context"
	"net/http"
	"sync"

	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"rankcache"
	"rankcache/internal/cli"
	"rankcache/internal/httpserve"
	"rankcache/writer"
)

// writeOptions are the settings of the writer inside a sidecar.
type writeOptions struct {
	on    bool
	token *cli.Secret
}

func (o *writeOptions) register(flags *pflag.FlagSet) {
	flags.BoolVar(&o.on, "write", false, "take changes too: POST /v1/scores, :batch and :delete on the data port, as rankcache write takes them. It needs --log redis, and is not for a fleet with Kafka")
	o.token = cli.SecretVar(flags, "write-token", "", "bearer token required for changes, with --write; empty: none, on loopback alone")
}

// writePart is the writer inside a sidecar, if there is to be one.
type writePart struct{ *Sidecar }

func (s writePart) buildWriter() error {
	o := s.options
	if !o.write.on {
		return nil
	}
	size, err := o.LogBytes()
	if err != nil {
		return err
	}
	s.writer, err = writer.New(writer.Options{Redis: s.redis, Names: o.Names, Tiers: s.Rooms, LogSize: size, Log: s.log, Registerer: s.Registry,
		Posted: func(board rankcache.BoardID, member string, state rankcache.State) {
			s.reader.Wrote(board, member, state)
		}})
	if err != nil {
		return cli.Usagef("%w", err)
	}
	return nil
}

// check is called before the rooms file is read, which the log decides about.
func (s writePart) check() error {
	o := s.options
	switch data := s.listeners.Addr("data"); {
	case !o.write.on:
		return nil
	case o.HasKafka():
		return cli.Usagef("--write is for sidecars without Kafka, whose commands it does not read: leave out --kafka, or run rankcache write")
	case !o.LogInRedis():
		return cli.Usagef("--write needs --log redis, from which all sidecars read the changes")
	case data != "" && !httpserve.OnlyLocal(data) && o.write.token.Get() == "":
		return cli.Usagef("--write without --write-token: the data port, %s, can be reached from outside the pod: set a token, or --data %s", data, DefaultData)
	}
	return nil
}

// handler answers changes; nil: none are taken.
func (s writePart) handler() http.Handler {
	if s.writer == nil {
		return nil
	}
	h := s.writer.Handler()
	if token := s.options.write.token; token.Get() != "" {
		h = cli.RequireToken("the write token", token, h)
	}
	return cli.Knowing(s.Rooms, h)
}

// answers returns nil once Redis does what the writer does there, and its clock could be compared.
func (s writePart) answers(ctx context.Context) error {
	if s.writer == nil {
		return nil
	}
	return s.options.RedisNeed(s.redis, "write", "", s.writer.CompareClock)(ctx)
}

// fault returns what keeps the sidecar from taking changes, if it takes any.
func (s writePart) fault() error {
	if s.writer == nil {
		return nil
	}
	return cmp.Or(cli.WrongClock(s.writer.ClockError()), s.writer.Fault())
}

// start has the writer work until the listeners that take changes have ended: the last ones need it.
func (s writePart) start(group *errgroup.Group, ctx context.Context, listeners *sync.WaitGroup) {
	if s.writer == nil {
		return
	}
	work, end := context.WithCancel(context.WithoutCancel(ctx))
	group.Go(func() error {
		s.Rooms.AwaitShared(ctx)
		return s.writer.Run(work)
	})
	group.Go(func() error {
		defer end()
		listeners.Wait()
		return nil
	})
}
