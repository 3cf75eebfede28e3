package app

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"rankcache/internal/testkit"
	"rankcache/wire"
)

// TestCutLogOfAStoppedSidecar: while a sidecar is stopped its board changes, and the changes are deleted from the log. What it
// answers on waking is never called younger than the first change that it lacks, and it stays ready; it goes on with
// what Redis has.
func TestCutLogOfAStoppedSidecar(t *testing.T) {
	t.Parallel()
	const before, after = 21, 41
	testkit.RealKafka(t)
	h := newFixture(t)
	h.give(t, h.star, before)
	s := h.serve(t)
	s.WaitReady(time.Minute)
	testkit.Eventually(t, time.Minute, func() error { return h.page(t, s).isAt(before) })

	s.Signal(syscall.SIGSTOP)
	var had [after + 1]time.Time // by when Redis had a change
	for seq := before + 1; seq <= after; seq++ {
		h.give(t, h.star, 1)
		had[seq] = time.Now()
	}
	cutWholeLog(t, testkit.RealKafka(t), wire.DefaultNames().Topic(h.star))
	s.Signal(syscall.SIGCONT)

	woken, latest := time.Now(), ""
	testkit.Eventually(t, 2*time.Minute, func() error {
		asked := time.Now()
		p := h.page(t, s)
		if p.seq < after {
			if lacks := asked.Sub(had[p.seq+1]).Truncate(time.Millisecond); p.age < lacks {
				t.Errorf("%s, though Redis was further %v before that was asked", p, lacks)
			}
		}
		ready, _ := s.Get("health", "/readyz")
		if ready != http.StatusOK {
			t.Errorf("readyz answers %d beside %s", ready, p)
		}
		if line := fmt.Sprintf("source %s, seq %d, readyz %d", p.source, p.seq, ready); line != latest {
			t.Logf("%.1f s after waking: %s, age %v", time.Since(woken).Seconds(), line, p.age)
			latest = line
		}
		if err := p.isAt(after); err != nil {
			return err
		}
		if p.source != "local" {
			return fmt.Errorf("not local again: %s", p)
		}
		return nil
	})
}

// agedPage is what the test reads of a page and its header.
type agedPage struct {
	seq    uint64
	source string
	age    time.Duration
}

func (p agedPage) String() string {
	return fmt.Sprintf("source %s, seq %d, age %v", p.source, p.seq, p.age)
}

func (p agedPage) isAt(seq uint64) error {
	if p.seq != seq {
		return fmt.Errorf("%s, want seq %d", p, seq)
	}
	return nil
}

// page reads the super-hot board.
func (h *fixture) page(t *testing.T, s *child) (p agedPage) {
	resp, err := http.Get(s.URL("data", "/v1/boards/"+string(h.star)+"/top"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	var body struct {
		Seq    uint64
		Source string
	}
	must(t, err)
	must(t, json.Unmarshal(text, &body))
	ms, err := strconv.Atoi(resp.Header.Get("Rankcache-Age-Ms"))
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %v: %s", resp.Status, err, text)
	}
	return agedPage{body.Seq, body.Source, time.Duration(ms) * time.Millisecond}
}

// cutWholeLog deletes all records of a topic's partition 0.
func cutWholeLog(t *testing.T, brokers, topic string) {
	part := kmsg.NewDeleteRecordsRequestTopicPartition()
	part.Offset = -1 // the end
	of := kmsg.NewDeleteRecordsRequestTopic()
	of.Topic, of.Partitions = topic, append(of.Partitions, part)
	req := kmsg.NewPtrDeleteRecordsRequest()
	req.Topics, req.TimeoutMillis = append(req.Topics, of), 10_000
	resp, err := req.RequestWith(t.Context(), testkit.KafkaClient(t, brokers))
	must(t, err)
	must(t, kerr.ErrorForCode(resp.Topics[0].Partitions[0].ErrorCode))
}
