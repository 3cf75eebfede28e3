package writer

import (
	"fmt"
	"testing"
	"time"

	"rankcache"
	"rankcache/internal/kafka"
	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
	"rankcache/rooms"
	"rankcache/wire"
)

// readCap has the commands of a board with a guard decided as their reader does: offset by offset, each appended at
// a time that its offset tells. It returns which were accepted.
func (h *fixture) readCap(t *testing.T, from, to int) map[int]bool {
	t.Helper()
	all, err := h.applier.masters(t.Context())
	must(t, err)
	h.applier.eras.take(all)
	of := &round{number: 1, list: string(all[0].era), topic: 7}
	accepted := make(map[int]bool)
	minute := time.Now().Truncate(time.Minute)
	for begin := from; begin < to; begin += 50 {
		var jobs []*job
		for n := begin; n < min(begin+50, to); n++ {
			m := &kafka.Message{Timestamp: minute.Add(time.Duration(n) * time.Second / 2), TimestampType: kafka.LogAppendTime}
			m.TopicPartition.Offset = kafka.Offset(n)
			j, err := h.accept([]byte(h.command(fmt.Sprint("o", n), "a")), 1, time.Now())
			must(t, err)
			j.round, j.place = of, of.place(m, time.Now())
			jobs = append(jobs, j)
		}
		must(t, h.applier.apply(t.Context(), jobs))
		for i, j := range jobs {
			accepted[begin+i] = j.Refusal == nil
		}
	}
	return accepted
}

// Redis loses the newest of a flood that a guard has refused in part, over the turns of minutes. What is read again is
// decided as it was: nothing that was refused is accepted, and nothing accepted is refused.
func TestGuardDecidesOnce(t *testing.T) {
	t.Parallel()
	file, err := rooms.Parse([]byte(`
classes:
  - {name: caps, board: "changes:{zone}", period: none, durable: true, ops: [incr], guard: {changes: 60/1m, action: refuse}}
  - {name: gain, board: "gain:{zone}", period: none, durable: true, ops: [incr], guard: {gain: 60/1m, action: refuse}}
`))
	must(t, err)
	for _, limit := range []string{"changes", "gain"} {
		t.Run(limit, func(t *testing.T) { testDecidesOnce(t, file, limit) })
	}
}

func testDecidesOnce(t *testing.T, file *rooms.File, limit string) {
	server := testkit.StartRedis(t, servers.RedisOptions{})
	h := quiet(t, func(o *Options) { o.Redis, o.Tiers = redisClient(t, server.Addr()), tiers{file: file} })
	h.board = rankcache.BoardID(limit + ":" + h.zone())
	const commands, saved, again = 400, 250, 90
	h.readCap(t, 0, saved)
	must(t, h.client.Save(t.Context()).Err())
	first := h.readCap(t, saved, commands)
	want := h.meta(t)
	must(t, server.Kill())
	must(t, server.Restart(t.Context()))
	second := h.readCap(t, again, commands)
	for n := again; n < commands; n++ {
		was := n%120 < 60 // a minute has 120 commands, of which 60 are accepted
		if got, ok := first[n]; ok && got != was {
			t.Errorf("offset %d was accepted first: %v, want %v", n, got, was)
		}
		if second[n] != was {
			t.Errorf("offset %d is accepted when it is read again: %v, want %v", n, second[n], was)
		}
	}
	got := h.meta(t)
	equal(t, "seq, sum, seen", []any{got.Seq, got.Sum, got.Seen}, []any{want.Seq, want.Sum, wire.Seen{Topic: 7, Next: commands}})
	h.checkSum(t)
}
