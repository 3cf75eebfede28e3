package httpapi

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"rankcache"
	"rankcache/class"
	"rankcache/rooms"
	"rankcache/sidecar/internal/apijson"
)

// maxDims is the most dimensions that the ids of a class can have, as the longest id
// has to be one of a board.
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

// classesInForce returns the classes of the rooms file in force.
func (s *Server) classesInForce() *classIndex {
	file := s.cfg.Classes()
	if known := s.classes.Load(); known != nil && known.file == file {
		return known
	}
	known := &classIndex{file, make(map[string]*knownClass, len(file.Classes))}
	for _, c := range file.Classes {
		known.byName[c.Name()] = &knownClass{Class: c, file: file, dims: c.Dimensions()}
	}
	s.classes.Store(known)
	return known
}

// findClass sets the class that the call names.
func (s *Server) findClass(c *call) *apijson.Problem {
	if c.class = s.classesInForce().byName[c.args.class]; c.class == nil {
		return &apijson.Problem{Code: apijson.CodeUnknownClass, Detail: "want a class of the rooms file: GET /v1/classes lists them"}
	}
	return nil
}

// rowLimit returns limit, or the limit of the class if the call names one.
func (c *call) rowLimit(limit int) int {
	if c.class != nil {
		return c.class.Top
	}
	return limit
}

// dimension returns the index of a dimension of the class, -1 if it has none of the name.
func (c *call) dimension(name string) int {
	if c.class == nil {
		return -1
	}
	return slices.Index(c.class.dims, name)
}

func (c *call) setDimension(i int, raw []byte) *apijson.Problem {
	name := c.class.dims[i]
	if c.args.dims[i] != "" {
		return apijson.BadArgument(name, "is given twice")
	}
	value, ok := c.decode(raw, true)
	if !ok {
		return apijson.BadArgument(name, "is not percent-encoded")
	}
	if err := class.CheckDimension(value); err != nil {
		return apijson.BadArgument(name, fmt.Sprintf("is %.80q: %v", value, err))
	}
	c.args.dims[i] = value
	return nil
}

// nameBoard finds the board of the call's class, dimensions and time. The rest of the
// call is a read of that board.
func (c *call) nameBoard(now time.Time) *apijson.Problem {
	for i, name := range c.class.dims {
		if c.args.dims[i] == "" {
			return apijson.BadArgument(name, "is missing: the class has the dimensions "+strings.Join(c.class.dims, ", "))
		}
	}
	p, err := c.class.periodAt(c.args.at, now)
	if err != nil {
		return apijson.BadArgument(argNames[argAt], err.Error())
	}
	if p.state == periodGone {
		return &apijson.Problem{Code: apijson.CodeUnknownPeriod,
			Detail: fmt.Sprintf("the period %s ended on %s, boards are kept for %v", p.Tag, p.End.Format(time.RFC3339), c.class.Keep)}
	}
	c.period = p
	from := len(c.decoded)
	c.decoded = c.class.AppendID(c.decoded, c.args.dims[:len(c.class.dims)], p.Tag)
	c.query.Board = rankcache.BoardID(view(c.decoded[from:]))
	return nil
}

// appendClass adds the class and its period to an object. It does nothing for a call
// that names a board.
func (c *call) appendClass(object []byte) []byte {
	if c.period == nil {
		return object
	}
	return append(object[:len(object)-1], c.period.tail...)
}

// classRow is a class as GET /v1/classes shows it.
type classRow struct {
	Name       string     `json:"name"`
	Title      string     `json:"title"`
	Dimensions []string   `json:"dimensions"`
	Period     string     `json:"period"`
	TZ         string     `json:"tz"`
	Top        int        `json:"top"`
	Running    *periodRow `json:"running"` // nil: the class has no periods
}

// listClasses answers with the classes in force, in the order of the rooms file.
func (s *Server) listClasses(ctx *fasthttp.RequestCtx, c *call) *apijson.Problem {
	known, now := s.classesInForce(), s.cfg.Now()
	rows := make([]classRow, len(known.file.Classes))
	for i, class := range known.file.Classes {
		k := known.byName[class.Name()]
		p, err := k.periodAt(atNow, now)
		if err != nil {
			s.log.Error("a class has no running period", "class", k.Name(), "error", err)
			return &apijson.Problem{Code: apijson.CodeInternal}
		}
		rows[i] = classRow{k.Name(), k.Title, append([]string{}, k.dims...), k.Calendar().String(), k.Calendar().Zone(), k.Top, p.row()}
	}
	body, err := json.Marshal(map[string]any{"classes": rows})
	if err != nil {
		s.log.Error("classes can't be encoded", "error", err)
		return &apijson.Problem{Code: apijson.CodeInternal}
	}
	ctx.Response.Header.SetCanonical(headerCache, valueShared)
	ctx.Response.Header.SetContentType(contentJSON)
	ctx.Response.SetBodyRaw(body)
	s.counters.add(ctx.ConnID(), c.route, outcomeNoSource)
	return nil
}
