package rooms

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"rankcache"
	"rankcache/class"
	"rankcache/wire"
)

// Limits of classes.
const (
	MaxClasses  = 500
	maxTitle    = 200 // bytes
	maxKeep     = 10 * 365 * 24 * time.Hour
	minOrders   = time.Minute
	maxOrders   = 366 * 24 * time.Hour
	maxFeeds    = 16
	maxWarm     = 500
	maxMembers  = 1 << 31
	maxPerGuard = 1_000_000
	maxGain     = 1<<53 - 1 // the highest score
	maxID       = 1 << 53   // what any JSON library reads exactly
)

// Ties is which of two members with the same score is ranked first.
type Ties string

// The values of Ties.
const (
	TiesMember Ties = "member" // as Redis does: the greater id if scores descend
	TiesFirst  Ties = "first"  // the one that came to the score first
	TiesLast   Ties = "last"
)

// Guard limits what can be done to a board; zero numbers limit nothing.
type Guard struct {
	Changes int // of a member, within Per
	Per     time.Duration
	Members int // of a board
	Gain    int // how much increments may add to a member within GainPer
	GainPer time.Duration
	Refuse  bool // else what is beyond a limit is only counted
}

// IDs are the activity and the rank by which older callers name a class, from 1.
type IDs struct{ Act, Rank int }

// Class is a kind of board with its settings. It is immutable after parsing.
type Class struct {
	*class.Class
	Title  string
	Grace  time.Duration // commands of an ended period are taken so long after its end
	Keep   time.Duration // boards are kept so long after the end of their period, or without periods after their last change; 0: not set
	Lead   time.Duration // a board is opened so long before its period begins
	linger time.Duration // see [Class.LingerOf]; unset: by default
	Orders time.Duration // order life
	Ties   Ties
	Form   rankcache.ScoreForm // how scores are shown: integers with ties of first or last, negated with order asc
	Ops    []wire.Op
	Mode   Mode
	Dims   map[string][]string // values of the boards that Mode is for
	// WarmMembers are expected at the next head: their profiles are loaded at its opening. Nil: the last head's.
	WarmMembers []string
	Feeds       []Feed   // classes that each increment changes too
	By          []string // the names of the groups that commands may have, as feeds need them; see [Feed.By]
	Trim        int      // members that stay in the sorted set; 0: all
	Data        bool     // members may have data beside their scores
	Top         int      // default and greatest limit of a page
	Approximate bool     // ranks of members are so, unless a request says how they are counted
	Ledger      bool
	FinalAll    bool // the ledger's final of a board keeps all members in SQL, not the first 1,000 alone
	// Durable tells that each command is in the command topic before it is applied, so that
	// no failover of Redis loses it. It is set for classes with a ledger, too, and for those that feed or are fed.
	Durable bool
	Guard   Guard
	// Rolling makes the boards sums of those of another class; RolledBy are the classes for which this one is that.
	Rolling  Rolling
	RolledBy []string
	IDs      IDs    // name the class to callers that know boards by numbers; zero: it has none
	Group    string // the class whose boards rank the groups of this class's members, such as their teams; "": none

	plain     bool   // durable: false is written
	keepUnset bool   // keep is not written
	source    string // of its line
	line      int
}

// classText is what a [class.Class] is made from, as it is written.
type classText struct {
	name, board, period, tz, score, order string
	shards                                int
	starts                                time.Duration // startsUnset: not given
	seasons                               class.Seasons
}

const defaultGrace, defaultOrders = 5 * time.Second, time.Hour // for clocks that differ and requests that take long

// readClass reads the settings of a class. finish makes the class, and finds the one that it is the sum of.
func readClass(n *yaml.Node, source string, calendar NewCalendar) (c *Class, finish func(Classes) error, err error) {
	c = &Class{source: source, Grace: unset, Keep: unset, Lead: time.Minute, linger: unset, Orders: unset, Ties: TiesMember, Top: 100, line: n.Line}
	text := classText{starts: startsUnset}
	if err := fields(n, c.keys(&text)); err != nil {
		return nil, nil, err
	}
	return c, func(among Classes) error {
		if c.Rolls() {
			return at(n, c.finishRolling(text, among))
		}
		return at(n, c.finish(text, calendar))
	}, nil
}

