package compat

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"rankcache"
	"rankcache/class"
	"rankcache/rooms"
)

// Limits of a list.
const (
	maxLimit  = 499
	maxGroups = 10
)

// Values of needDataFilter.
const (
	filterRaw     = "RAW"
	filterInfo    = "INFO"
	filterAll     = "ALL_GROUP"
	filterSome    = "SPEC_GROUP"
	filterCompare = "RANK_COMPARE"
)

type listRequest struct {
	ActID   integer  `json:"actId"`
	RankObj rankObj  `json:"rankObj"`
	Start   integer  `json:"start"`
	Limit   *integer `json:"limit"`
	Time    integer  `json:"t_time,case:ignore"`
	Member  text     `json:"tid"`
	Filter  []string `json:"needDataFilter"`
	Total   bool     `json:"need_total,case:ignore"`
	Groups  []text   `json:"groups"`
	Ext     texts    `json:"ext_json,case:ignore"` // not looked at
	Order   integer  `json:"order_type,case:ignore"`
	NoCache bool     `json:"noCache"`

	asked wanted
}

type wanted struct {
	rows, info, trend, allGroups, someGroups bool
	all                                      bool // it names nothing: then it asks for all that there is
}

type listAnswer struct {
	ActID      integer     `json:"actId"`
	RankObj    rankObj     `json:"rankObj"`
	Name       string      `json:"rank_name"`
	List       []row       `json:"rank_list"`
	Mine       *row        `json:"rank_my,omitempty"`
	Total      *int        `json:"rank_total,omitempty"`
	Groups     []row       `json:"group_rank_list"`
	Locked     string      `json:"locked"`
	Ext        texts       `json:"ext_json"`
	GroupLists []groupList `json:"all_group_rank_list"`
}

// row is one row of a list. A member that is not on the board has rank 0 and score 0.
type row struct {
	Rank   int             `json:"rank"`
	Member string          `json:"member_id"`
	Score  uint64          `json:"score"`
	Code   int             `json:"errCode,omitempty"` // 422: the score is beyond unsigned numbers, and shown as the nearest
	Data   string          `json:"data,omitempty"`
	Info   json.RawMessage `json:"info,omitempty"`
	Before *int            `json:"previous_rank,omitempty"` // 0: it was not on that board
}

type lists struct{ *Reads }

func (h lists) list(ctx context.Context, body []byte) (any, error) {
	var r listRequest
	if err := decode(body, &r); err != nil {
		return nil, err
	}
	kind, err := classByIDs(h.cfg.Classes(), r.ActID, r.RankObj.RankID)
	if err != nil {
		return nil, err
	}
	if err := r.check(kind); err != nil {
		return nil, err
	}
	if err := r.want(h.cfg.Profiles != nil, kind); err != nil {
		return nil, err
	}
	now, at := h.cfg.Now(), h.cfg.Now()
	if r.Time != 0 {
		at = time.Unix(int64(r.Time), 0)
	}
	dims, err := kind.OneDim(string(r.RankObj.ObjID))
	if err != nil {
		return nil, badField("objId", "%w", err)
	}
	board, err := boardAt(kind, dims, at, now)
	if err != nil {
		return nil, err
	}
	answer := &listAnswer{ActID: r.ActID, RankObj: r.RankObj, Name: cmp.Or(kind.Title, kind.Name()), List: []row{}, Groups: []row{}, GroupLists: []groupList{}, Ext: texts{}}
	a, err := h.addRows(ctx, &r, board.ID, answer)
	if err != nil {
		return nil, err
	}
	h.addInfo(ctx, &r, answer)
	h.addTrend(ctx, &r, board, now, answer)
	answer.Locked = locked(kind, &a, board.Period, now)
	return answer, groups{h, &r, kind, at, now}.add(ctx, board, answer)
}

// check checks what does not depend on the board, and sets the default of limit.
func (r *listRequest) check(kind *rooms.Class) error {
	most := integer(min(kind.Top, maxLimit))
	if r.Limit == nil {
		r.Limit = &most
	}
	switch {
	case r.Start > rankcache.MaxStart:
		return badField("start", "is %d, want 0 to %d", r.Start, rankcache.MaxStart)
	case *r.Limit < 1 || *r.Limit > maxLimit:
		return badField("limit", "is %d, want 1 to %d", *r.Limit, maxLimit)
	case r.Order != 0 && r.Order != 1:
		return badField("order_type", "is %d, want 0 (the best first) or 1 (the lowest score first)", r.Order)
	case len(r.Groups) > maxGroups:
		return badField("groups", "%d groups, want at most %d", len(r.Groups), maxGroups)
	}
	*r.Limit = min(*r.Limit, most)
	if r.Member != "" {
		if err := rankcache.CheckMember(string(r.Member)); err != nil {
			return badField("tid", "%w", err)
		}
	}
	for _, g := range r.Groups {
		if err := rankcache.CheckMember(string(g)); err != nil {
			return badField("groups", "%w", err)
		}
	}
	return nil
}

// want sets what is asked for of a class; what the class has nothing for stays empty.
func (r *listRequest) want(profiles bool, kind *rooms.Class) error {
	r.asked.all = len(r.Filter) == 0
	for _, f := range r.Filter {
		if err := r.add(f, kind); err != nil {
			return err
		}
	}
	if r.asked.all {
		r.asked = wanted{rows: true, info: true, trend: true, allGroups: kind.Group != "" && len(r.Groups) == 0, someGroups: len(r.Groups) > 0, all: true}
	}
	r.asked.info = r.asked.info && profiles
	r.asked.trend = r.asked.trend && kind.Calendar().Periodic()
	switch {
	case r.asked.allGroups && r.asked.someGroups:
		return badField("needDataFilter", "want one of ALL_GROUP and SPEC_GROUP")
	case r.asked.someGroups != (len(r.Groups) > 0):
		return badField("groups", "want 1 to %d groups with SPEC_GROUP, and none without", maxGroups)
	case r.asked.someGroups && kind.Group == "":
		return unsupported(filterSome, "class %s has no group in the rooms file", kind.Name())
	}
	return nil
}

