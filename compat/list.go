package compat

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
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

// listRequest is GetRankListReq.
type listRequest struct {
	ActID   integer  `json:"actId"`
	RankObj rankObj  `json:"rankObj"`
	Start   integer  `json:"start"`
	Limit   *integer `json:"limit"`
	Time    *integer `json:"t_time"`
	Member  text     `json:"tid"`
	Filter  []string `json:"needDataFilter"`
	Total   bool     `json:"need_total"`
	Groups  []text   `json:"groups"`
	Ext     texts    `json:"ext_json"`
	Order   integer  `json:"order_type"`
	NoCache bool     `json:"noCache"`

	asked wanted
}

// wanted is what needDataFilter asks for.
type wanted struct {
	rows, info, trend, allGroups, groups bool
	// all tells that it names nothing: then it asks for all that there is.
	all bool
}

// listAnswer is GetRankListRsp.
type listAnswer struct {
	ActID     integer `json:"actId"`
	RankObj   rankObj `json:"rankObj"`
	Name      string  `json:"rank_name"`
	List      []row   `json:"rank_list"`
	Mine      *row    `json:"rank_my,omitempty"`
	Total     *int    `json:"rank_total,omitempty"`
	Groups    []row   `json:"group_rank_list"`
	Locked    string  `json:"locked"`
	Ext       texts   `json:"ext_json"`
	AllGroups []row   `json:"all_group_rank_list"`
}

// row is one row of a list. A member that is not on the board has rank 0 and score 0.
type row struct {
	Rank   int             `json:"rank"`
	Member string          `json:"member_id"`
	Score  uint64          `json:"score"`
	Data   string          `json:"data,omitempty"`
	Info   json.RawMessage `json:"info,omitempty"`
	Before *int            `json:"previous_rank,omitempty"` // 0: it was not on that board
}

// lists answers /compat/rank/list.
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
	if r.Time != nil {
		at = time.Unix(int64(*r.Time), 0)
	}
	board, err := boardAt(kind, string(r.RankObj.ObjID), at, now)
	if err != nil {
		return nil, err
	}
	answer := &listAnswer{ActID: r.ActID, RankObj: r.RankObj, Name: kind.Title, List: []row{}, Groups: []row{}, AllGroups: []row{}, Ext: texts{}}
	life, err := h.addRows(ctx, &r, board.ID, answer)
	if err != nil {
		return nil, err
	}
	h.addInfo(ctx, &r, answer)
	h.addTrend(ctx, &r, board, now, answer)
	answer.Locked = locked(life, board.Period, now)
	return answer, h.addGroups(ctx, &r, kind, at, now, answer)
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
	case *r.Limit < 1 || *r.Limit > most:
		return badField("limit", "is %d, want 1 to %d", *r.Limit, most)
	case r.Order != 0 && r.Order != 1:
		return badField("order_type", "is %d, want 0 (the best first) or 1 (the lowest score first)", r.Order)
	case slices.ContainsFunc(r.Ext, func(s string) bool { return s != "" }):
		return unsupported("ext_json", "nothing is known of its content: leave it empty")
	case len(r.Groups) > maxGroups:
		return badField("groups", "%d groups, want at most %d", len(r.Groups), maxGroups)
	}
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

// want sets what is asked for of a class; profiles is whether there are any.
func (r *listRequest) want(profiles bool, kind *rooms.Class) error {
	has := wanted{rows: true, info: profiles, trend: kind.Calendar().Periodic(), allGroups: kind.Group != "", groups: kind.Group != "" && len(r.Groups) > 0}
	if len(r.Filter) == 0 {
		r.asked = has
		r.asked.all = true
	}
	for _, f := range r.Filter {
		if err := r.add(f, &has, kind); err != nil {
			return err
		}
	}
	if r.asked.groups != (len(r.Groups) > 0) {
		return badField("groups", "want 1 to %d groups with SPEC_GROUP, and none without", maxGroups)
	}
	return nil
}

// add adds one value of needDataFilter.
func (r *listRequest) add(filter string, has *wanted, kind *rooms.Class) error {
	switch filter {
	case filterRaw:
		r.asked.rows = true
	case filterInfo:
		if r.asked.rows, r.asked.info = true, true; !has.info {
			return unsupported(filter, "no profile source is configured")
		}
	case filterCompare:
		if r.asked.rows, r.asked.trend = true, true; !has.trend {
			return unsupported(filter, "class %s has no periods", kind.Name())
		}
	case filterAll, filterSome:
		r.asked.allGroups, r.asked.groups = r.asked.allGroups || filter == filterAll, r.asked.groups || filter == filterSome
		if kind.Group == "" {
			return unsupported(filter, "class %s has no group in the rooms file", kind.Name())
		}
	default:
		return badField("needDataFilter", "%.40q: want RAW, INFO, RANK_COMPARE, ALL_GROUP or SPEC_GROUP", filter)
	}
	return nil
}

