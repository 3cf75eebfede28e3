package compat

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"

	"rankcache"
	"rankcache/rooms"
)

// Rows of an answer without a limit: of topScore, and of GET /v1/scores.
const defaultTop, defaultRows = 100, 10

// scoreRequest is what getScore and topScore take. Fields that only incrScore needs are not looked at.
type scoreRequest struct {
	Name  string          `json:"rank_name"`
	Type  text            `json:"rank_type"`
	Item  text            `json:"rank_item"`
	Score json.RawMessage `json:"score"`
	MsgID text            `json:"msg_id"`
	Limit *integer        `json:"limit"`

	unnamed bool // the name is of a board that the rooms file has not
}

// itemRow is one row of the forms by rank_name. A member that is not on the board has rank 0 and score 0.
type itemRow struct {
	Item  item    `json:"rank_item"`
	Score float64 `json:"score"`
	Rank  int     `json:"rank"`
}

type item string // a member that JSON has as a number if it is written as one that any JSON library reads exactly

func (i item) MarshalJSON() ([]byte, error) {
	if n, err := strconv.ParseUint(string(i), 10, 64); err == nil && n <= maxExact && strconv.FormatUint(n, 10) == string(i) {
		return []byte(i), nil
	}
	return json.Marshal(string(i))
}

// itemRows is the data of topScore. Both names have the same rows: callers look at either.
type itemRows struct {
	Data []itemRow `json:"data"`
	List []itemRow `json:"list"`
}

// decodeScore reads a request, and returns its board and how many rows it may ask for.
func (h *Reads) decodeScore(body []byte) (r scoreRequest, board rankcache.BoardID, most int, err error) {
	if err := decode(body, &r); err != nil {
		return r, "", 0, err
	}
	n, err := nameOf(h.cfg.Classes(), r.Name, r.Type)
	if err != nil {
		return r, "", 0, err
	}
	board, period, err := n.boardOf(h.cfg.Now())
	switch {
	case n.kind == nil || err != nil:
		r.unnamed = !h.cfg.Classes().Names(board)
		return r, board, rankcache.MaxTop, err
	case period.State == rooms.PeriodGone && !n.kind.Ledger:
		return r, board, 0, gone(n.kind, period.Period)
	}
	return r, board, n.kind.Top, nil
}

func (h *Reads) getScore(ctx context.Context, body []byte) (any, error) {
	r, board, _, err := h.decodeScore(body)
	if err != nil {
		return nil, err
	}
	if err := rankcache.CheckMember(string(r.Item)); err != nil {
		return nil, badField("rank_item", "%w", err)
	}
	s, a, err := h.standing(ctx, board, string(r.Item))
	if err == nil && r.unnamed && !exists(&a) {
		err = noName(r.Name)
	}
	return itemRow{item(s.Member), s.Score, s.Rank}, err
}

func (h *Reads) topScore(ctx context.Context, body []byte) (any, error) {
	r, board, most, err := h.decodeScore(body)
	if err != nil {
		return nil, err
	}
	limit := min(defaultTop, most)
	if r.Limit != nil {
		limit = int(*r.Limit)
	}
	if limit < 1 || limit > most {
		return nil, badField("limit", "is %d, want 1 to %d", limit, most)
	}
	page := h.page(ctx, board, 0, limit)
	switch {
	case page.Err != nil:
		return nil, page.Err
	case r.unnamed && !exists(&page):
		return nil, noName(r.Name)
	}
	rows := make([]itemRow, len(page.Entries))
	for i, e := range page.Entries {
		rows[i] = itemRow{item(e.Member), page.Form.Shown(e.Score), i + 1}
	}
	return itemRows{rows, rows}, nil
}

func (h *Reads) standing(ctx context.Context, board rankcache.BoardID, member string) (s rankcache.Standing, a rankcache.Answer, err error) {
	a = rankcache.One(ctx, h.cfg.Reader, rankcache.Query{Board: board, Members: []string{member}})
	if a.Err != nil {
		return s, a, a.Err
	}
	s = a.Own[0].Standing
	s.Score = a.Form.Shown(s.Score)
	return s, a, a.Own[0].Err
}

func (h *Reads) page(ctx context.Context, board rankcache.BoardID, start, limit int) rankcache.Answer {
	return rankcache.One(ctx, h.cfg.Reader, rankcache.Query{Board: board, Start: start, Limit: limit})
}

type scoreRow struct {
	Member string  `json:"member"`
	Score  float64 `json:"score"`
	Rank   int     `json:"rank"`
}