func (c *Class) keys(text *classText) map[string]func(*yaml.Node) error {
	return map[string]func(*yaml.Node) error{
		"name": intoString(&text.name), "board": intoString(&text.board), "period": intoString(&text.period), "tz": intoString(&text.tz),
		"starts":       asString(text.readStarts),
		"seasons":      func(n *yaml.Node) error { return each(n, text.addSeason) },
		"title":        intoString(&c.Title),
		"grace":        duration(&c.Grace, 0, maxKeep),
		"keep":         duration(&c.Keep, 0, maxKeep),
		"lead":         duration(&c.Lead, 0, time.Hour),
		"linger":       duration(&c.linger, 0, maxKeep),
		"orders":       duration(&c.Orders, minOrders, maxOrders),
		"ties":         oneOf(&c.Ties, TiesMember, TiesFirst, TiesLast),
		"score":        oneOf(&text.score, "number", "integer"),
		"order":        oneOf(&text.order, "desc", "asc"),
		"ops":          func(n *yaml.Node) error { c.Ops = []wire.Op{}; return each(n, asString(c.addOp)) },
		"mode":         c.readMode,
		"dims":         c.readDims,
		"warm_members": func(n *yaml.Node) error { return each(n, asString(c.addWarm)) },
		"feeds":        func(n *yaml.Node) error { return each(n, c.addFeed) },
		"trim":         integer(&c.Trim, 0, maxMembers),
		"ranks":        c.readRanks,
		"data":         boolean(&c.Data),
		"top":          integer(&c.Top, 1, rankcache.MaxTop),
		"ledger":       boolean(&c.Ledger),
		"final_rows":   c.readFinalRows,
		"durable":      c.readDurable,
		"guard":        c.readGuard,
		"ids":          c.readIDs,
		"group":        intoString(&c.Group),
		"rolling":      c.readRolling,
		"shards":       integer(&text.shards, class.MinShards, class.MaxShards),
	}
}

const defaultKeep = 72 * time.Hour // outlives an evening and the questions about it

// finish makes the ids' part and checks the settings with each other.
func (c *Class) finish(text classText, newCalendar NewCalendar) error {
	calendar, err := text.calendar(newCalendar)
	if err != nil {
		return fmt.Errorf("class %.60q: %w", text.name, err)
	}
	return c.finishWith(text, calendar)
}

func (c *Class) finishWith(text classText, calendar class.Calendar) (err error) {
	if c.Class, err = class.New(text.name, text.board, calendar); err != nil {
		return fmt.Errorf("class %.60q: %w", text.name, err)
	}
	if c.Grace == unset {
		c.Grace = defaultGrace
	}
	if c.Orders == unset {
		c.Orders = defaultOrders
	}
	if c.keepUnset = c.Keep == unset; c.keepUnset && calendar.Periodic() {
		c.Keep = defaultKeep
	}
	c.Keep = max(c.Keep, 0)
	if text.score == "integer" || c.Ties != TiesMember {
		c.Form = rankcache.ScoreInteger
	}
	if text.order == "asc" {
		c.Form |= rankcache.ScoreLowest
	}
	if c.Ops == nil {
		c.Ops = []wire.Op{wire.OpIncr, wire.OpSet, wire.OpDelete}
	}
	if err = c.imply(); err == nil {
		err = cmp.Or(c.checkRolling(), c.check(text.score), c.split(text.shards))
	}
	if err != nil {
		return fmt.Errorf("class %s: %w", c.Name(), err)
	}
	return nil
}

func (c *Class) check(score string) error {
	switch {
	case c.Title != "" && !rankcache.PlainText(c.Title, maxTitle):
		return fmt.Errorf("title: want at most %d bytes of UTF-8 without control characters", maxTitle)
	case score == "number" && c.Ties != TiesMember:
		return fmt.Errorf("ties: %s keeps the tie-break in the fraction of a score, so scores must be integers: leave out score: number", c.Ties)
	case c.FinalAll && !c.Ledger:
		return errors.New("final_rows: want ledger: true, which finals are of")
	case c.FinalAll && !c.Calendar().Periodic():
		return errors.New("final_rows: want periods: a board without has no final")
	case c.Grace > c.Keep && c.Calendar().Periodic():
		return fmt.Errorf("grace %v is longer than keep %v", c.Grace, c.Keep)
	case c.Orders%time.Second != 0:
		return fmt.Errorf("orders %v: want whole seconds", c.Orders)
	case c.Durable && c.Orders < minDurableOrders:
		return fmt.Errorf("orders %v: want at least %v, as the class is durable: what Redis has lost is applied again while its order id is known", c.Orders, minDurableOrders)
	case len(c.Ops) == 0 && !c.Rolls():
		return errors.New("ops: want at least one of incr, set, best and delete")
	case c.Trim > 0 && slices.ContainsFunc(c.Ops, func(op wire.Op) bool { return !op.HasDelta() }):
		return errors.New("trim: want ops: [incr] or [best], as a member that was trimmed comes back by a better score only")
	case c.Guard.Gain > 0 && (!slices.Equal(c.Ops, []wire.Op{wire.OpIncr}) || c.Form.Lowest()):
		return errors.New("guard: gain: want ops: [incr], and no order: asc: it limits what increments add")
	case c.Data && c.Shards() > 1:
		return errors.New("data: a class with shards has none: leave shards out")
	case len(c.Feeds) > 0 && c.Calendar().Seasons() != nil:
		return errors.New("feeds: a class with seasons has none")
	case len(c.Feeds) > 0 && !c.opsCommute():
		return errors.New("feeds: want ops: [incr] or [best], as only these change other classes")
	case c.IDs != IDs{} && len(c.Dimensions()) > 1:
		return fmt.Errorf("ids: board %q has several dimensions, want at most one: requests by ids have one value", c.Template())
	case c.Group != "" && c.IDs == IDs{}:
		return errors.New("group: want ids, too: only requests by ids read groups")
	}
	if err := c.checkLinger(); err != nil {
		return err
	}
	return c.checkMode()
}

