package rpc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"rankcache"
	"rankcache/internal/testkit"
	"rankcache/internal/testkit/fixture"
	v1 "rankcache/proto/rankcache/v1"
	"rankcache/sidecar/httpapi"
)

// dataPort serves the same boards over HTTP, and returns its address.
func (e *env) dataPort(cfg httpapi.Config) string {
	e.t.Helper()
	data, err := httpapi.New(e.reader, cfg, fixture.FailOnWarn(e.t), nil)
	if err != nil {
		e.t.Fatal(err)
	}
	ln := testkit.Listen(e.t, "tcp")
	served := make(chan error, 1)
	go func() { served <- data.Serve(e.t.Context(), ln) }()
	e.t.Cleanup(func() { <-served })
	return "http://" + ln.Addr().String()
}

// answer is what both say of rows, as far as they have it.
type answer struct {
	Entries, Members, Neighbours []json.RawMessage
	Me                           json.RawMessage
	TrendError                   string `json:"trend_error"`
}

// rowsOver returns the rows of an answer over HTTP as messages.
func rowsOver(t *testing.T, rows ...json.RawMessage) (all []*v1.Row) {
	t.Helper()
	for _, text := range rows {
		var fields map[string]any
		if err := json.Unmarshal(text, &fields); err != nil {
			t.Fatal(err)
		}
		if profile, err := json.Marshal(fields["profile"]); err != nil {
			t.Fatal(err)
		} else if fields["profile"] != nil {
			fields["profile"] = string(profile)
		}
		again, _ := json.Marshal(fields)
		row := new(v1.Row)
		if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(again, row); err != nil {
			t.Fatalf("%s: %v", again, err)
		}
		all = append(all, row)
	}
	return all
}

