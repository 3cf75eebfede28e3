// Package watch reads files of settings again when they have changed, so that what rotates needs no restart.
//
// A file that can't be read, or whose content is no good, such as one that is half written, leaves what was
// read last in force, and says so. Entry: [New], [Certificates].
package watch

import (
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"
)

const maxFile = 4 << 20 // more than a file of settings has, in bytes

// File is a file and what its content comes to. Its methods may be called concurrently once it is loaded.
type File[T any] struct {
	Setting string // that names it, a flag with its dashes
	Path    string
	Log     *slog.Logger                    // nil: nothing is logged
	Once    bool                            // what uses it has read it once, when it was made, and must be made anew
	parse   func(content []byte) (T, error) // its error tells what the file is or has

	mu     sync.Mutex
	info   fs.FileInfo // of the file that was read; nil: to be read
	value  T
	read   time.Time
	reads  int
	failed string // why what is there now is not in force
}

// New returns a file that is read by the first call of Load or Get.
func New[T any](setting, path string, parse func(content []byte) (T, error)) *File[T] {
	return &File[T]{Setting: setting, Path: path, parse: parse}
}

// Get returns what the file comes to now; what it came to last, if it can't be read.
func (f *File[T]) Get() T {
	f.mu.Lock()
	defer f.mu.Unlock()
	_ = f.refresh() // told
	return f.value
}

// Load reads the file, also one that is read already. The error names setting and file.
func (f *File[T]) Load() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.info = nil
	return f.refresh()
}

// LogTo has what becomes of the file logged.
func (f *File[T]) LogTo(log *slog.Logger) { f.Log = log }

// refresh reads the file unless it is as it was when it was read last. mu is held.
func (f *File[T]) refresh() error {
	info, err := os.Stat(f.Path)
	if err == nil && f.info != nil && os.SameFile(info, f.info) && info.ModTime().Equal(f.info.ModTime()) && info.Size() == f.info.Size() {
		f.failed = ""
		return nil
	}
	value, err := f.parsed()
	if err != nil {
		err = fmt.Errorf("%s: %w", f.Setting, err)
		if f.Log != nil && f.failed != err.Error() {
			f.Log.Error("a file can't be read again, what was read last stays in force", "err", err)
		}
		f.failed = err.Error()
		return err
	}
	f.info, f.value, f.read, f.failed = info, value, time.Now(), ""
	if f.reads++; f.reads > 1 && f.Log != nil {
		f.tell()
	}
	return nil
}

func (f *File[T]) tell() {
	if f.Once {
		f.Log.Warn("a file has changed that is read once, at the start: roll the pods", "setting", f.Setting, "file", f.Path)
		return
	}
	f.Log.Info("a file was read again", "setting", f.Setting, "file", f.Path)
}

func (f *File[T]) parsed() (value T, err error) {
	file, err := os.Open(f.Path)
	if err != nil {
		return value, err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	switch {
	case err != nil:
		return value, err
	case len(content) > maxFile:
		return value, fmt.Errorf("%s has more than %d MiB", f.Path, maxFile>>20)
	}
	if value, err = f.parse(content); err != nil {
		err = fmt.Errorf("%s %w", f.Path, err)
	}
	return value, err
}

// Status is what operators see of a file.
type Status struct {
	Setting string     `json:"setting"`
	Path    string     `json:"file"`
	Read    time.Time  `json:"read_at"`
	Ends    *time.Time `json:"certificate_ends,omitempty"` // the first certificate in it
	Error   string     `json:"error,omitempty"`            // why what is there now is not in force
}

// Status returns the present state, having looked at the file.
func (f *File[T]) Status() Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	_ = f.refresh() // in Error
	s := Status{Setting: strings.TrimPrefix(f.Setting, "--"), Path: f.Path, Read: f.read, Error: f.failed}
	if f.Once && f.reads > 1 && s.Error == "" {
		s.Error = "changed since the start, at which it is read: roll the pods"
	}
	if c, ok := any(f.value).(*Certs); ok && c != nil && !c.Ends.IsZero() {
		s.Ends = &c.Ends
	}
	return s
}

// Any is a file, whatever it comes to.
type Any interface {
	Load() error
	LogTo(*slog.Logger)
	Status() Status
}