// boardAt returns the board of a class whose one dimension has the value, at a time.
func boardAt(kind *rooms.Class, value string, at, now time.Time) (class.Board, error) {
	dims, err := kind.OneDim(value)
	if err != nil {
		return class.Board{}, badField("objId", "%w", err)
	}
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

// locked tells whether the board of a period takes changes. Only Redis tells that no score
// changes any more: after the end by the clock a command that came in time may be applied.
func locked(life rankcache.Life, p class.Period, now time.Time) string {
	switch {
	case life >= rankcache.LifeClosed:
		return "locked"
	case life == rankcache.LifeClosing, p.Tag != "" && !now.Before(p.End):
		return "locking"
	}
	return "nolock"
}

// direction returns which end of a board comes first.
func (r *listRequest) direction() rankcache.Direction {
	if r.Order == 1 {
		return rankcache.LowestFirst
	}
	return rankcache.Descending
}

// query returns how the request reads a board.
func (r *listRequest) query(board rankcache.BoardID) rankcache.Query {
	q := rankcache.Query{Board: board, Order: r.direction()}
	if r.NoCache {
		q.MaxAge = time.Nanosecond // no copy is so young: Redis answers
	}
	return q
}

// addRows adds the page, the caller's row and the total, all of one moment unless the page
// is a refreshed one that does not have the caller, and returns the board's life of it.
func (h lists) addRows(ctx context.Context, r *listRequest, board rankcache.BoardID, to *listAnswer) (life rankcache.Life, err error) {
	q := r.query(board)
	q.Start, q.Limit = int(r.Start), int(*r.Limit)
	if r.Member != "" {
		q.Members, q.Around = []string{string(r.Member)}, 1 // of the moment of the rows
	}
	a := rankcache.One(ctx, h.cfg.Reader, q)
	if a.Err != nil {
		return 0, a.Err
	}
	if r.asked.rows {
		if to.List, err = rowsOf(&a); err != nil {
			return 0, err
		}
	}
	if r.Member != "" && a.Own[0].Err == nil { // else the list is answered without it
		mine, err := rowOf(string(r.Member), a.Form.Shown(a.Own[0].Score), a.Own[0].Rank)
		if err != nil {
			return 0, err
		}
		mine.Data = a.Own[0].Data.Of(mine.Member)
		to.Mine = &mine
	}
	if r.Total {
		to.Total = &a.Members
	}
	return a.Life, nil
}

func rowOf(member string, score float64, rank int) (row, error) {
	shown, err := shownScore(score)
	return row{Rank: rank, Member: member, Score: shown}, err
}

func rowsOf(a *rankcache.Answer) ([]row, error) {
	rows := make([]row, len(a.Entries))
	for i, e := range a.Entries {
		var err error
		if rows[i], err = rowOf(e.Member, a.Form.Shown(e.Score), a.Start+i+1); err != nil {
			return nil, err
		}
		rows[i].Data = a.Data.Of(e.Member)
	}
	return rows, nil
}

// ranked returns all rows of members, and their members.
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

// addInfo adds the members' profiles.
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

// addTrend adds the members' ranks in the period before. A list is answered without them where they
// can't be read.
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

// addGroups adds rows of the board of groups that goes with the class's board.
func (h lists) addGroups(ctx context.Context, r *listRequest, kind *rooms.Class, at, now time.Time, to *listAnswer) error {
	if !r.asked.allGroups && !r.asked.groups {
		return nil
	}
	group := h.cfg.Classes().Class(kind.Group)
	if group == nil { // another rooms file came into force
		return notFound("unknown_class", "No such class", "the class of the groups is not in the rooms file any more")
	}
	value := string(r.RankObj.ObjID)
	if len(group.Dimensions()) == 0 {
		value = ""
	}
	board, err := boardAt(group, value, at, now)
	if _, gone := errors.AsType[problem](err); gone && r.asked.all { // all that there is
		return nil
	}
	if err != nil {
		return err
	}
	q := r.query(board.ID)
	if r.asked.allGroups {
		q.Limit = maxLimit
	}
	for _, g := range r.Groups {
		q.Members = append(q.Members, string(g))
	}
	a := rankcache.One(ctx, h.cfg.Reader, q)
	if a.Err != nil {
		return a.Err
	}
	if r.asked.allGroups {
		if to.AllGroups, err = rowsOf(&a); err != nil {
			return err
		}
	}
	for i := range a.Own {
		own := &a.Own[i]
		if own.Err != nil {
			return own.Err
		}
		group, err := rowOf(own.Member, a.Form.Shown(own.Score), own.Rank)
		if err != nil {
			return err
		}
		to.Groups = append(to.Groups, group)
	}
	return nil
}
