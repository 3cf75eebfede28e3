package httpapi

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"rankcache"
	"rankcache/class"
	"rankcache/rooms"
	"rankcache/sidecar/encode"
)

// maxDims is the most dimensions that the ids of a class can have, as the longest id has to be one of a board.
const maxDims = rankcache.MaxBoardLen / class.MaxDimension

// classIndex is the classes of one rooms file by their names. It is replaced with the file.
type classIndex struct {
	file   *rooms.File
	byName map[string]*knownClass
}

// knownClass is a class with what most reads of it need.
type knownClass struct {
	*rooms.Class
	file              *rooms.File
	dims              []string
	running, previous atomic.Pointer[classPeriod]
}

// classes are those of the rooms file in force.
type classes struct {
	rooms func() *rooms.File
	index atomic.Pointer[classIndex]
}

func (c *classes) inForce() *classIndex {
	file := c.rooms()
	if known := c.index.Load(); known != nil && known.file == file {
		return known
	}
	known := &classIndex{file, make(map[string]*knownClass, len(file.Classes))}
	for _, c := range file.Classes {
		known.byName[c.Name()] = &knownClass{Class: c, file: file, dims: c.Dimensions()}
	}
	c.index.Store(known)
	return known
}

// classRead is the part of a call that names its board by a class.
type classRead struct {
	class  *knownClass // nil: the request names a board
	period *classPeriod
	dims   [maxDims]string // values of the class's dimensions; "": not given
	before *periodBefore   // nil: no trend is asked for
}

// periodBefore is what a trend is read from.
type periodBefore struct {
	board rankcache.BoardID // "": this is the first season
	now   time.Time         // of the request
	until time.Time         // when the trend that was read may have changed; zero: it can't
	trend *encode.Trend     // of the page's rows and the caller, if they were looked up for this call
}

// known returns the trend that was looked up, nil if none was.
func (b *periodBefore) known() *encode.Trend {
	if b == nil {
		return nil
	}
	return b.trend
}

func (r *classRead) find(known *classIndex, name string) *encode.Problem {
	if r.class = known.byName[name]; r.class == nil {
		return &encode.Problem{Code: encode.CodeUnknownClass, Detail: "want a class of the rooms file, or one set at run time: GET /v1/classes lists them"}
	}
	return nil
}

// rowLimit returns limit, or the limit of the class if there is one.
func (r *classRead) rowLimit(limit int) int {
	if r.class != nil {
		return r.class.Top
	}
	return limit
}

// dimension returns the index of a dimension of the class, -1 if it has none of the name.
func (r *classRead) dimension(name string) int {
	if r.class == nil {
		return -1
	}
	return slices.Index(r.class.dims, name)
}

// set takes the value of a dimension, decoded unless ok is false.
func (r *classRead) set(i int, value string, ok bool) *encode.Problem {
	name := r.class.dims[i]
	switch {
	case r.dims[i] != "":
		return encode.BadArgument(name, "is given twice")
	case !ok:
		return encode.BadArgument(name, "is not percent-encoded")
	}
	if err := class.CheckDimension(value); err != nil {
		return encode.BadArgument(name, fmt.Sprintf("is %.80q: %v", value, err))
	}
	r.dims[i] = value
	return nil
}

// appendBoard finds the period that at names, and appends the id of its board to dst.
func (r *classRead) appendBoard(dst []byte, at string, now time.Time) ([]byte, *encode.Problem) {
	for i, name := range r.class.dims {
		if r.dims[i] == "" {
			return dst, encode.BadArgument(name, "is missing: the class has the dimensions "+strings.Join(r.class.dims, ", "))
		}
	}
	p, err := r.class.periodAt(at, now)
	if err != nil {
		return dst, encode.PeriodProblem(err)
	}
	if p.State == rooms.PeriodGone && !r.class.Ledger { // else there may be a final
		return dst, &encode.Problem{Code: encode.CodeUnknownPeriod, Detail: r.class.Gone(p.Period).Error()}
	}
	r.period = p
	return r.class.AppendID(dst, r.dims[:len(r.class.dims)], p.Tag), nil
}

func (r *classRead) findBefore(now time.Time) *encode.Problem {
	before, err := r.class.before(r.period, now)
	if _, first := errors.AsType[*class.Gap](err); first {
		r.before = &periodBefore{now: now}
		return nil
	}
	if err != nil {
		return noTrend(err.Error())
	}
	id := r.class.AppendID(nil, r.dims[:len(r.class.dims)], before.Tag)
	r.before = &periodBefore{board: rankcache.BoardID(id), now: now}
	return nil
}

func noTrend(detail string) *encode.Problem {
	return &encode.Problem{Code: encode.CodeTrend, Detail: detail}
}

