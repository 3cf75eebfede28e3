package adminapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"rankcache"
	"rankcache/class"
	"rankcache/internal/health"
	"rankcache/internal/httpserve"
	"rankcache/rooms"
	"rankcache/sidecar"
	"rankcache/sidecar/encode"
)

// Status answers /status of the admin listener. Its fields are set before it is used.
type Status struct {
	Readiness    *Readiness
	Reader       *sidecar.Reader
	Version      string
	Name         string // of the host: in Kubernetes the pod's
	Started      time.Time
	Dependencies health.Needs          // the services that this process calls
	Sections     map[string]func() any // adds parts to /status under their own names; the values are marshalled to JSON
	// BoardSections adds parts about the boards that the answer lists.
	BoardSections map[string]func(listed map[rankcache.BoardID]bool) any
}

// all answers GET /status with a page of the boards. With ?expect=path=value (dots between the steps of a path, numbers
// for places in a list) the status code tells whether it holds for this answer, for curl -f; expect.go reads it.
func (st *Status) all(w http.ResponseWriter, r *http.Request) {
	args := r.URL.Query()
	filter, problem := parseFilter(args)
	if problem != nil {
		writeProblem(w, problem)
		return
	}
	body, status := st.body(&filter), http.StatusOK
	for _, e := range args[expect] {
		ok, err := holds(body, e)
		if err != nil {
			writeProblem(w, encode.BadArgument("expect", err.Error()))
			return
		}
		if !ok {
			status = http.StatusServiceUnavailable
		}
	}
	httpserve.WriteJSON(w, status, body)
}

func (st *Status) body(filter *boardFilter) map[string]any {
	now := st.Readiness.Now()
	body := map[string]any{
		"state": now.State, "reason": now.Reason, "since": now.Since,
		"version": st.Version, "name": st.Name, "uptime_s": int(time.Since(st.Started).Seconds()),
		"tiers": st.tierCounts(), "dependencies": st.Dependencies.Statuses(), "tzdata": zoneData(zoneFolders),
	}
	all := st.Readiness.boards()
	sumBoards(body, all)
	page, matched := filter.page(all)
	body["boards"], body["boards_matched"], body["boards_start"] = page, matched, filter.start
	for name, section := range st.Sections {
		body[name] = section()
	}
	for name, section := range st.BoardSections {
		body[name] = section(boardSet(page))
	}
	return body
}

// tierCounts returns how many boards the operator put into each mode.
func (st *Status) tierCounts() map[string]int {
	tiers := st.Reader.Tiers()
	counts := make(map[string]int)
	for _, m := range []rooms.Mode{rooms.ModeHot, rooms.ModeSuperHot, rooms.ModeBlocked} {
		counts[m.String()] = len(tiers.Boards(m))
	}
	return counts
}

const boardSample = 10 // how many of its best rows a board's status shows

type boardStatus struct {
	Board  rankcache.BoardID `json:"board"`
	Mode   string            `json:"mode"` // as set by the operator
	Tier   string            `json:"tier"` // where reads go now
	Source string            `json:"source,omitempty"`
	Seq    uint64            `json:"seq,omitempty"`
	Total  int               `json:"total"`
	AgeMs  int64             `json:"age_ms"`
	Top    []rankRow         `json:"top"`
	Error  string            `json:"error,omitempty"` // why there is no top
	Replay *boardBody        `json:"replay,omitempty"`
	// Shards are those of a split board that are followed here; Replay is then that of the one that is worst off.
	Shards []boardBody   `json:"shards,omitempty"`
	Bypass *rooms.Bypass `json:"bypass,omitempty"` // why the copy here is not read
	proofBody
}

// proofBody has the states by which a board's copy and Redis were compared.
type proofBody struct {
	State         string     `json:"state,omitempty"`        // of the copy
	OriginState   string     `json:"origin_state,omitempty"` // Redis's latest one that was read
	OriginStateAt *time.Time `json:"origin_state_at,omitempty"`
	ProvedState   string     `json:"proved_state,omitempty"` // the latest at which both were equal
	ProvedAt      *time.Time `json:"proved_at,omitempty"`
}

func proofBodyOf(p rankcache.ProofStatus) (body proofBody) {
	body.State, _ = stateText(p.State, time.Time{})
	body.OriginState, body.OriginStateAt = stateText(p.Origin, p.OriginAt)
	body.ProvedState, body.ProvedAt = stateText(p.Proved, p.ProvedAt)
	return body
}

// stateText returns a state that is known as it is written, and its time.
func stateText(s rankcache.State, at time.Time) (string, *time.Time) {
	if s.Run == 0 {
		return "", nil
	}
	return s.String(), &at
}

