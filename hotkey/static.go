package hotkey

import (
	"context"

	"rankcache"
	"rankcache/rooms"
)

// Static is the boards that the operator has pinned.
type Static struct {
	tiers func() *rooms.Tiers
}

// NewStatic returns the source of the boards that tiers says are hot.
func NewStatic(tiers func() *rooms.Tiers) *Static { return &Static{tiers} }

// Name returns "static".
func (s *Static) Name() string { return "static" }

// Hot returns the pinned boards, with a count of 0.
func (s *Static) Hot(context.Context) (Sample, error) {
	var sample Sample
	for _, b := range s.boards() {
		sample.Boards = append(sample.Boards, BoardCount{Board: b})
	}
	return sample, nil
}

func (s *Static) boards() []rankcache.BoardID { return s.tiers().Boards(rooms.ModeHot) }