// appendClass adds class, period and how far the board's life has come, for a call that names a class.
func (r *classRead) appendClass(object []byte, life rankcache.Life) []byte {
	if r.period == nil {
		return object
	}
	object = append(append(object[:len(object)-1], r.period.tail...), r.period.State.Locked(life).String()...)
	return append(object, `"}`...)
}

type classRow struct {
	Name       string           `json:"name"`
	Title      string           `json:"title"`
	Board      string           `json:"board"` // template of ids
	Dimensions []string         `json:"dimensions"`
	Period     string           `json:"period"`
	TZ         string           `json:"tz"`
	Score      string           `json:"score"`
	Ties       rooms.Ties       `json:"ties"`
	Order      string           `json:"order,omitempty"` // asc, where the lowest score is the best
	Ops        []string         `json:"ops"`
	Mode       string           `json:"mode"`
	Feeds      []string         `json:"feeds"`
	FeedsBy    []rooms.Feed     `json:"feeds_by,omitempty"` // those of the feeds that need a group of the command
	Trim       int              `json:"trim"`
	Shards     int              `json:"shards,omitempty"`
	Ranks      string           `json:"ranks,omitempty"` // approx, where those of members are so by default
	Grace      float64          `json:"grace_s"`
	Keep       float64          `json:"keep_s"`
	Top        int              `json:"top"`
	Starts     string           `json:"starts,omitempty"`
	Running    *encode.Period   `json:"running"` // nil: the class has no periods, or no season runs
	Seasons    []*encode.Period `json:"seasons,omitempty"`
}

// rows returns the classes in force as they are listed, in the order of the rooms file.
func (c *classes) rows(now time.Time) ([]classRow, error) {
	known := c.inForce()
	rows := make([]classRow, len(known.file.Classes))
	for i, c := range known.file.Classes {
		k := known.byName[c.Name()]
		p, err := k.periodAt(rooms.Now, now)
		if _, gap := errors.AsType[*class.Gap](err); gap {
			p = &classPeriod{}
		} else if err != nil {
			return nil, fmt.Errorf("class %s has no running period: %w", k.Name(), err)
		}
		rows[i] = k.row(p, now)
	}
	return rows, nil
}

func (k *knownClass) row(running *classPeriod, now time.Time) classRow {
	row := classRow{Ops: []string{}, Name: k.Name(), Title: k.Title, Board: k.Template(), Dimensions: append([]string{}, k.dims...),
		Period: k.Calendar().String(), TZ: k.Calendar().Zone(), Score: "number", Ties: k.Ties, Mode: k.Mode.String(),
		Feeds: k.FeedNames(), FeedsBy: k.FeedsBy(), Trim: k.Trim, Shards: k.Shards(), Grace: k.Grace.Seconds(), Keep: k.Keep.Seconds(), Top: k.Top, Starts: k.Calendar().Starts(), Running: encode.PeriodOf(running.Period, running.State)}
	for _, s := range k.Calendar().Seasons() {
		row.Seasons = append(row.Seasons, encode.PeriodOf(s, k.InState(s, now).State))
	}
	for _, op := range k.Ops {
		row.Ops = append(row.Ops, op.String())
	}
	if k.Approximate {
		row.Ranks = rankcache.Approx.String()
	}
	if k.Form.Integer() {
		row.Score = "integer"
	}
	if k.Form.Lowest() {
		row.Order = rankcache.LowestFirst.String()
	}
	return row
}

// classPeriod is one period of a class as answers show it. It is immutable.
type classPeriod struct {
	rooms.NamedPeriod
	tail []byte // of an answer's object, until the board's life
}

// periodAt returns the period that at names. Those of now and previous are kept until the running period ends.
func (k *knownClass) periodAt(at string, now time.Time) (*classPeriod, error) {
	var kept *atomic.Pointer[classPeriod]
	switch at {
	case rooms.Now:
		kept = &k.running
	case rooms.Previous:
		kept = &k.previous
	}
	if kept != nil {
		if p := kept.Load(); p != nil && p.Holds(now) {
			return p, nil
		}
	}
	named, err := k.PeriodAt(at, now)
	if err != nil {
		return nil, err
	}
	p := &classPeriod{named, encode.ClassTail(k.Name(), named.Period, named.State)}
	if kept != nil {
		kept.Store(p)
	}
	return p, nil
}

// before returns the period before p, whose state is of now.
func (k *knownClass) before(p *classPeriod, now time.Time) (class.Period, error) {
	if p.State != rooms.PeriodRunning || !k.Calendar().Periodic() {
		return k.Calendar().Previous(p.Period)
	}
	previous, err := k.periodAt(rooms.Previous, now)
	if err != nil {
		return class.Period{}, err
	}
	return previous.Period, nil
}
