package app

import (
	"bufio"
	"errors"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"

	"rankcache/internal/testkit"
	"rankcache/proto/rankcache/v1"
)

// TestLivePage watches a super-hot board and a small one while gifts come, through the whole
// path, until the sidecar is stopped.
func TestLivePage(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	h.give(t, h.star, 5)
	h.give(t, h.small, 3)
	s := h.serve(t, "--rpc", "127.0.0.1:0", "--live-interval", "5ms")
	s.WaitReady(time.Minute)
	star, small := watchPage(t, s.URL("rpc", "/v1/boards/"+string(h.star)+"/live")), watchPage(t, s.URL("rpc", "/v1/boards/"+string(h.small)+"/live"))
	for _, page := range []*pageLines{star, small} {
		page.until(t, "event: page")
	}
	h.give(t, h.star, 6)
	h.give(t, h.small, 4)
	for _, page := range []*pageLines{star, small} {
		if line := page.until(t, `"member":"m`); !strings.Contains(line, `"len":`) && !strings.Contains(line, `"entries":`) {
			t.Errorf("an event with %s", line)
		}
	}
	s.Signal(syscall.SIGTERM)
	for _, page := range []*pageLines{star, small} {
		page.until(t, `"draining"`)
	}
}

// TestRPC writes by gRPC to the writer and reads the write from the sidecar.
func TestRPC(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	s := h.serve(t, "--rpc", "127.0.0.1:0")
	s.WaitReady(time.Minute)
	call := func(addr, method string, req, res proto.Message) error {
		conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithNoProxy())
		if err != nil {
			return err
		}
		defer conn.Close()
		return conn.Invoke(t.Context(), "/rankcache.v1."+method, req, res)
	}
	commands := []*rankcachev1.Command{{Board: string(h.star), Member: "a", Op: "incr", Delta: proto.Float64(2), Order: testkit.Name(t)},
		{Board: string(h.star), Member: "a", Op: "double", Order: testkit.Name(t) + "-2"}}
	var posted rankcachev1.PostScoresResponse
	testkit.Eventually(t, 30*time.Second, func() error { // the producer needs a moment at the start
		posted.Reset()
		err := call(h.writer.Addr("scores"), "Scores/PostScores", &rankcachev1.PostScoresRequest{Commands: commands}, &posted)
		if p := posted.GetResults(); err == nil && p[0].GetProblem() != nil {
			return errors.New(p[0].GetProblem().GetCode())
		}
		return err
	})
	applied := posted.Results[0].GetResult()
	if applied.GetScore() != 2 || applied.GetSeq() != 1 || posted.Results[1].GetProblem().GetArgument() != "op" {
		t.Fatalf("posted %v", &posted)
	}
	var top rankcachev1.GetTopResponse
	err := call(s.Addr("rpc"), "Boards/GetTop", &rankcachev1.GetTopRequest{Address: &rankcachev1.Address{Board: string(h.star)},
		Bounds: &rankcachev1.Bounds{MinState: applied.State, WaitMs: 5000}}, &top)
	if rows := top.GetPage().GetRows(); err != nil || len(rows) != 1 || rows[0].Member != "a" || rows[0].GetScore() != 2 || top.Page.State != applied.State {
		t.Errorf("read %v, %v", &top, err)
	}
}

// pageLines is the lines of a live page.
type pageLines struct{ *bufio.Scanner }

func watchPage(t *testing.T, url string) *pageLines {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	if resp.StatusCode != http.StatusOK {
		t.Fatal(resp.Status)
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	return &pageLines{lines}
}

// until returns the next line that has a text.
func (l *pageLines) until(t *testing.T, text string) string {
	t.Helper()
	for l.Scan() {
		if strings.Contains(l.Text(), text) {
			return l.Text()
		}
	}
	t.Fatalf("the stream ended before %q: %v", text, l.Err())
	return ""
}
