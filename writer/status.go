package writer

import (
	"context"
	"errors"
	"net/http"
	"time"

	"rankcache/internal/httpserve"
	"rankcache/rooms"
)

// statusTime is how long GET /v1/status waits for Redis and Kafka.
const statusTime = 2 * time.Second

// status is what GET /v1/status shows beside what is of the process; its JSON is stable.
type status struct {
	Process       any               `json:"process,omitempty"`
	Log           string            `json:"log"` // of changes: kafka, redis or both
	Group         string            `json:"group"`
	GroupInstance string            `json:"group_instance,omitempty"`
	Dependencies  map[string]answer `json:"dependencies"`
	Commands      []partitionStatus `json:"commands"` // partitions of the command topic that this writer has
	Rewind        *rewindStatus     `json:"rewind,omitempty"`
	Refused       []refusedCount    `json:"refused"` // the most frequent reasons
	Classes       []classStatus     `json:"classes"` // in force
	Gains         gainsStatus       `json:"gains"`
}

// classStatus is what a class has writers do.
type classStatus struct {
	Name   string     `json:"name"`
	Board  string     `json:"board"` // template of ids
	Period string     `json:"period"`
	TZ     string     `json:"tz"`
	Grace  float64    `json:"grace_s"`
	Ties   rooms.Ties `json:"ties"`
	Feeds  []string   `json:"feeds,omitempty"`
	// FeedsBy are those of the feeds that need a group of the command.
	FeedsBy []rooms.Feed `json:"feeds_by,omitempty"`
	Trim    int          `json:"trim,omitempty"`
	Ledger  bool         `json:"ledger,omitempty"`
	// Durable is also set where it follows from other settings.
	Durable bool         `json:"durable,omitempty"`
	Guard   *guardStatus `json:"guard,omitempty"`
}

type guardStatus struct {
	Changes int     `json:"changes,omitempty"`
	Per     float64 `json:"per_s,omitempty"`
	Members int     `json:"members,omitempty"`
	Gain    int     `json:"gain,omitempty"`
	GainPer float64 `json:"gain_per_s,omitempty"`
	Action  string  `json:"action"`
}

type gainsStatus struct {
	Since time.Time `json:"since"` // the hour
	Top   []gain    `json:"top"`
}

// statusPage answers GET /v1/status.
type statusPage struct{ *processor }

// ServeHTTP refuses callers who may change some classes only, as it is about all.
func (s statusPage) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	if _, limited := AllowedClasses(r.Context()); limited {
		problemOf(&Refusal{"class_not_allowed", errors.New("the token is for boards of some classes only, and the status is of all")}).Write(rw)
		return
	}
	httpserve.WriteJSON(rw, http.StatusOK, s.read(r.Context()))
}

func (s statusPage) read(ctx context.Context) status {
	ctx, cancel := context.WithTimeout(ctx, statusTime)
	defer cancel()
	st := status{Log: s.opts.logs(), Group: s.opts.Group, GroupInstance: s.opts.GroupInstance, Commands: []partitionStatus{}, Refused: s.counted.most(), Classes: []classStatus{},
		Dependencies: map[string]answer{
			"redis": ask(func() error { return s.opts.Redis.Ping(ctx).Err() }),
		}}
	if s.opts.hasKafka() {
		st.Dependencies["kafka"] = ask(func() error { return s.askKafka(ctx) })
	}
	if s.opts.LogSize > 0 {
		st.Dependencies["redis_log"] = ask(s.applier.logs.fault)
	}
	if log, _ := s.commands.state(); log.State != "" {
		st.Dependencies["command_log"] = log
	}
	if s.opts.Process != nil {
		st.Process = s.opts.Process()
	}
	st.Rewind = s.rewinds.status(ctx)
	if c := s.consumer.Load(); c != nil {
		st.Commands = append(st.Commands, c.status()...)
	}
	for _, c := range s.opts.Tiers.File().Classes {
		st.Classes = append(st.Classes, classStatusOf(c))
	}
	st.Gains.Since, st.Gains.Top = s.metrics.gains.top(s.applier.now())
	return st
}

func ask(call func() error) answer {
	begin := time.Now()
	err := call()
	a := answer{State: "ok", Latency: float64(time.Since(begin).Microseconds()) / 1000}
	if err != nil {
		a.State, a.Error = "failing", err.Error()
	}
	return a
}

// askKafka asks for the metadata of the command topic.
func (s statusPage) askKafka(ctx context.Context) error {
	to := s.producer.Load()
	if to == nil {
		return errors.New("the writer is not running yet, or no longer")
	}
	deadline, _ := ctx.Deadline()
	return to.with(func(c *kafkaClient) error {
		_, err := c.GetMetadata(&s.opts.Names.Commands, false, max(int(time.Until(deadline).Milliseconds()), 1))
		return err
	})
}

func classStatusOf(c *rooms.Class) classStatus {
	st := classStatus{Name: c.Name(), Board: c.Template(), Period: c.Calendar().String(), TZ: c.Calendar().Zone(), Grace: c.Grace.Seconds(),
		Ties: c.Ties, Feeds: c.FeedNames(), FeedsBy: c.FeedsBy(), Trim: c.Trim, Ledger: c.Ledger, Durable: c.Durable}
	if g := c.Guard; g != (rooms.Guard{}) {
		st.Guard = &guardStatus{g.Changes, g.Per.Seconds(), g.Members, g.Gain, g.GainPer.Seconds(), "observe"}
		if g.Refuse {
			st.Guard.Action = "refuse"
		}
	}
	return st
}
