package compat

import (
	"context"
	"encoding/json"
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
	Ext     string   `json:"ext_json"`
	Order   integer  `json:"order_type"`
	NoCache bool     `json:"noCache"`
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
	Ext       string  `json:"ext_json"`
	AllGroups []row   `json:"all_group_rank_list"`
}

// row is one row of a list. A member that is not on the board has rank 0 and score 0.
type row struct {
	Rank   int             `json:"rank"`
	Member string          `json:"member_id"`
	Score  uint64          `json:"score"`
	Info   json.RawMessage `json:"info,omitempty"`
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
	now, at := h.cfg.Now(), h.cfg.Now()
	if r.Time != nil {
		at = time.Unix(int64(*r.Time), 0)
	}
	board, err := boardAt(kind, string(r.RankObj.ObjID), at, now)
	if err != nil {
		return nil, err
	}
	answer := &listAnswer{ActID: r.ActID, RankObj: r.RankObj, Name: kind.Title, List: []row{}, Groups: []row{}, AllGroups: []row{}}
	life, err := h.addRows(ctx, &r, board.ID, answer)
	if err != nil {
		return nil, err
	}
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
		return badField("order_type", "is %d, want 0 (best is the highest score) or 1", r.Order)
	case r.Ext != "":
		return unsupported("ext_json", "nothing is known of its content: leave it empty")
	case len(r.Groups) > maxGroups:
		return badField("groups", "%d groups, want at most %d", len(r.Groups), maxGroups)
	}
	if r.Member != "" {
		if err := rankcache.CheckMember(string(r.Member)); err != nil {
			return badField("tid", "%w", err)
		}
	}
	return r.checkFilter(kind)
}

func (r *listRequest) checkFilter(kind *rooms.Class) error {
	for _, f := range r.Filter {
		switch {
		case f == filterCompare:
			return unsupported(filterCompare, "ranks of the period before are trend=1 of GET /v1/classes/{class}/top")
		case f == filterAll || f == filterSome:
			if kind.Group == "" {
				return unsupported(f, "class %s has no group in the rooms file", kind.Name())
			}
		case f != filterRaw && f != filterInfo:
			return badField("needDataFilter", "%.40q: want RAW, INFO, RANK_COMPARE, ALL_GROUP or SPEC_GROUP", f)
		}
	}
	some := slices.Contains(r.Filter, filterSome)
	if some != (len(r.Groups) > 0) {
		return badField("groups", "want 1 to %d groups with SPEC_GROUP, and none without", maxGroups)
	}
	for _, g := range r.Groups {
		if err := rankcache.CheckMember(string(g)); err != nil {
			return badField("groups", "%w", err)
		}
	}
	return nil
}

// wantsRows reports whether rank_list is to have rows: no filter is RAW.
func (r *listRequest) wantsRows() bool {
	return len(r.Filter) == 0 || slices.Contains(r.Filter, filterRaw) || slices.Contains(r.Filter, filterInfo)
}

// boardAt returns the board of a class whose one dimension has the value, at a time.
func boardAt(kind *rooms.Class, value string, at, now time.Time) (class.Board, error) {
	dims, err := kind.OneDim(value)
	if err != nil {
		return class.Board{}, badField("objId", "%w", err)
	}
	board, err := kind.At(dims, at)
	if err != nil {
		return board, badField("t_time", "%w", err)
	}
	if board.Period.Tag != "" && kind.InState(board.Period, now).State == rooms.PeriodGone {
		return board, notFound("unknown_period", "Period is not kept any more", kind.Gone(board.Period).Error())
	}
	return board, nil
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

// query returns how the request reads a board.
func (r *listRequest) query(board rankcache.BoardID) rankcache.Query {
	q := rankcache.Query{Board: board, Order: rankcache.Direction(r.Order)}
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
	if r.wantsRows() {
		if to.List, err = rowsOf(&a); err != nil {
			return 0, err
		}
	}
	if r.Member != "" && a.Own[0].Err == nil { // else the list is answered without it
		mine, err := rowOf(string(r.Member), a.Form.Shown(a.Own[0].Score), a.Own[0].Rank)
		if err != nil {
			return 0, err
		}
		to.Mine = &mine
	}
	if r.Total {
		to.Total = &a.Members
	}
	return a.Life, h.addInfo(ctx, r, to)
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
	}
	return rows, nil
}

// addInfo adds the members' profiles.
func (h lists) addInfo(ctx context.Context, r *listRequest, to *listAnswer) error {
	if !slices.Contains(r.Filter, filterInfo) {
		return nil
	}
	if h.cfg.Profiles == nil {
		return unsupported(filterInfo, "no profile source is configured")
	}
	var rows []*row
	for i := range to.List {
		rows = append(rows, &to.List[i])
	}
	if to.Mine != nil {
		rows = append(rows, to.Mine)
	}
	if len(rows) == 0 {
		return nil
	}
	members := make([]string, len(rows))
	for i, row := range rows {
		members[i] = row.Member
	}
	profiles := make([][]byte, len(rows))
	h.cfg.Profiles.Join(ctx, members, profiles)
	for i, row := range rows {
		row.Info = profiles[i]
	}
	return nil
}

// addGroups adds rows of the board of groups that goes with the class's board.
func (h lists) addGroups(ctx context.Context, r *listRequest, kind *rooms.Class, at, now time.Time, to *listAnswer) error {
	all, some := slices.Contains(r.Filter, filterAll), slices.Contains(r.Filter, filterSome)
	if !all && !some {
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
	if err != nil {
		return err
	}
	q := r.query(board.ID)
	if all {
		q.Limit = maxLimit
	}
	for _, g := range r.Groups {
		q.Members = append(q.Members, string(g))
	}
	a := rankcache.One(ctx, h.cfg.Reader, q)
	if a.Err != nil {
		return a.Err
	}
	if all {
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
