package testkit

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/wire"
)

//go:embed change.lua
var changeSource string

var changeScript = redis.NewScript(changeSource)

// ChangeBoard applies one change to a board in Redis as the writer does, meta included,
// and returns its update, whose order id is its seq. A board without meta begins a run
// at seq 1; its sum is right if it had no members. delta is the score of an [wire.OpSet].
func ChangeBoard(t testing.TB, client redis.Scripter, names wire.Names, b rankcache.BoardID, op wire.Op, member string, delta float64) wire.Update {
	t.Helper()
	now := time.Now().UnixMilli()
	reply, err := changeScript.Run(context.Background(), client, []string{names.BoardKey(b), names.MetaKey(b)},
		op.String(), member, delta, now, now*1024).Slice()
	if err != nil {
		t.Fatal(err)
	}
	meta, err := wire.ParseMeta(reply[0].(string))
	if err != nil {
		t.Fatal(err)
	}
	u := wire.Update{Board: b, Member: member, Op: op, OrderID: fmt.Sprint(meta.Seq), At: 1,
		Run: meta.Run, Seq: meta.Seq, Sum: meta.Sum, HasSum: meta.HasSum, Members: int(meta.Members)}
	if op == wire.OpIncr {
		u.Delta = delta
	}
	if op != wire.OpDelete {
		if _, err := fmt.Sscan(reply[1].(string), &u.Score); err != nil {
			t.Fatal(err)
		}
	}
	return u
}

// Meta returns the meta value of a board at this run and seq that has these members.
func Meta(run, seq uint64, members []redis.Z) []byte {
	meta := wire.Meta{State: rankcache.State{Run: run, Seq: seq, HasSum: true}, Members: uint64(len(members)),
		Now: uint64(time.Now().UnixMilli()), OrderLife: 3600, Buckets: 1}
	for _, m := range members {
		meta.Sum = (meta.Sum + wire.Hash(m.Member.(string), m.Score)) & wire.SumMask
	}
	return wire.AppendMeta(nil, &meta)
}

// BoardState returns what the board's meta has, the zero state without one.
func BoardState(t testing.TB, client redis.Cmdable, names wire.Names, b rankcache.BoardID) rankcache.State {
	t.Helper()
	value, err := client.Get(context.Background(), names.MetaKey(b)).Result()
	if errors.Is(err, redis.Nil) {
		return rankcache.State{}
	}
	if err != nil {
		t.Fatal(err)
	}
	meta, err := wire.ParseMeta(value)
	if err != nil {
		t.Fatal(err)
	}
	return meta.State
}
