package httpapi

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"rankcache"
	"rankcache/rooms"
	"rankcache/sidecar"
	"rankcache/sidecar/encode"
)

const defaultLimit = 50 // how many rows a top has without the argument limit

// args are the query arguments of one request that are not of its query.
type args struct {
	profiles, trend bool
	byRank          bool   // members are listed best first
	rows            int    // the most of them; 0: all
	name, at        string // of the class and of its period, as they are in the request
	seen            [argCount]bool
}

// The query arguments. Unknown and repeated ones are errors: a misspelt limit would give the wrong page.
const (
	argStart = iota
	argLimit
	argOrder
	argMe
	argProfiles
	argRoom
	argAround
	argMaxAge
	argMinSeq
	argMinState
	argWait
	argGap
	argRankMode
	argPercentile
	argTrend
	argAt
	argSort
	argMinScore
	argMaxScore
	argCount
)

var argNames = [argCount]string{"start", "limit", "order", "me", "profiles", "room", "around", "max_age_ms", "min_seq", "min_state", "wait_ms", "gap", "rank_mode", "percentile", "trend", "at", "sort", "min_score", "max_score"}

// argsOf is which arguments a route takes, beside the dimensions of a class.
var argsOf = [routes][argCount]bool{
	routeTop: topArgs, routeMember: memberArgs, routeClassTop: withAt(topArgs), routeClassMember: withAt(memberArgs), routeScore: scoreArgs, routeClassScore: withAt(scoreArgs),
	routeBatch: batchArgs, routeClassBatch: withAt(batchArgs),
}

var (
	topArgs = [argCount]bool{argStart: true, argLimit: true, argOrder: true, argMe: true, argAround: true, argGap: true, argProfiles: true, argRoom: true, argRankMode: true, argPercentile: true, argTrend: true,
		argMinScore: true, argMaxScore: true, argMaxAge: true, argMinSeq: true, argMinState: true, argWait: true}
	scoreArgs  = [argCount]bool{argOrder: true, argRoom: true, argMaxAge: true, argMinSeq: true, argMinState: true, argWait: true}
	memberArgs = [argCount]bool{argOrder: true, argProfiles: true, argRoom: true, argAround: true, argRankMode: true, argPercentile: true, argTrend: true,
		argMaxAge: true, argMinSeq: true, argMinState: true, argWait: true}
	batchArgs = [argCount]bool{argOrder: true, argProfiles: true, argRoom: true, argRankMode: true, argPercentile: true, argTrend: true, argSort: true, argLimit: true, argMe: true,
		argMaxAge: true, argMinSeq: true, argMinState: true, argWait: true}
)

func withAt(args [argCount]bool) [argCount]bool {
	args[argAt] = true
	return args
}

func (c *call) parseArgs(query []byte) *encode.Problem {
	if c.args.at = rooms.Now; c.route.page() {
		c.query().Limit = c.rowLimit(defaultLimit)
	}
	for len(query) > 0 {
		var pair []byte
		if i := bytes.IndexByte(query, '&'); i >= 0 {
			pair, query = query[:i], query[i+1:]
		} else {
			pair, query = query, nil
		}
		if len(pair) == 0 {
			continue
		}
		if p := c.parseArg(pair); p != nil {
			return p
		}
	}
	if p := c.checkScores(); p != nil {
		return p
	}
	return c.checkMe()
}

// checkScores refuses a page without rows, unless those between two scores are counted.
func (c *call) checkScores() *encode.Problem {
	switch q := c.query(); {
	case !c.route.page():
		return nil
	case q.Range == nil && q.Limit == 0:
		return encode.BadArgument("limit", fmt.Sprintf(`is "0": want 1 to %d`, c.rowLimit(rankcache.MaxTop)))
	case q.Range != nil && q.Range.Least > q.Range.Most:
		return encode.BadArgument("min_score", "is above max_score")
	}
	return nil
}

// checkMe refuses around and gap without me, and what is of a sorted list without one.
func (c *call) checkMe() *encode.Problem {
	const detail, sorted = "is of the member that me names: want me, too", "is of a list by rank: want sort=rank, too"
	switch q := c.query(); {
	case c.route.batch() && !c.args.byRank && c.args.rows > 0:
		return encode.BadArgument("limit", sorted)
	case c.route.batch() && !c.args.byRank && len(q.Members) > 0:
		return encode.BadArgument("me", sorted)
	case !c.route.page() || len(q.Members) > 0:
		return nil
	case q.Gap:
		return encode.BadArgument("gap", detail)
	case q.Around > 0:
		return encode.BadArgument("around", detail)
	}
	return nil
}

func (c *call) parseArg(pair []byte) *encode.Problem {
	var raw []byte
	if i := bytes.IndexByte(pair, '='); i >= 0 {
		pair, raw = pair[:i], pair[i+1:]
	}
	for arg, name := range argNames {
		if string(pair) != name {
			continue
		}
		if c.args.seen[arg] {
			return encode.BadArgument(name, "is given twice")
		}
		if !argsOf[c.route][arg] {
			break
		}
		c.args.seen[arg] = true
		value, ok := c.decode(raw, true)
		if !ok {
			return encode.BadArgument(name, "is not percent-encoded")
		}
		return c.setArg(arg, value)
	}
	if i := c.dimension(view(pair)); i >= 0 {
		value, ok := c.decode(raw, true)
		return c.set(i, value, ok)
	}
	return encode.BadArgument(string(pair[:min(len(pair), 40)]), "is no argument here: want "+c.wants())
}