// readFinalRows reads how many rows of a final are kept: all, or if it is not given the first 1,000.
func (c *Class) readFinalRows(n *yaml.Node) error {
	c.FinalAll = true
	all := ""
	return oneOf(&all, "all")(n)
}

func (c *Class) readRanks(n *yaml.Node) error {
	ranks := ""
	err := oneOf(&ranks, "exact", "approx")(n)
	c.Approximate = ranks == "approx"
	return err
}

func (c *Class) addOp(s string) error {
	op, err := wire.ParseOp(s)
	if slices.Contains(c.Ops, op) {
		err = fmt.Errorf("op %s twice", s)
	}
	c.Ops = append(c.Ops, op)
	return err
}

func (c *Class) addWarm(s string) error {
	err := rankcache.CheckMember(s)
	if err == nil && len(c.WarmMembers) == maxWarm {
		err = fmt.Errorf("more than %d warm_members", maxWarm)
	}
	c.WarmMembers = append(c.WarmMembers, s)
	return err
}

func (c *Class) readGuard(n *yaml.Node) error {
	action := "observe"
	err := fields(n, map[string]func(*yaml.Node) error{
		"changes": rate("changes", &c.Guard.Changes, maxPerGuard, &c.Guard.Per, time.Hour),
		"gain":    rate("gain", &c.Guard.Gain, maxGain, &c.Guard.GainPer, 24*time.Hour),
		"members": integer(&c.Guard.Members, 1, maxMembers),
		"action":  oneOf(&action, "observe", "refuse"),
	})
	c.Guard.Refuse = action == "refuse"
	return err
}

// OneDim returns a board's dimensions given the value of its one dimension; "" for a class without any.
func (c *Class) OneDim(value string) (map[string]string, error) {
	names := c.Dimensions()
	switch {
	case len(names) == 0 && value == "":
		return nil, nil
	case len(names) == 1:
		return map[string]string{names[0]: value}, class.CheckDimension(value)
	}
	return nil, fmt.Errorf("class %s has the dimensions %q, and %.60q is given: want one, or none of both", c.Name(), names, value)
}

func (c *Class) readIDs(n *yaml.Node) error {
	err := fields(n, map[string]func(*yaml.Node) error{"act": integer(&c.IDs.Act, 1, maxID), "rank": integer(&c.IDs.Rank, 1, maxID)})
	if err == nil && (c.IDs.Act == 0 || c.IDs.Rank == 0) {
		err = at(n, errors.New("ids: want both, as in {act: 1, rank: 2}"))
	}
	return err
}

// rate reads a rate such as 60/1m.
func rate(what string, to *int, most int, within *time.Duration, longest time.Duration) func(*yaml.Node) error {
	return asString(func(s string) (err error) {
		count, per, _ := strings.Cut(s, "/")
		*to, err = strconv.Atoi(count)
		if err == nil {
			*within, err = time.ParseDuration(per)
		}
		if err != nil || *to < 1 || *to > most || *within < time.Second || *within > longest {
			return fmt.Errorf("%s %.40q: want a number up to %d and a duration of 1s to %dh, such as 60/1m", what, s, most, longest/time.Hour)
		}
		return nil
	})
}

// Order is the direction in which the best score that is shown comes first.
func (c *Class) Order() rankcache.Direction { return c.Form.Named(rankcache.Descending) }

func (c *Class) lasting() [10]string {
	feeds := make([]string, len(c.Feeds))
	for i, f := range c.Feeds {
		feeds[i] = f.String()
	}
	slices.Sort(feeds)
	return [...]string{c.Template(), c.Calendar().String(), c.Calendar().Starts(), c.Calendar().Zone(), string(c.Ties), c.Order().String(), strings.Join(feeds, ", "), c.Rolling.String(), strconv.Itoa(c.Shards()), strconv.FormatBool(c.Data)}
}

func (c *Class) wrong(err error) error {
	return fmt.Errorf("%s: line %d: class %s: %w", c.source, c.line, c.Name(), err)
}

// SetAtRunTime reports whether the class is not of the rooms file.
func (c *Class) SetAtRunTime() bool { return c.source == moreSource }