type rankRow struct {
	Rank   int     `json:"rank"`
	Member string  `json:"member"`
	Score  float64 `json:"score"`
}

func (st *Status) board(w http.ResponseWriter, r *http.Request) {
	id, err := rankcache.ParseBoardID(r.PathValue("board"))
	if err != nil {
		writeProblem(w, encode.BadArgument("board", err.Error()))
		return
	}
	body := boardStatus{Board: id, Mode: st.Reader.Tiers().Mode(id, "").String(), Top: []rankRow{}}
	body.Tier = st.Reader.Tier(id, "").String()
	if b, is := st.Reader.Tiers().Bypass(id); is {
		body.Bypass = &b
	}
	if a := rankcache.One(r.Context(), st.Reader, rankcache.Query{Board: id, Limit: boardSample, Uncounted: true}); a.Err == nil {
		body.fill(&a)
	} else {
		body.Error = string(encode.ProblemOf(a.Err).Code)
	}
	if n := st.Reader.Tiers().Shards(id); n > 0 {
		body.addShards(id, n, st.Readiness.boards())
	} else {
		body.addReplay(id, st.Readiness.boards())
	}
	httpserve.WriteJSON(w, http.StatusOK, body)
}

func (b *boardStatus) addReplay(id rankcache.BoardID, all []rankcache.BoardStatus) {
	i := slices.IndexFunc(all, func(s rankcache.BoardStatus) bool { return s.Board == id })
	if i < 0 {
		return
	}
	b.Replay = new(boardBodyOf(all[i]))
	if proof := all[i].Proof; proof != (rankcache.ProofStatus{}) {
		b.proofBody = proofBodyOf(proof)
	}
}

// addShards adds those of the n shards of a board that are followed here, in their order.
func (b *boardStatus) addShards(id rankcache.BoardID, n int, all []rankcache.BoardStatus) {
	var worst *rankcache.BoardStatus
	for _, shard := range class.ShardIDs(id, n) {
		i := slices.IndexFunc(all, func(s rankcache.BoardStatus) bool { return s.Board == shard })
		if i < 0 {
			continue
		}
		b.Shards = append(b.Shards, boardBodyOf(all[i]))
		if worst == nil || worst.State == rankcache.StateOpen && all[i].State != rankcache.StateOpen || rankcache.CompareStatus(&all[i], worst) < 0 && (all[i].State == rankcache.StateOpen) == (worst.State == rankcache.StateOpen) {
			worst = &all[i]
		}
	}
	if worst != nil {
		b.Replay = new(boardBodyOf(*worst))
	}
}

func (b *boardStatus) fill(a *rankcache.Answer) {
	b.Source, b.Seq, b.Total = a.Source.String(), a.Seq, a.Members
	b.AgeMs = max(time.Since(a.CurrentAt).Milliseconds(), 0)
	if !a.Source.IsCopy() {
		b.OriginState, b.OriginStateAt = stateText(a.State, a.At)
	} else {
		b.State, _ = stateText(a.State, a.At)
	}
	for i, e := range a.Entries {
		b.Top = append(b.Top, rankRow{Rank: a.Start + i + 1, Member: e.Member, Score: a.Form.Shown(e.Score)})
	}
}

// holds reports whether the value at a path of body is as expected; never where nothing, an object or a list is.
func holds(body any, expect string) (bool, error) {
	path, want, ok := strings.Cut(expect, "=")
	if !ok || path == "" {
		return false, fmt.Errorf("is %.80q: want path=value, such as state=ready", expect)
	}
	data, err := json.Marshal(body)
	if err != nil {
		return false, err
	}
	var at any
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber() // 1000000 must not become 1e+06
	if err := dec.Decode(&at); err != nil {
		return false, err
	}
	for step := range strings.SplitSeq(path, ".") {
		if at, ok = stepInto(at, step); !ok {
			return false, nil
		}
	}
	return isText(at, want), nil
}

// stepInto returns the named part of v, and whether there is one.
func stepInto(v any, step string) (part any, ok bool) {
	switch v := v.(type) {
	case map[string]any:
		part, ok = v[step]
	case []any:
		if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(v) && strconv.Itoa(i) == step {
			return v[i], true
		}
	}
	return part, ok
}

// isText reports whether a decoded JSON value is written as text.
func isText(v any, text string) bool {
	switch v.(type) {
	case nil:
		return text == "null"
	case map[string]any, []any:
		return false
	}
	return fmt.Sprint(v) == text
}
