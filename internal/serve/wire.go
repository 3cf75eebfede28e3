package serve

import (
	"context"

	"rankcache"
	"rankcache/localboard"
	"rankcache/origin"
	"rankcache/profile"
	"rankcache/replay"
	"rankcache/rooms"
	"rankcache/sidecar"
)

// Adapters that implement the peers' interfaces with the other peers' types: they don't import each other.

// OpenBoards gives the read path the boards that may be read.
type OpenBoards struct{ *localboard.Boards }

// Get returns a nil interface, not a nil board in one, when there is none.
func (b OpenBoards) Get(id rankcache.BoardID) (sidecar.Board, bool) {
	if board, ok := b.Boards.Get(id); ok {
		return board, true
	}
	return nil, false
}

// IsOpen reports whether the board may be read.
func (b OpenBoards) IsOpen(id rankcache.BoardID) bool {
	_, ok := b.Boards.Get(id)
	return ok
}

// FilledBoards gives the replay the boards that it fills.
type FilledBoards struct {
	*localboard.Boards
	Profiles *profile.Cache // nil: none
	Classes  func() *rooms.File
}

// Create returns the board, unread until it is opened.
func (b FilledBoards) Create(id rankcache.BoardID) replay.Board { return b.Boards.Create(id) }

// GateOrigin gives the gate Redis's states and members, which it compares boards with.
type GateOrigin struct{ *origin.Origin }

// Sample is [origin.Origin.Sample].
func (o GateOrigin) Sample(ctx context.Context, board rankcache.BoardID, members []string, random int) (replay.Sample, error) {
	s, err := o.Origin.Sample(ctx, board, members, random)
	return replay.Sample(s), err
}
