package faults

import (
	"fmt"

	"rankcache"
	"rankcache/internal/lab/fill"
	"rankcache/internal/testkit"
	"rankcache/wire"
)

const (
	// memoryLimit is what the kernel lets the sidecar have, and hugeMembers a
	// board that would not fit.
	memoryLimit = 128 << 20
	hugeMembers = 1_000_000
)

func memoryFaults() []fault {
	return []fault{{
		name: "a board is named that does not fit into memory", note: fmt.Sprintf("limit %d MiB", memoryLimit>>20),
		prepare: func(w *env) { w.limitMemory(memoryLimit) },
		inject: func(w *env) {
			w.writeRooms(w.roomsText() + fmt.Sprintf("- {match: %q, mode: super-hot}\n", w.huge()))
		},
		hold: func(w *env) {
			w.waitMetric(`rankcache_memory_refused_boards{reason="over_budget"} 1`)
			w.waitReads(faultyReads)
			w.checkHuge()
		},
		heal: func(w *env) { w.writeRooms(w.roomsText()) },
	}}
}

// limitMemory lets the kernel limit the sidecar, where we may; otherwise the row
// goes on without it, and prints that.
func (w *env) limitMemory(limit int) {
	w.Helper()
	if w.cgroup = testkit.MemoryCgroup(w, limit); w.cgroup == "" {
		w.Log("NO CGROUP can be made, so the kernel does not limit the sidecar and --memory-budget takes its place")
		w.args = append(w.args, "--memory-budget", fmt.Sprint(limit/2))
	}
}

// huge makes a board in Redis that has no writes, and returns its name.
func (w *env) huge() rankcache.BoardID {
	w.Helper()
	board := w.boards[0].ID + "_huge"
	scores := make(map[string]float64, hugeMembers)
	for i := range hugeMembers {
		scores[fmt.Sprintf("member-%08d", i)] = float64(i)
	}
	w.must(fill.NewBoardOf(board, scores, hugeMembers).Redis(w.Context(), w.client(), wire.DefaultNames(), 0))
	return board
}

// checkHuge asks for the board: Redis answers it.
func (w *env) checkHuge() {
	w.Helper()
	resp := &Reply{}
	w.fetch(fmt.Sprintf("/v1/boards/%s_huge/top?limit=1", w.boards[0].ID), resp)
	want := Row{Rank: 1, Member: fmt.Sprintf("member-%08d", hugeMembers-1), Score: hugeMembers - 1}
	if resp.Err != nil || resp.Source == "local" || resp.Total != hugeMembers || len(resp.Rows) != 1 || resp.Rows[0] != want {
		w.Errorf("the board that does not fit is answered %+v", resp)
	}
}
