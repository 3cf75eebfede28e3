package serve

import (
	"context"
	"errors"
	"time"

	"rankcache/hotkey"
	"rankcache/internal/cli"
	"rankcache/internal/health"
	"rankcache/keeper"
	"rankcache/profile"
	"rankcache/replay"
	"rankcache/wire"
)

// profilesLast is how long one of the profile service does, which is called only for what is not cached.
const profilesLast = time.Minute

// callWatch observes the ends of the calls of a sidecar.
type callWatch struct{ *Sidecar }

// buildDependencies makes the list; those that are not used are off.
func (s callWatch) buildDependencies() {
	s.services = health.Needs{
		cli.ServiceRedis:    health.NewNeed(cli.AnswerLasts),
		cli.ServiceKafka:    health.NewNeed(cli.AnswerLasts),
		cli.ServiceProfiles: health.NewNeed(profilesLast),
		cli.ServiceLedger:   health.NewNeed(cli.AnswerLasts),
		cli.ServiceHotKeys:  health.NewNeed(hotkey.VerdictAge),
	}
	if o := s.options; o.profiles.url.Get() == "" && o.profiles.redisKey == "" {
		s.services[cli.ServiceProfiles].Off("")
	}
	switch {
	case s.options.LogInRedis():
		s.services[cli.ServiceKafka].Off("log: Redis (--log redis)")
	case !s.options.HasKafka():
		s.services[cli.ServiceKafka].Off("no Kafka: --kafka is not set")
	}
	if s.options.ledgerURL == "" {
		s.services[cli.ServiceLedger].Off("")
	}
	if !s.options.hotKeys {
		s.services[cli.ServiceHotKeys].Off("")
	}
	s.Registry.MustRegister(s.services)
	s.parts = append(s.parts, s.services)
}

// watchProfiles returns the source, with its calls observed.
func (s callWatch) watchProfiles(source profile.Source) profile.Source {
	return watchedProfiles{source, s.services[cli.ServiceProfiles]}
}

type watchedProfiles struct {
	profile.Source
	service *health.Need
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
	d := s.services[cli.ServiceHotKeys]
	if call, ok := errors.AsType[*hotkey.CallError](err); ok && call.Code == hotkey.CodeUnsupported {
		d.Off("the server has no HOTKEYS, which came with Redis 8.6")
		return
	}
	d.Observe(took, err)
}

// watchVerdicts passes verdicts on. A new one shows that the hot-key source answers the fleet's poller.
func (s callWatch) watchVerdicts(to hotkey.Observer) hotkey.Observer {
	return &watchedVerdicts{to: to, service: s.services[cli.ServiceHotKeys]}
}

type watchedVerdicts struct {
	to      hotkey.Observer
	service *health.Need
	last    int64 // Unix ms of the newest verdict
}

func (w *watchedVerdicts) Observe(v hotkey.Verdict) {
	if v.At != w.last { // not later: pollers' clocks differ
		w.last = v.At
		w.service.Observe(0, nil)
	}
	w.to.Observe(v)
}

// watchStates returns where keepers publish states; reads there show that Redis answers.
func (s callWatch) watchStates(from *keeper.Value) replay.States {
	return watchedStates{from, s.services[cli.ServiceRedis]}
}

type watchedStates struct {
	*keeper.Value
	service *health.Need
}

func (w watchedStates) States(ctx context.Context) (wire.States, error) {
	begun := time.Now()
	states, err := w.Value.States(ctx)
	if err == nil {
		w.service.Observe(time.Since(begun), nil)
	}
	return states, err
}
