package rankcache

import "errors"

// Sentinels by which callers decide. They are wrapped with what to check.
var (
	// ErrBoard reports a board id outside its alphabet or length.
	ErrBoard = errors.New("bad board id")
	// ErrMember reports a member id that is empty, too long or not plain text.
	ErrMember = errors.New("bad member id")
	// ErrScore reports a score or delta that is not a finite number.
	ErrScore = errors.New("bad score")
	// ErrUnknownMember says that the member is not on the board.
	ErrUnknownMember = errors.New("member is not on the board")
	// ErrUnavailable says that Redis could not be asked or did not answer in time.
	ErrUnavailable = errors.New("origin unavailable")
)
