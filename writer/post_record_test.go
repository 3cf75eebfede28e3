package writer

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"rankcache/internal/httpserve"
	"rankcache/internal/testkit"
	"rankcache/rooms"
)

// durable has classes with and without durable: true; boards are named by the class and a zone.
func durable(t testing.TB) func(*Options) {
	t.Helper()
	file, err := rooms.Parse([]byte(`
classes:
  - {name: counts, board: "counts:{zone}", period: none, durable: true, ops: [incr]}
  - {name: sets, board: "sets:{zone}", period: none, durable: true}
  - {name: ties, board: "ties:{zone}", period: none, durable: true, ops: [incr], ties: first}
  - {name: caps, board: "caps:{zone}", period: none, durable: true, ops: [incr], guard: {members: 9, action: refuse}}
  - {name: looks, board: "looks:{zone}", period: none, durable: true, ops: [incr], guard: {members: 9}}
  - {name: month, board: "month:{zone}", period: none, durable: true, ops: [incr], orders: 720h}
  - {name: plain, board: "plain:{zone}", period: none}
`))
	must(t, err)
	return func(o *Options) { o.Tiers = tiers{file: file} }
}

func (h *fixture) in(class, order string) string {
	return fmt.Sprintf(`{"order":%q,"class":%q,"dims":{"zone":%q},"member":"a","op":"incr","delta":1,"at":%d}`, order, class, h.zone(), h.at)
}

// What is posted to a durable class is in the command topic before it is applied, with the key that keeps the
// sequence of its commands. Nothing else is.
func TestDurablePostsAreRecorded(t *testing.T) {
	t.Parallel()
	h := newFixture(t, testkit.Kfake(t).Addr(), durable(t))
	h.run(t)
	want := map[string]string{"counts": "a", "sets": "a", "ties": "ties:" + h.zone(), "caps": "caps:" + h.zone(), "looks": "a"}
	classes := append(slices.Sorted(maps.Keys(want)), "plain")
	for _, class := range classes {
		status, answer := h.post(t, h.in(class, class))
		equal(t, answer, status, 200)
	}
	h.await(t, "duplicate", 2) // the reader applies the others
	got := map[string]string{}
	for _, r := range testkit.Records(t, h.kafka, h.opts.Names.Commands, len(want)) {
		c, err := DecodeCommand(r.Value, 1)
		must(t, err)
		got[c.OrderID] = string(r.Key)
	}
	equal(t, "keys", got, want)
	for _, class := range classes {
		equal(t, class, testutil.ToFloat64(h.metrics.otherKeys.WithLabelValues(class)), 0.0)
	}
}

// A record of a durable class whose sequence matters is applied whatever its key, and counted with another one than
// a post would have.
func TestRecordsWithOtherKeysAreCounted(t *testing.T) {
	t.Parallel()
	h := newFixture(t, testkit.Kfake(t).Addr(), durable(t))
	h.makeCommandTopicFor(t)
	var records []*kgo.Record
	for i, r := range []struct{ class, key string }{{"counts", "x"}, {"sets", "a"}, {"sets", ""}, {"ties", "a"}, {"ties", "ties:" + h.zone()},
		{"caps", "a"}, {"caps", "b"}, {"looks", "x"}, {"plain", "x"}} {
		records = append(records, &kgo.Record{Topic: h.opts.Names.Commands, Key: []byte(r.key), Value: []byte(h.in(r.class, fmt.Sprint("o", i)))})
	}
	testkit.Produce(t, h.kafka, records...)
	h.run(t)
	h.await(t, "applied", len(records))
	for class, want := range map[string]float64{"counts": 0, "sets": 1, "ties": 1, "caps": 2, "looks": 0, "plain": 0} {
		equal(t, class, testutil.ToFloat64(h.metrics.otherKeys.WithLabelValues(class)), want)
	}
}

// setTopic changes settings of a topic.
func setTopic(t *testing.T, addr, topic string, settings map[string]string) {
	t.Helper()
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	of := kmsg.NewIncrementalAlterConfigsRequestResource()
	of.ResourceType, of.ResourceName = kmsg.ConfigResourceTypeTopic, topic
	for key, value := range settings {
		c := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
		c.Name, c.Value = key, &value
		of.Configs = append(of.Configs, c)
	}
	req.Resources = append(req.Resources, of)
	resp, err := req.RequestWith(t.Context(), testkit.KafkaClient(t, addr))
	must(t, err)
	must(t, kerr.ErrorForCode(resp.Resources[0].ErrorCode))
}

