package serve

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/dustin/go-humanize"

	"rankcache"
	"rankcache/internal/cli"
	"rankcache/localboard"
	"rankcache/origin"
	"rankcache/replay"
	"rankcache/replay/admission"
)

const (
	// defaultMemoryBudget is an upper bound: memoryShare leaves room for Kafka's client, profiles and the collector.
	defaultMemoryBudget = "60%"
	minBareBudget       = 1 << 20 // in bytes: a smaller number without a unit lacks it by mistake
)

type memoryLimits struct {
	Limit   int64  `json:"limit_bytes"`
	Source  string `json:"limit_source"`        // limitCgroup or limitMachine
	Outside int64  `json:"outside_of_go_bytes"` // the most so far, or what is to be expected
	Go      int64  `json:"go_limit_bytes"`      // MaxInt64: none
}

// Values of memoryLimits.Source.
const limitCgroup, limitMachine = "cgroup", "machine"

// MemoryStatus is the part of /status about memory.
type MemoryStatus struct {
	memoryLimits
	admission.Status
	RefusedBoards int `json:"refused_boards"` // of which refused lists the first
}

// findMemoryLimits asks the cgroup, and the machine where that has no limit.
func findMemoryLimits() (memoryLimits, error) {
	machine, machineErr := memlimit.FromSystem()
	cgroup, err := memlimit.FromCgroup()
	switch {
	case err == nil && (machineErr != nil || cgroup < machine):
		return memoryLimits{Limit: int64(cgroup), Source: limitCgroup}, nil
	case machineErr == nil:
		return memoryLimits{Limit: int64(min(machine, math.MaxInt64)), Source: limitMachine}, nil
	}
	return memoryLimits{}, fmt.Errorf("neither the cgroup's nor the machine's memory is known: %w", errors.Join(err, machineErr))
}

// budget reads --memory-budget: bytes, or a share of the limit.
func (l memoryLimits) budget(text string) (int64, error) {
	bad := func() (int64, error) {
		return 0, cli.Usagef("--memory-budget %q: want bytes such as 300MiB, a share such as 60%%, or 0", text)
	}
	if share, ok := strings.CutSuffix(text, "%"); ok {
		percent, err := strconv.ParseFloat(share, 64)
		if err != nil || !(percent >= 0 && percent <= 100) {
			return bad()
		}
		return int64(float64(l.Limit) * percent / 100), nil
	}
	bytes, err := humanize.ParseBytes(text)
	if err != nil || bytes > math.MaxInt64 {
		return bad()
	}
	if _, bare := strconv.ParseFloat(text, 64); bare == nil && bytes > 0 && bytes < minBareBudget {
		return 0, cli.Usagef("--memory-budget %q is %d bytes: add the unit, such as 300MiB", text, bytes)
	}
	return int64(bytes), nil
}

// boardSizes estimates boards from Redis's counts and first rows, or from files while it does not answer.
type boardSizes struct {
	origin *origin.Origin
	kept   []headers // where Redis does not answer, the first that has the board
}

type headers interface {
	ReadHeader(rankcache.BoardID) (replay.Saved, int, error)
}

func (s *Sidecar) headers() (all []headers) {
	if s.kept != nil {
		all = append(all, s.kept)
	}
	if s.snapshots != nil {
		all = append(all, s.snapshots)
	}
	return all
}

const (
	sizeRows   = 20
	sizeBoards = 100 // in one round trip
)

// Sizes returns the size of each board, nil where it is not known.
func (o boardSizes) Sizes(ctx context.Context, boards []rankcache.BoardID) ([]*admission.Size, error) {
	sizes := make([]*admission.Size, len(boards))
	err := o.inRedis(ctx, boards, sizes)
	for i, id := range boards {
		if sizes[i] == nil {
			sizes[i] = o.inFiles(id)
		}
	}
	return sizes, err
}

// inFiles returns the size of a board that Redis did not give, nil if no file has it.
func (o boardSizes) inFiles(id rankcache.BoardID) *admission.Size {
	for _, kept := range o.kept {
		if head, idBytes, err := kept.ReadHeader(id); err == nil {
			return &admission.Size{Members: head.Members, IDBytes: idBytes}
		}
	}
	return nil
}

// inRedis asks for some boards at a time, and no more once Redis is away.
func (o boardSizes) inRedis(ctx context.Context, boards []rankcache.BoardID, sizes []*admission.Size) (err error) {
	for from := 0; from < len(boards); from += sizeBoards {
		to := min(from+sizeBoards, len(boards))
		for i, a := range readHeads(ctx, o.origin, boards[from:to], sizeRows) {
			if a.Err == nil {
				sizes[from+i] = sizeOf(&a)
			} else if err == nil || errors.Is(a.Err, rankcache.ErrUnavailable) {
				err = a.Err
			}
		}
		if errors.Is(err, rankcache.ErrUnavailable) {
			break
		}
	}
	return err
}

func readHeads(ctx context.Context, r rankcache.Reader, boards []rankcache.BoardID, rows int) []rankcache.Answer {
	qs, as := make([]rankcache.Query, len(boards)), make([]rankcache.Answer, len(boards))
	for i, b := range boards {
		qs[i] = rankcache.Query{Board: b, Limit: rows}
	}
	r.Read(ctx, qs, as)
	return as
}

func sizeOf(head *rankcache.Answer) *admission.Size {
	bytes := 0
	for _, e := range head.Entries {
		bytes += len(rankcache.JoinData(e.Member, head.Data.Of(e.Member)))
	}
	rows := max(1, len(head.Entries))
	return &admission.Size{Members: head.Members, IDBytes: (bytes + rows - 1) / rows}
}

type heldBoards struct{ *localboard.Boards } // measures the memory of the local boards

func (b heldBoards) held() map[rankcache.BoardID]admission.Usage {
	held := make(map[rankcache.BoardID]admission.Usage)
	for _, board := range b.All() {
		_, open := b.Get(board.ID())
		held[board.ID()] = admission.Usage{Size: admission.Size{Members: board.Progress().Members},
			Bytes: int64(board.Bytes()), Open: open}
	}
	return held
}