// setArg checks one decoded value.
func (c *call) setArg(arg int, value string) *encode.Problem {
	q := c.query()
	switch arg {
	case argStart:
		return setNumber(&q.Start, "start", value, 0, rankcache.MaxStart)
	case argLimit:
		if c.route.batch() {
			return setNumber(&c.args.rows, "limit", value, 1, rankcache.MaxTop)
		}
		if value == "0" && c.route.page() { // see checkScores
			q.Limit = 0
			return nil
		}
		return setNumber(&q.Limit, "limit", value, 1, c.rowLimit(rankcache.MaxTop))
	case argAround:
		n := 0
		p := setNumber(&n, "around", value, 0, sidecar.MaxAround)
		q.Around = 2*n + 1
		return p
	case argOrder:
		return setWord(value, "order", "desc", "asc", func(asc bool) {
			if q.Order = rankcache.HighestFirst; asc {
				q.Order = rankcache.LowestFirst
			}
		})
	case argProfiles:
		return setWord(value, "profiles", "0", "1", func(on bool) { c.args.profiles = on })
	case argGap:
		return setWord(value, "gap", "0", "1", func(on bool) { q.Gap = on })
	case argPercentile:
		return setWord(value, "percentile", "0", "1", func(on bool) { q.Percentile = on })
	case argSort:
		c.args.byRank = value == "rank"
		if !c.args.byRank {
			return encode.BadArgument("sort", fmt.Sprintf("is %.40q: want rank", value))
		}
		return nil
	case argTrend:
		return setWord(value, "trend", "0", "1", func(on bool) { c.args.trend = on })
	case argRankMode:
		return c.setRankMode(value)
	case argRoom:
		return c.setRoom(value)
	case argMaxAge, argMinSeq, argWait:
		return c.setBound(arg, value)
	case argMinState:
		return c.setMinState(value)
	case argMinScore, argMaxScore:
		return c.setScoreBound(arg, value)
	case argAt:
		c.args.at = value
		return nil
	}
	c.name(value)
	if err := rankcache.CheckMember(value); err != nil {
		return encode.BadArgument("me", err.Error())
	}
	return nil
}

func (c *call) setRankMode(text string) *encode.Problem {
	var ok bool
	if c.query().Mode, ok = rankcache.ParseRankMode(text); !ok {
		return encode.BadArgument("rank_mode", fmt.Sprintf("is %.40q: want ordinal, competition, dense or approx", text))
	}
	return nil
}

func (c *call) setRoom(uid string) *encode.Problem {
	c.query().Room = uid
	if err := rooms.CheckUID(uid); err != nil {
		return encode.BadArgument("room", err.Error())
	}
	return nil
}

// Limits of the arguments that bound the age of an answer.
const (
	maxAgeMs = 24 * 60 * 60 * 1000
	maxSeq   = 1 << 53 // what JSON carries to every reader
)

// setBound reads an argument that bounds the answer's age. An age of 0 no copy has: only Redis will do.
func (c *call) setBound(arg int, value string) (p *encode.Problem) {
	n := 0
	switch arg {
	case argMaxAge:
		p = setNumber(&n, "max_age_ms", value, 0, maxAgeMs)
		c.query().MaxAge = max(time.Duration(n)*time.Millisecond, 1)
	case argMinSeq:
		p = setNumber(&n, "min_seq", value, 0, maxSeq)
		c.query().MinSeq = uint64(n)
	default:
		p = setNumber(&n, "wait_ms", value, 0, int(sidecar.MaxWait/time.Millisecond))
		c.query().Wait = time.Duration(n) * time.Millisecond
	}
	return p
}

// setScoreBound reads an end of a range of scores, whose other end is open until it is read.
func (c *call) setScoreBound(arg int, value string) *encode.Problem {
	n, ok := parseScore(value)
	if !ok {
		return encode.BadArgument(argNames[arg], fmt.Sprintf("is %.40q: want a number", value))
	}
	if c.query().Range == nil {
		c.scores = rankcache.ScoreRange{Least: math.Inf(-1), Most: math.Inf(1), Shown: true}
		c.query().Range = &c.scores
	}
	if arg == argMinScore {
		c.scores.Least = n
	} else {
		c.scores.Most = n
	}
	return nil
}

// parseScore reads a finite decimal number.
func parseScore(text string) (float64, bool) {
	n, err := strconv.ParseFloat(text, 64)
	return n, err == nil && strings.Trim(text, "0123456789+-.eE") == "" && !math.IsInf(n, 0)
}

func (c *call) setMinState(text string) *encode.Problem {
	state, err := rankcache.ParseState(text)
	c.query().MinState = state
	switch {
	case err != nil:
		return encode.BadArgument("min_state", err.Error())
	case state.Run == 0:
		return encode.BadArgument("min_state", "has no run: want <run>-<seq>-<sum>, as the header Rankcache-State has it")
	}
	return nil
}

func setNumber(to *int, name, value string, least, most int) *encode.Problem {
	n := 0
	for i := range len(value) {
		d := value[i] - '0'
		if n = n*10 + int(d); d > 9 || n > most {
			n = -1
			break
		}
	}
	if n < least || value == "" {
		return encode.BadArgument(name, fmt.Sprintf("is %.40q: want %d to %d", value, least, most))
	}
	*to = n
	return nil
}

// setWord calls set with whether value is the second of the two words.
func setWord(value, name, first, second string, set func(bool)) *encode.Problem {
	if value != first && value != second {
		return encode.BadArgument(name, fmt.Sprintf("is %.40q: want %s or %s", value, first, second))
	}
	set(value == second)
	return nil
}

// wants names the arguments of the call's route.
func (c *call) wants() string {
	var names []string
	for arg, name := range argNames {
		if argsOf[c.route][arg] {
			names = append(names, name)
		}
	}
	if c.class != nil {
		names = append(names, c.class.dims...)
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, " ")
}
