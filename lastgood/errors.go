package lastgood

import (
	"errors"
	"io/fs"
)

// Why a file is not used. They are wrapped with what was found.
var (
	// ErrCut says that the file ends too early.
	ErrCut = errors.New("file is cut off")
	// ErrCorrupt says that a checksum or a length is wrong.
	ErrCorrupt = errors.New("file is damaged")
	// ErrForeign says that it is no file of ours, or another board's.
	ErrForeign = errors.New("file is not this board's")
	// ErrVersion says that another version of the format was used.
	ErrVersion = errors.New("file has another format version")
)

// kind returns the word for err in metrics: "ok" for none.
func kind(err error) string {
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, fs.ErrNotExist):
		return "absent"
	case errors.Is(err, ErrCut):
		return "cut"
	case errors.Is(err, ErrCorrupt):
		return "corrupt"
	case errors.Is(err, ErrForeign):
		return "foreign"
	case errors.Is(err, ErrVersion):
		return "version"
	}
	return "failed"
}

// damaged says that a file is of no use to anybody, also not to another version
// of this program.
func damaged(err error) bool { return errors.Is(err, ErrCut) || errors.Is(err, ErrCorrupt) }