// userRow is a [scoreRow] as callers have it that know of users.
type userRow struct {
	User  string  `json:"user_id"`
	Name  string  `json:"user_name"` // the nick in the profile, "" if there is none
	Rank  int     `json:"rank"`
	Score float64 `json:"score"`
}

// scoreRows is the answer to GET /v1/scores, the same rows in both forms.
type scoreRows struct {
	Board  rankcache.BoardID `json:"board"`
	Data   []userRow         `json:"data"`
	Scores []scoreRow        `json:"scores"`
	Total  int               `json:"total"`
}

// oneScore is the answer to GET /v1/scores/{member}, the same row in both forms.
type oneScore struct {
	scoreRow
	User userRow `json:"user_info"`
}

func (h *Reads) users(ctx context.Context, rows []scoreRow) []userRow {
	users, members := make([]userRow, len(rows)), make([]string, len(rows))
	for i, r := range rows {
		users[i], members[i] = userRow{User: r.Member, Rank: r.Rank, Score: r.Score}, r.Member
	}
	if h.cfg.Profiles == nil || len(rows) == 0 {
		return users
	}
	profiles := make([][]byte, len(rows))
	h.cfg.Profiles.Join(ctx, members, profiles)
	for i, text := range profiles {
		var profile struct {
			Nick any `json:"nick"`
		}
		if json.Unmarshal(text, &profile) == nil { // a member without one has no name
			users[i].Name, _ = profile.Nick.(string)
		}
	}
	return users
}

// scores answers GET /v1/scores, or that of one member.
func (h *Reads) scores(ctx context.Context, query, member string, one bool) (any, error) {
	args, err := url.ParseQuery(query)
	if err != nil {
		return nil, badField("query", "%w", err)
	}
	for name, values := range args {
		if len(values) > 1 {
			return nil, badField(name, "is given %d times", len(values))
		}
	}
	board, err := h.boardOf(args)
	if err != nil {
		return nil, err
	}
	if one {
		return h.oneScore(ctx, board, member, args)
	}
	start, err := numberOf(args, "start", 0, 0, rankcache.MaxStart)
	if err != nil {
		return nil, err
	}
	limit, err := numberOf(args, "limit", defaultRows, 1, rankcache.MaxTop)
	if err != nil {
		return nil, err
	}
	if err := unknownArgs(args); err != nil {
		return nil, err
	}
	page := h.page(ctx, board, start, limit)
	if page.Err != nil {
		return nil, page.Err
	}
	rows := make([]scoreRow, len(page.Entries))
	for i, e := range page.Entries {
		rows[i] = scoreRow{e.Member, page.Form.Shown(e.Score), page.Start + i + 1}
	}
	return scoreRows{board, h.users(ctx, rows), rows, page.Members}, nil
}

func (h *Reads) oneScore(ctx context.Context, board rankcache.BoardID, raw string, args url.Values) (any, error) {
	if err := unknownArgs(args); err != nil {
		return nil, err
	}
	member, err := url.PathUnescape(raw)
	if err == nil {
		err = rankcache.CheckMember(member)
	}
	if err != nil {
		return nil, badField("member", "%w", err)
	}
	s, _, err := h.standing(ctx, board, member)
	if err != nil {
		return nil, err
	}
	row := scoreRow{s.Member, s.Score, s.Rank}
	return oneScore{row, h.users(ctx, []scoreRow{row})[0]}, nil
}

// boardOf returns the board that the arguments name, which it takes out of them, or the configured one.
func (h *Reads) boardOf(args url.Values) (rankcache.BoardID, error) {
	board := rankcache.BoardID(args.Get("board"))
	args.Del("board")
	switch {
	case board == "" && h.cfg.Board == "":
		return "", notFound("unknown_path", "No such resource", "it is not known of which board: name it by ?board=, or start the sidecar with --compat-board")
	case board == "":
		return h.cfg.Board, nil
	}
	if err := board.Check(); err != nil {
		return "", badField("board", "%w", err)
	}
	return board, nil
}

func numberOf(args url.Values, name string, missing, least, most int) (int, error) {
	text := args.Get(name)
	args.Del(name)
	if text == "" {
		return missing, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		return 0, badField(name, "is %.40q, want %d to %d", text, least, most)
	}
	return n, nil
}

func unknownArgs(args url.Values) error {
	for name := range args {
		return unsupported(fmt.Sprintf("%.60s", name), "is not an argument of this request")
	}
	return nil
}
