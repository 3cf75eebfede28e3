package app

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache/hotkey"
	"rankcache/ledger/reads"
	"rankcache/profile"
	"rankcache/sidecar/adminapi"
)

// The services that a sidecar calls, as /status and the metrics name them.
const (
	serviceRedis    = "redis"
	serviceKafka    = "kafka"
	serviceProfiles = "profiles"
	serviceHotKeys  = "hot_keys"
	serviceLedger   = "ledger"
)

const (
	// askEvery is how often Redis and Kafka are called at least: the totals and topics of
	// boards are read about as often.
	askEvery = time.Second
	// answerLasts is how long an answer of them shows that they are there.
	answerLasts = 10 * askEvery
	// profilesLast is that of the profile service, which is called only for what is not cached.
	profilesLast = time.Minute
)

// callWatch observes the ends of the calls of a sidecar.
type callWatch struct{ *Sidecar }

// buildDependencies makes the list; those that are not used are off.
func (s callWatch) buildDependencies() {
	s.services = adminapi.Dependencies{
		serviceRedis:    adminapi.NewDependency(answerLasts),
		serviceKafka:    adminapi.NewDependency(answerLasts),
		serviceProfiles: adminapi.NewDependency(profilesLast),
		serviceLedger:   adminapi.NewDependency(answerLasts),
		serviceHotKeys:  adminapi.NewDependency(hotkey.DefaultVerdictAge),
	}
	if o := s.options; o.profiles.url.get() == "" && o.profiles.redisKey == "" {
		s.services[serviceProfiles].Off("")
	}
	if s.options.ledgerURL == "" {
		s.services[serviceLedger].Off("")
	}
	if !s.options.hotKeys {
		s.services[serviceHotKeys].Off("")
	}
	s.registry.MustRegister(s.services)
}

// watchRedis observes every call of the Redis client, and calls Redis itself when no other
// part does.
func (s callWatch) watchRedis() {
	d := s.services[serviceRedis]
	s.redis.AddHook(redisHook{d})
	s.whileIdle(d, func(ctx context.Context) { _ = s.redis.Ping(ctx).Err() }) // the hook observes it
}

// watchLedger calls the ledger when no read does.
func (s callWatch) watchLedger(client *reads.Client) {
	s.whileIdle(s.services[serviceLedger], func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, askEvery)
		defer cancel()
		_ = client.Ready(ctx) // it is observed
	})
}

// whileIdle adds a part that calls a service when no other part does.
func (s callWatch) whileIdle(d *adminapi.Dependency, call func(context.Context)) {
	s.parts = append(s.parts, runFunc(func(ctx context.Context) error {
		tick := time.NewTicker(askEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
			}
			if d.Idle(askEvery) {
				call(ctx)
			}
		}
	}))
}

// redisHook observes how the calls of a Redis client end.
type redisHook struct{ redis *adminapi.Dependency }

func (redisHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h redisHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		begun := time.Now()
		err := next(ctx, cmd)
		h.observe(ctx, begun, err)
		return err
	}
}

func (h redisHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		begun := time.Now()
		err := next(ctx, cmds)
		worst := err
		for i := 0; i < len(cmds) && !redisAway(worst); i++ { // err is the first command's, which may be a missing key's
			worst = cmds[i].Err()
		}
		h.observe(ctx, begun, worst)
		return err
	}
}

func (h redisHook) observe(ctx context.Context, begun time.Time, err error) {
	switch {
	case errors.Is(ctx.Err(), context.Canceled) || errors.Is(err, redis.ErrClosed): // we gave it up
	case redisAway(err):
		h.redis.Observe(time.Since(begun), err)
	default:
		h.redis.Observe(time.Since(begun), nil)
	}
}

// awayPrefixes start the error replies of a Redis that answers nothing else.
var awayPrefixes = []string{"NOAUTH", "WRONGPASS", "LOADING", "CLUSTERDOWN", "MASTERDOWN", "BUSY ", "max number of clients"}

// redisAway reports whether an error means that Redis does not serve us. Any other reply
// with an error shows that it does.
func redisAway(err error) bool {
	if err == nil || errors.Is(err, redis.Nil) {
		return false
	}
	var reply redis.Error
	return !errors.As(err, &reply) || slices.ContainsFunc(awayPrefixes, func(prefix string) bool { return redis.HasErrorPrefix(err, prefix) })
}

// watchProfiles returns the source, with its calls observed.
func (s callWatch) watchProfiles(source profile.Source) profile.Source {
	return watchedProfiles{source, s.services[serviceProfiles]}
}

type watchedProfiles struct {
	profile.Source
	service *adminapi.Dependency
}

func (w watchedProfiles) Load(ctx context.Context, members []string, answers []profile.Answer) error {
	begun := time.Now()
	err := w.Source.Load(ctx, members, answers)
	if !errors.Is(ctx.Err(), context.Canceled) {
		w.service.Observe(time.Since(begun), err)
	}
	return err
}

// hotKeysAnswered observes this process's own calls of the hot-key source.
func (s callWatch) hotKeysAnswered(took time.Duration, err error) {
	d := s.services[serviceHotKeys]
	if call, ok := errors.AsType[*hotkey.CallError](err); ok && call.Code == hotkey.CodeUnsupported {
		d.Off("the server has no HOTKEYS, which came with Redis 8.6")
		return
	}
	d.Observe(took, err)
}

// watchVerdicts passes verdicts on. A new one shows that the hot-key source answers the
// fleet's poller.
func (s callWatch) watchVerdicts(to hotkey.Observer) hotkey.Observer {
	return &watchedVerdicts{to: to, service: s.services[serviceHotKeys]}
}

type watchedVerdicts struct {
	to      hotkey.Observer
	service *adminapi.Dependency
	last    time.Time // of the newest verdict
}

func (w *watchedVerdicts) Observe(v hotkey.Verdict) {
	if !v.At.Equal(w.last) { // not After: pollers' clocks differ
		w.last = v.At
		w.service.Observe(0, nil)
	}
	w.to.Observe(v)
}
