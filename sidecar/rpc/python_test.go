package rpc

import (
	"bufio"
	"encoding/hex"
	"os/exec"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"rankcache/internal/testkit"
	"rankcache/internal/testkit/fixture"
	v1 "rankcache/proto/rankcache/v1"
)

// TestPython calls methods by Python's grpcio.
func TestPython(t *testing.T) {
	python := pythonWithGRPC(t)
	e := start(t)
	run := func(method string, req proto.Message) (*exec.Cmd, *bufio.Scanner) {
		t.Helper()
		body, err := proto.Marshal(req)
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), python, "testdata/boards.py", e.addr, method, hex.EncodeToString(body))
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Wait() })
		return cmd, bufio.NewScanner(out)
	}
	_, lines := run("GetTop", &v1.GetTopRequest{Address: at("local"), Limit: 2})
	var top v1.GetTopResponse
	if nextMessage(t, lines, &top); len(top.GetPage().GetRows()) != 2 || top.Page.Rows[1].Member != fixture.Member(1) || top.Page.Seq != 917 {
		t.Errorf("GetTop: %v", &top)
	}
	_, lines = run("GetTop", &v1.GetTopRequest{Address: at("shut")})
	if lines.Scan(); !strings.HasPrefix(lines.Text(), "PERMISSION_DENIED Board is blocked") {
		t.Errorf("a blocked board: %s", lines.Text())
	}
	_, lines = run("Watch", &v1.WatchRequest{Address: at("local"), Limit: 2})
	var event v1.WatchResponse
	if nextMessage(t, lines, &event); event.GetPage().GetSeq() != 917 {
		t.Errorf("Watch: %v", &event)
	}
	e.publish(918)
	if nextMessage(t, lines, &event); event.GetPage().GetSeq() != 918 {
		t.Errorf("Watch, after a change: %v", &event)
	}
	e.Drain()
	if nextMessage(t, lines, &event); event.GetEnd().GetCode() != "draining" || lines.Scan() {
		t.Errorf("Watch, at its end: %v, %s", &event, lines.Text())
	}
}

func nextMessage(t *testing.T, lines *bufio.Scanner, to proto.Message) {
	t.Helper()
	if !lines.Scan() {
		t.Fatalf("no answer: %v", lines.Err())
	}
	data, err := hex.DecodeString(lines.Text())
	if err == nil {
		err = proto.Unmarshal(data, to)
	}
	if err != nil {
		t.Fatalf("%v: %s", err, lines.Text())
	}
}

// pythonWithGRPC returns the Python that scripts/setup.sh fetches with grpcio.
func pythonWithGRPC(t *testing.T) string {
	t.Helper()
	testkit.Fetched(t, "python/lib/python3*/site-packages/grpc")
	return testkit.Fetched(t, "python/bin/python")
}