// TestRowsAreThoseOfTheDataPort: ranks in all modes, percentiles, ranks of the period before and
// places in lists are those of HTTP, by board and by class.
func TestRowsAreThoseOfTheDataPort(t *testing.T) {
	clock, file := classClock()
	e := start(t, func(c *Config) { c.Now, c.Classes = clock.now, file })
	e.Origin.N.Store(9)
	e.Origin.Closed.Store(true)
	data := e.dataPort(httpapi.Config{Classes: file, Now: clock.now})
	list := []string{fixture.Member(5), "nobody", fixture.Member(3), fixture.Member(8), fixture.Member(4)}
	for _, where := range []struct {
		path    string
		query   string
		address *v1.Address
	}{
		{"boards/local", "", at("local")}, {"boards/tiny", "", at("tiny")}, {"boards/elsewhere", "", at("elsewhere")}, {"boards/hot", "", at("hot")},
		{"boards/gift:eu:20261123", "&trend=1", at("gift:eu:20261123")},
		{"classes/gift", "&zone=eu&trend=1", &v1.Address{Class: "gift", Dimensions: map[string]string{"zone": "eu"}}},
		{"classes/gift", "&zone=eu&trend=1&at=previous", &v1.Address{Class: "gift", Dimensions: map[string]string{"zone": "eu"}, At: "previous"}},
	} {
		for name, mode := range map[string]v1.RankMode{"ordinal": v1.RankMode_RANK_MODE_ORDINAL, "competition": v1.RankMode_RANK_MODE_COMPETITION, "dense": v1.RankMode_RANK_MODE_DENSE, "approx": v1.RankMode_RANK_MODE_APPROX} {
			if name == "dense" && where.path != "boards/local" && where.path != "boards/tiny" {
				continue
			}
			query := "?percentile=1&profiles=1&rank_mode=" + name + where.query
			show := &v1.Show{RankMode: mode, Percentile: true, Trend: strings.Contains(where.query, "trend")}
			path := data + "/v1/" + where.path
			top, member, batch, sorted := new(v1.GetTopResponse), new(v1.GetStandingResponse), new(v1.BatchStandingsResponse), new(v1.BatchStandingsResponse)
			over := e.callers()["grpc-go"]
			for method, call := range map[string][2]proto.Message{"GetTop": {&v1.GetTopRequest{Address: where.address, Start: 1, Limit: 4, Profiles: true, Show: show}, top},
				"GetStanding": {&v1.GetStandingRequest{Address: where.address, Member: fixture.Member(2), Around: 1, Profiles: true, Show: show}, member}} {
				if err := over(t.Context(), method, call[0], call[1]); err != nil {
					t.Fatal(where, method, err)
				}
			}
			for _, call := range []*v1.BatchStandingsRequest{{}, {Sort: v1.Sort_SORT_RANK, Limit: 3, Me: fixture.Member(1)}} {
				call.Address, call.Members, call.Profiles, call.Show = where.address, list, true, show
				to := batch
				if call.Limit > 0 {
					to = sorted
				}
				if err := over(t.Context(), "BatchStandings", call, to); err != nil {
					t.Fatal(where, err)
				}
			}
			body, _ := json.Marshal(map[string]any{"members": list})
			pages := make([]answer, 4)
			for i, text := range [][]byte{fetch(t, path+"/top"+query+"&start=1&limit=4", nil), fetch(t, path+"/members/"+fixture.Member(2)+query+"&around=1", nil),
				fetch(t, path+"/members:batch"+query, body), fetch(t, path+"/members:batch"+query+"&sort=rank&limit=3&me="+fixture.Member(1), body)} {
				if err := json.Unmarshal(text, &pages[i]); err != nil {
					t.Fatal(err)
				}
			}
			want := [][]*v1.Row{rowsOver(t, pages[0].Entries...), rowsOver(t, pages[1].Neighbours...), rowsOver(t, pages[2].Members...), rowsOver(t, append(pages[3].Members, pages[3].Me)...)}
			got := [][]*v1.Row{top.Page.Rows, member.Page.Rows, batch.Standings, append(sorted.Standings, sorted.Me)}
			if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" || len(want[0]) == 0 || show.Trend && top.Page.Rows[0].PreviousRank == nil {
				t.Errorf("%s %s (-HTTP +RPC):\n%s", where.path, query, diff)
			}
		}
	}
}

// fetch returns the body of an answer to a GET, or to a POST if there is a body.
func fetch(t *testing.T, url string, body []byte) []byte {
	t.Helper()
	res, err := http.Get(url)
	if body != nil {
		res, err = http.Post(url, "application/json", bytes.NewReader(body))
	}
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s %s %v", url, res.Status, text, err)
	}
	return text
}

// TestTrendRefusals: what has no period before has no trend, and of bad values the field is named.
func TestTrendRefusals(t *testing.T) {
	clock, file := classClock()
	e := start(t, func(c *Config) { c.Now, c.Classes = clock.now, file })
	ever := &v1.Address{Class: "ever"}
	for want, req := range map[string]*v1.BatchStandingsRequest{
		"trend_refused":     {Address: ever, Members: []string{"a"}, Show: &v1.Show{Trend: true}},
		"is of no class":    {Address: at("local"), Members: []string{"a"}, Show: &v1.Show{Trend: true}},
		"has no periods":    {Address: at("ever"), Members: []string{"a"}, Show: &v1.Show{Trend: true}},
		"rank_mode":         {Address: at("local"), Members: []string{"a"}, Show: &v1.Show{RankMode: 7}},
		"sort":              {Address: at("local"), Members: []string{"a"}, Sort: 2},
		"limit and me are":  {Address: at("local"), Members: []string{"a"}, Limit: 2},
		"are of a list":     {Address: at("local"), Members: []string{"a"}, Me: "a"},
		"is 501":            {Address: at("local"), Members: []string{"a"}, Sort: v1.Sort_SORT_RANK, Limit: rankcache.MaxTop + 1},
		"is -1":             {Address: at("local"), Members: []string{"a"}, Sort: v1.Sort_SORT_RANK, Limit: -1},
		"rank_mode_refused": {Address: at("elsewhere"), Members: []string{"a"}, Show: &v1.Show{RankMode: v1.RankMode_RANK_MODE_DENSE}},
	} {
		err := e.callers()["connect"](t.Context(), "BatchStandings", req, new(v1.BatchStandingsResponse))
		if err == nil || !strings.Contains(err.Error()+problemIn(err), want) {
			t.Errorf("%v: %v, want %s", req, err, want)
		}
	}
	for path, status := range map[string]int{"/v1/boards/local/live?trend=1": 400, "/v1/boards/ever/live?trend=1": 400, "/v1/classes/ever/live?trend=1": 422, "/v1/boards/local/live?trend=2": 400, "/v1/boards/local/live?trend=0&trend=0": 400} {
		if res, err := http.Get(e.url(path)); err != nil || res.StatusCode != status {
			t.Errorf("%s: %v %v, want %d", path, res.Status, err, status)
		}
	}
}

