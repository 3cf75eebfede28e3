package faults

import (
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache/internal/lab/servers"
	"rankcache/rooms"
)

// lingerFaults are those just after the end of a period, whose board lingers in the sidecar and is read there.
func lingerFaults() []fault {
	var replica *servers.Redis
	return []fault{{
		name: "the sidecar is killed (SIGKILL) while a result lingers", due: nothing, note: "the next one has it from Redis alone",
		start:  func(w *env) { w.startResult(nil) },
		inject: func(w *env) { w.sidecar().Kill() },
		heal:   func(w *env) { w.startSidecar() },
	}, {
		name: "Redis fails over while a result lingers, and loses its close", losesWrites: true, due: redisAway, note: "the copy stays",
		start:  func(w *env) { w.startResult(func(b Board) { replica = w.replicaWithout(b) }) },
		inject: func(w *env) { w.loseClose(replica) },
	}}
}

const resultClass = `classes: [{name: result, board: "%s:{period}", period: 1m, grace: 1s, linger: 10m, keep: 1h, mode: super-hot}]` + "\n"

// startResult brings everything up, with a board of a period that ends, and waits until that is closed. beforeEnd is
// called when the board has all its changes.
func (w *env) startResult(beforeEnd func(Board)) {
	w.Helper()
	w.class = resultClass
	w.writeRooms(w.roomsText())
	w.startWriter()
	w.startSidecar()
	startListening(w, "", append([]string{"controller", "--health", "127.0.0.1:0", "--rooms", w.rooms, "--redis", "redis://" + w.writesRedis.Addr(), "--kafka", w.direct,
		"--topic-commands", w.commands(), "--group", w.commands(), "--topic-keep", "0"}, w.common...)...)
	file, err := rooms.Parse([]byte(w.roomsText()))
	w.must(err)
	const fills = 40 * time.Second // longer than that takes
	if next := time.Now().Truncate(time.Minute).Add(time.Minute); time.Until(next) < fills {
		time.Sleep(time.Until(next))
	}
	of, err := file.Class("result").At(nil, time.Now())
	w.must(err)
	result := Board{of.ID, "local", 60, 2}
	w.result = result.ID
	w.boards = append(w.boards, result)
	w.reads.Boards, w.writes.Boards = w.boards, w.boards
	w.writes.Fill(w.Context(), 1)
	w.writes.Boards = w.boards[:len(w.boards)-1]
	w.startLoad(2)
	w.steady()
	if beforeEnd != nil {
		beforeEnd(result)
	}
	w.eventually(func() error {
		var r Reply
		if w.fetch("/v1/classes/result/top?limit=1&at="+of.Period.Tag, &r); r.Locked != "closed" || r.Source != "local" {
			return fmt.Errorf("the result is %s, from %s", r.Locked, r.Source)
		}
		return nil
	})
}

// replicaWithout returns a replica of Redis that has all changes of a board, and gets nothing more.
func (w *env) replicaWithout(b Board) *servers.Redis {
	w.Helper()
	replica, link := w.newReplica()
	next := replica.Client()
	w.Cleanup(func() { next.Close() })
	w.eventually(func() error {
		seq, err := seqOf(w.Context(), next, b.ID)
		if want := w.oracle.Reached(b.ID); err == nil && seq != want {
			err = fmt.Errorf("the replica has %s at %d, want %d", b.ID, seq, want)
		}
		return err
	})
	link.Cut()
	return replica
}

// loseClose puts the replica in Redis's place.
func (w *env) loseClose(replica *servers.Redis) {
	w.Helper()
	w.writes.Pause()
	defer w.writes.Resume()
	w.losing()
	w.promote(replica)
	w.rewind(redis.NewClient(&redis.Options{Addr: replica.Addr(), Protocol: 2}))
}
