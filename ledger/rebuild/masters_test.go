package rebuild

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"rankcache/internal/masters"
	"rankcache/internal/testkit"
	"rankcache/ledger"
	"rankcache/rooms"
	"rankcache/wire"
)

// A master that is found to be damaged is made whole, whatever keeps an earlier one from it.
func TestMastersDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	f := newIdle(t, testkit.SQLKinds[0], clustered)
	paced := clustered(t)
	t.Cleanup(func() { paced.Close() })
	m := NewMender(MenderOptions{Options: f.opts, Paced: paced, File: func() *rooms.File { return f.file }})
	begun, goOn := make(chan struct{}), make(chan struct{})
	var n atomic.Int32
	now := ledger.Now{Leads: func() bool { return true }, Reached: func(ctx context.Context) error {
		if n.Add(1) == 1 {
			close(begun)
			select {
			case <-goOn:
			case <-ctx.Done():
			}
		}
		return nil
	}}
	run(t, func(ctx context.Context) error { m.Run(ctx, now); return nil })
	eras := f.eras(t)
	tags := slices.Sorted(maps.Keys(eras))
	mark := func(tag string) {
		must(t, f.redis.HSet(t.Context(), f.opts.Names.AppliedKey(tag), wire.PositionsLife, "x", "0", "topic 5 "+eras[tag][:wire.EraLen], wire.PositionsDamaged, "1 1").Err())
	}
	cleared := func(tag string) {
		t.Helper()
		testkit.Eventually(t, testTimeout, func() error {
			there, err := f.redis.HExists(t.Context(), f.opts.Names.AppliedKey(tag), wire.PositionsDamaged).Result()
			if err == nil && there {
				err = errors.New("the mark is still there")
			}
			return err
		})
	}
	mark(tags[0])
	<-begun
	mark(tags[1])
	cleared(tags[1])
	close(goOn)
	cleared(tags[0])
}

// eras returns the masters' by their names.
func (f *fixture) eras(t testing.TB) map[string]string {
	var mu sync.Mutex
	eras := make(map[string]string)
	must(t, masters.Each(t.Context(), f.redis, func(ctx context.Context, tag string, node redis.Cmdable) error {
		era, err := masters.Era(node.Info(ctx, "replication").Result())
		mu.Lock()
		defer mu.Unlock()
		eras[tag] = era
		return err
	}))
	return eras
}

// Nothing is called whole where no writer keeps positions, as where ledger and writers have other command topics: then
// nobody marks a master that has lost boards.
func TestUnknownWithoutPositions(t *testing.T) {
	t.Parallel()
	f := newIdle(t, testkit.SQLKinds[0], single)
	m := NewMender(MenderOptions{Options: f.opts, Paced: single(t), File: func() *rooms.File { return f.file }})
	now := ledger.Now{Leads: func() bool { return true }}
	if _, known := m.found(t.Context(), now); known || m.Status().State != "unknown" || !strings.Contains(m.Status().Error, "--topic-commands") {
		t.Errorf("without positions: %+v", m.Status())
	}
	for tag := range f.eras(t) {
		must(t, f.redis.HSet(t.Context(), f.opts.Names.AppliedKey(tag), wire.PositionsLife, "x").Err())
	}
	if found, known := m.found(t.Context(), now); !known || len(found) > 0 || m.Status().State != "whole" {
		t.Errorf("with positions: %v, %+v", found, m.Status())
	}
}