// problemIn returns the problem that an error of Connect has as its detail.
func problemIn(err error) string {
	text := ""
	if of, ok := errors.AsType[*connect.Error](err); ok {
		for _, detail := range of.Details() {
			if v, err := detail.Value(); err == nil {
				p := v.(*v1.Problem)
				text += p.Code + " " + p.Argument + " " + p.Detail
			}
		}
	}
	return text
}

// firstPage returns the page that a watch begins with.
func (e *env) firstPage(req *v1.WatchRequest) *v1.Page {
	e.t.Helper()
	m := new(v1.WatchResponse)
	if err := e.watchGRPC(e.grpc(), req).RecvMsg(m); err != nil {
		e.t.Fatal(err)
	}
	return m.GetPage()
}

// TestTrendOfALivePage is null until the board before is closed, and comes without a change of the
// page.
func TestTrendOfALivePage(t *testing.T) {
	clock, file := classClock()
	e := start(t, func(c *Config) { c.Now, c.Classes = clock.now, file })
	e.Origin.N.Store(3)
	s := e.watch("/v1/classes/gift/live?zone=eu&trend=1&limit=2", "", nil)
	first := s.want("page")
	if trend, there := first.data["trend"]; !there || trend != nil || strings.Contains(fmt.Sprint(first.data), "previous_rank") {
		t.Errorf("before it is closed: %v", first.data)
	}
	plain := e.watch("/v1/classes/gift/live?zone=eu&limit=2", "", nil).want("page")
	if _, there := plain.data["trend"]; there {
		t.Errorf("not asked for: %v", plain.data)
	}
	e.Origin.Closed.Store(true)
	clock.nanos.Add(3e9)
	after, _ := s.next()       // of the next poll
	for after.name == "diff" { // the page's own life came first
		after, _ = s.next()
	}
	if after.data["trend"] != "20261122" || fmt.Sprint(after.data["entries"].([]any)[1].(map[string]any)["previous_rank"]) != "2" {
		t.Errorf("closed: %v", after.data)
	}
	for _, address := range []*v1.Address{at("gift:eu:20261123"), {Class: "gift", Dimensions: map[string]string{"zone": "eu"}}} {
		page := e.firstPage(&v1.WatchRequest{Address: address, Limit: 2, Trend: true})
		if page.GetTrend() != "20261122" || len(page.Rows) != 2 || page.Rows[1].GetPreviousRank() != 2 {
			t.Errorf("over gRPC: %v", page)
		}
	}
	e.Origin.FailBoard("gift:eu:20261122", rankcache.ErrUnavailable)
	late := e.watch("/v1/boards/gift:eu:20261123/live?trend=1&limit=3", "", nil).want("page")
	if trend, there := late.data["trend"]; !there || trend != nil {
		t.Errorf("one of the rows can't be read: %v", late.data)
	}
}