// On a topic that does not keep what durable classes need posts of them are refused, and of no other class; records are
// applied. Where only the retention is too short it is by the order life of each class. Who looks at the writer sees it, until the topic is
// changed. On a real broker, as kfake is no proof of what brokers tell.
func TestUnfitTopicRefusesDurableClassesAlone(t *testing.T) {
	t.Parallel()
	h := newFixture(t, testkit.RealKafka(t), func(o *Options) { durable(t)(o); o.Topics.CommandPartitions = 0 })
	h.commands.every = 10 * time.Millisecond
	topic := h.opts.Names.Commands
	testkit.CreateTopic(t, h.kafka, topic, 1, map[string]string{"cleanup.policy": "compact"})
	h.run(t)
	orders := 0
	refused := func(class string) (detail string) {
		t.Helper()
		orders++
		status, answer := h.post(t, h.in(class, fmt.Sprint("p", orders)))
		if status == 200 {
			return ""
		}
		checkProblem(t, class, status, answer, httpserve.Problem{Status: 503, Code: "not_durable"})
		return answer
	}
	detail := refused("counts")
	for _, want := range []string{"class counts", topic, "message.timestamp.type=LogAppendTime (it is CreateTime)", "cleanup.policy=delete (it is compact)"} {
		if !strings.Contains(detail, want) {
			t.Errorf("%s, want %s in it", detail, want)
		}
	}
	equal(t, "posts of a plain class", refused("plain"), "")
	testkit.Produce(t, h.kafka, &kgo.Record{Topic: topic, Key: []byte("a"), Value: []byte(h.in("counts", "o1"))})
	h.await(t, "applied", 2)
	seen := func(state string, classes float64) {
		t.Helper()
		testkit.Eventually(t, testTimeout, func() error {
			st := h.getStatus(t).Dependencies["command_log"]
			if n := testutil.ToFloat64(h.metrics.unfit); st.State != state || (st.Error == "") != (classes == 0) || (h.Fault() == nil) != (classes == 0) || n != classes {
				return fmt.Errorf("%+v, fault %v, %v classes; want %s, %v", st, h.Fault(), n, state, classes)
			}
			return nil
		})
	}
	seen("failing", 6)
	setTopic(t, h.kafka, topic, map[string]string{"message.timestamp.type": "LogAppendTime", "cleanup.policy": "delete"})
	seen("failing", 1)
	equal(t, "an order life of an hour, a retention of a week", refused("counts"), "")
	if detail := refused("month"); !strings.Contains(detail, "retention.ms=5184000000") {
		t.Error(detail)
	}
	setTopic(t, h.kafka, topic, map[string]string{"retention.ms": "5184000000"})
	seen("ok", 0)
	equal(t, "a month, on a topic of two", refused("month"), "")
}

// The topic that a writer makes is fit for the durable classes in force, whatever their order life.
func TestTopicIsMadeFit(t *testing.T) {
	t.Parallel()
	h := newFixture(t, testkit.RealKafka(t), durable(t))
	h.run(t)
	status, answer := h.post(t, h.in("month", "o1"))
	equal(t, answer, status, 200)
	got := topicConfig(t, h.kafka, h.opts.Names.Commands)
	equal(t, "settings", []string{got["message.timestamp.type"], got["cleanup.policy"], got["retention.ms"]}, []string{"LogAppendTime", "delete", "5184000000"})
}

// Without a topic posts of durable classes are refused, and it is said what to do.
func TestMissingTopicIsUnfit(t *testing.T) {
	h := newFixture(t, testkit.Kfake(t).Addr(), func(o *Options) { durable(t)(o); o.Topics.CommandPartitions = 0 })
	h.run(t)
	status, answer := h.post(t, h.in("counts", "o1"))
	checkProblem(t, "post", status, answer, httpserve.Problem{Status: 503, Code: "not_durable"})
	if !strings.Contains(answer, "there is no topic "+h.opts.Names.Commands) {
		t.Error(answer)
	}
}

// A writer that may not read the settings takes posts, and says once which right is missing.
func TestUnknownSettingsOfTheTopic(t *testing.T) {
	may := func(kind kmsg.ACLResourceType, op kmsg.ACLOperation) kfake.ACL {
		return kfake.ACL{Resource: kind, Name: "*", Pattern: kmsg.ACLResourcePatternTypeLiteral, Operation: op, Allow: true}
	}
	broker := testkit.Kfake(t, kfake.EnableSASL(), kfake.EnableACLs(), kfake.Superuser("PLAIN", "admin", "admin"),
		kfake.User("PLAIN", "app", "secret", may(kmsg.ACLResourceTypeTopic, kmsg.ACLOperationRead), may(kmsg.ACLResourceTypeTopic, kmsg.ACLOperationWrite),
			may(kmsg.ACLResourceTypeTopic, kmsg.ACLOperationCreate), may(kmsg.ACLResourceTypeTopic, kmsg.ACLOperationDescribe),
			may(kmsg.ACLResourceTypeGroup, kmsg.ACLOperationAll)))
	var log strings.Builder
	h := newFixture(t, broker.Addr(), func(o *Options) {
		durable(t)(o)
		maps.Copy(o.Kafka, map[string]string{"security.protocol": "sasl_plaintext", "sasl.mechanism": "PLAIN", "sasl.username": "app", "sasl.password": "secret"})
		o.Log = slog.New(slog.NewTextHandler(&log, nil))
	})
	h.commands.every = 10 * time.Millisecond
	stop := h.run(t)
	status, answer := h.post(t, h.in("counts", "o1"))
	equal(t, answer, status, 200)
	testkit.Eventually(t, testTimeout, func() error {
		if st := h.getStatus(t).Dependencies["command_log"]; st.State != "unknown" || !strings.Contains(st.Error, "DescribeConfigs") {
			return fmt.Errorf("%+v", st)
		}
		return nil
	})
	h.await(t, "duplicate", 1)
	equal(t, "fault", h.Fault(), nil)
	stop()
	equal(t, "said", strings.Count(log.String(), "DescribeConfigs"), 1)
}