// add adds one value of needDataFilter.
func (r *listRequest) add(filter string, kind *rooms.Class) error {
	asked := &r.asked
	switch filter {
	case filterRaw:
		asked.rows = true
	case filterInfo:
		asked.rows, asked.info = true, true
	case filterCompare:
		asked.rows, asked.trend = true, true
	case filterAll, filterSome:
		asked.allGroups, asked.someGroups = asked.allGroups || filter == filterAll, asked.someGroups || filter == filterSome
		if kind.Group == "" {
			return unsupported(filter, "class %s has no group in the rooms file", kind.Name())
		}
	default:
		return badField("needDataFilter", "%.40q: want RAW, INFO, RANK_COMPARE, ALL_GROUP or SPEC_GROUP", filter)
	}
	return nil
}

func boardAt(kind *rooms.Class, dims map[string]string, at, now time.Time) (class.Board, error) {
	board, err := kind.At(dims, at)
	if err != nil {
		return board, noBoard("t_time", err)
	}
	if board.Period.Tag != "" && !kind.Ledger && kind.InState(board.Period, now).State == rooms.PeriodGone {
		return board, gone(kind, board.Period)
	}
	return board, nil
}

func gone(kind *rooms.Class, p class.Period) error {
	return notFound("unknown_period", "Period is not kept any more", kind.Gone(p).Error())
}

// locked tells whether the board of a period takes changes. Only Redis tells: a command that came in time may be
// applied later. An empty board is not closed there: it is locked when its period's order ids have ended.
func locked(kind *rooms.Class, a *rankcache.Answer, p class.Period, now time.Time) string {
	periodic := p.Tag != ""
	switch {
	case a.Life >= rankcache.LifeClosed, periodic && a.Life == rankcache.LifeOpen && a.Members == 0 && !now.Before(p.End.Add(kind.Grace+kind.Orders)):
		return "locked"
	case a.Life == rankcache.LifeClosing, periodic && !now.Before(p.End):
		return "locking"
	}
	return "nolock"
}

func (r *listRequest) direction() rankcache.Direction {
	if r.Order == 1 {
		return rankcache.LowestFirst
	}
	return rankcache.Descending
}

func (r *listRequest) query(board rankcache.BoardID) rankcache.Query {
	q := rankcache.Query{Board: board, Order: r.direction()}
	if r.NoCache {
		q.MaxAge = time.Nanosecond // no copy is so young: Redis answers
	}
	return q
}

// addRows adds the page, the caller's row and the total, and returns the answer that they are of.
func (h lists) addRows(ctx context.Context, r *listRequest, board rankcache.BoardID, to *listAnswer) (rankcache.Answer, error) {
	q := r.query(board)
	q.Start, q.Limit = int(r.Start), int(*r.Limit)
	if r.Member != "" {
		q.Members, q.Around = []string{string(r.Member)}, 1 // of the moment of the rows
	}
	a := rankcache.One(ctx, h.cfg.Reader, q)
	if a.Err != nil {
		return a, a.Err
	}
	if r.asked.rows {
		to.List = rowsOf(&a)
	}
	if r.Member != "" && a.Own[0].Err == nil { // else the list is answered without it
		mine := rowOf(&a.Own[0].Standing, a.Form)
		mine.Data = a.Own[0].Data.Of(mine.Member)
		to.Mine = &mine
	}
	if r.Total {
		to.Total = &a.Members
	}
	return a, nil
}

func rowOf(s *rankcache.Standing, form rankcache.ScoreForm) row {
	shown, code := shownScore(form.Shown(s.Score))
	return row{Rank: s.Rank, Member: s.Member, Score: shown, Code: code}
}

func rowsOf(a *rankcache.Answer) []row {
	rows := make([]row, len(a.Entries))
	for i, e := range a.Entries {
		rows[i] = rowOf(&rankcache.Standing{Member: e.Member, Score: e.Score, Rank: a.Start + i + 1}, a.Form)
		rows[i].Data = a.Data.Of(e.Member)
	}
	return rows
}

func (a *listAnswer) ranked() (rows []*row, members []string) {
	for i := range a.List {
		rows = append(rows, &a.List[i])
	}
	if a.Mine != nil {
		rows = append(rows, a.Mine)
	}
	for _, r := range rows {
		members = append(members, r.Member)
	}
	return rows, members
}

func (h lists) addInfo(ctx context.Context, r *listRequest, to *listAnswer) {
	rows, members := to.ranked()
	if !r.asked.info || len(rows) == 0 {
		return
	}
	profiles := make([][]byte, len(rows))
	h.cfg.Profiles.Join(ctx, members, profiles)
	for i, row := range rows {
		row.Info = profiles[i]
	}
}

// addTrend adds the members' ranks in the period before. A list is answered without them where they can't be read.
func (h lists) addTrend(ctx context.Context, r *listRequest, board class.Board, now time.Time, to *listAnswer) {
	rows, members := to.ranked()
	if !r.asked.trend || len(rows) == 0 {
		return
	}
	before, err := board.Previous()
	if err != nil { // of the first period that there is
		return
	}
	q := rankcache.Query{Board: before.ID, Order: r.direction(), Members: members, Uncounted: true, RanksOnly: true}
	ranks, _, err := h.cfg.Reader.FormerRanks(ctx, &q, now)
	if err != nil {
		return
	}
	for _, row := range rows {
		rank := ranks[row.Member]
		row.Before = &rank
	}
}
