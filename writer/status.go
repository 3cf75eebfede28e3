package writer

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"time"

	"rankcache/internal/httpserve"
	"rankcache/rooms"
)

const (
	// statusTime is how long GET /v1/status waits for Redis and Kafka.
	statusTime = 2 * time.Second
	// shownReasons is how many reasons of refused commands it lists.
	shownReasons = 10
)

// status is what GET /v1/status shows beside what is of the process; its JSON is stable.
type status struct {
	Process       any               `json:"process,omitempty"`
	Group         string            `json:"group"`
	GroupInstance string            `json:"group_instance,omitempty"`
	Dependencies  map[string]answer `json:"dependencies"`
	Commands      []partitionStatus `json:"commands"` // partitions of the command topic that this writer has
	Rewind        *rewindStatus     `json:"rewind,omitempty"`
	Refused       []refusedCount    `json:"refused"` // the most frequent reasons
	Classes       []classStatus     `json:"classes"` // in force
	Gains         gainsStatus       `json:"gains"`
}

// answer is how a service answered a call of the status, or what is known of the command topic for durable classes.
type answer struct {
	State   string  `json:"state"` // ok, failing; of the command topic also unknown
	Latency float64 `json:"latency_ms"`
	Error   string  `json:"error,omitempty"`
}

type partitionStatus struct {
	Partition int32 `json:"partition"`
	// Next is the offset of the record that the writer takes next, End that of the next
	// record to come, and Lag their difference; nil while the client does not know.
	Next *int64 `json:"next"`
	End  *int64 `json:"end"`
	Lag  *int64 `json:"lag"`
}

type refusedCount struct {
	Reason string `json:"reason"`
	Count  int    `json:"count"` // since the process started
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

// Status returns what GET /v1/status shows, to be marshalled to JSON. It asks Redis and Kafka
// and takes at most two seconds.
func (w *Writer) Status(ctx context.Context) any { return statusPage{w.processor}.read(ctx) }

func (s statusPage) read(ctx context.Context) status {
	ctx, cancel := context.WithTimeout(ctx, statusTime)
	defer cancel()
	st := status{Group: s.opts.Group, GroupInstance: s.opts.GroupInstance, Commands: []partitionStatus{}, Refused: s.counted.most(), Classes: []classStatus{},
		Dependencies: map[string]answer{
			"redis": ask(func() error { return s.opts.Redis.Ping(ctx).Err() }),
			"kafka": ask(func() error { return s.askKafka(ctx) }),
		}}
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
	client, err := to.use()
	if err != nil {
		return err
	}
	defer client.users.Done()
	deadline, _ := ctx.Deadline()
	_, err = client.GetMetadata(&s.opts.Names.Commands, false, max(int(time.Until(deadline).Milliseconds()), 1))
	return err
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

// most returns the most frequent reasons.
func (c *reasonCounts) most() []refusedCount {
	c.mu.Lock()
	defer c.mu.Unlock()
	counts := make([]refusedCount, 0, len(c.of))
	for _, reason := range slices.Sorted(maps.Keys(c.of)) {
		counts = append(counts, refusedCount{reason, c.of[reason]})
	}
	slices.SortStableFunc(counts, func(a, b refusedCount) int { return cmp.Compare(b.Count, a.Count) })
	return counts[:min(len(counts), shownReasons)]
}
