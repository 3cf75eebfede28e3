package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

const maxSocketPath = 103 // the longest path of a Unix socket, in bytes, that Linux and macOS accept

// Folder returns the check that files can be made in a flag's folder, or that itself. It makes a file and removes it.
func Folder(name, flag, dir string) Check {
	return Check{Name: name, Look: func(context.Context) Verdict {
		existing, err := existingFolder(dir)
		if err == nil {
			err = tryFile(existing)
		}
		switch {
		case err != nil:
			return failf("--%s: %s", flag, explainFolder(err))
		case existing != dir:
			return okf("%s does not exist yet; it can be created in %s", dir, existing)
		}
		return okf("files can be created in %s", dir)
	}}
}

// Socket returns the check that a Unix socket can be created at the path that a flag names. Its folder must exist.
func Socket(name, flag, path string) Check {
	return Check{Name: name, Look: func(context.Context) Verdict {
		if len(path) > maxSocketPath {
			return failf("--%s: a path of %d bytes, want at most %d: use a shorter one", flag, len(path), maxSocketPath)
		}
		dir := filepath.Dir(path)
		if err := tryFile(dir); err != nil {
			return failf("--%s: %s", flag, explainFolder(err))
		}
		return okf("sockets can be created in %s", dir)
	}}
}

// existingFolder returns dir, or its nearest ancestor that exists.
func existingFolder(dir string) (string, error) {
	dir = filepath.Clean(dir)
	_, err := os.Stat(dir)
	if parent := filepath.Dir(dir); errors.Is(err, fs.ErrNotExist) && parent != dir {
		return existingFolder(parent)
	}
	return dir, err
}

func tryFile(dir string) error {
	file, err := os.CreateTemp(dir, ".rankcache-doctor-*")
	if err != nil {
		return err
	}
	_, err = file.WriteString("probe")
	return errors.Join(err, file.Close(), os.Remove(file.Name()))
}

// explainFolder returns what to do about an error of creating a file.
func explainFolder(err error) string {
	advice := "check the folder"
	switch {
	case errors.Is(err, fs.ErrNotExist):
		advice = "the folder does not exist: create it, or mount a volume there"
	case errors.Is(err, fs.ErrPermission):
		advice = "no permission to create files: give the user of this process write access"
	case errors.Is(err, syscall.EROFS):
		advice = "the file system is read-only: mount a writable volume there"
	case errors.Is(err, syscall.ENOTDIR):
		advice = "it is not a folder"
	case errors.Is(err, syscall.ENOSPC):
		advice = "the disk is full"
	}
	return advice + " (" + err.Error() + ")"
}

// OtherFiles estimates those of a sidecar beside its listeners' connections: to servers, listeners, snapshots.
const OtherFiles = 256

// Conns are connections that a process may have at once, by a name.
type Conns struct {
	Name  string
	Files int // that all of them take
}

// FileLimit returns how many files this process may have open: the hard limit, to which Go raises the soft one.
func FileLimit() (uint64, error) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, fmt.Errorf("the limit of open files is unknown: %w", err)
	}
	return limit.Max, nil
}

// OpenFiles returns the check that the limit of open files is enough for all connections of the listeners.
func OpenFiles(conns []Conns) Check {
	return Check{Name: "open-files", Look: func(context.Context) Verdict {
		limit, err := FileLimit()
		if err != nil {
			return warnf("%v", err)
		}
		return judgeOpenFiles(limit, conns)
	}}
}

func judgeOpenFiles(limit uint64, conns []Conns) Verdict {
	need, of := OtherFiles, make([]string, len(conns))
	for i, c := range conns {
		need += c.Files
		of[i] = fmt.Sprintf("%d for %s", c.Files, c.Name)
	}
	parts := fmt.Sprintf("%s, %d for the rest", strings.Join(of, ", "), OtherFiles)
	if limit >= uint64(need) {
		return okf("the limit of open files is enough for the %d that all connections take (%s)", need, parts)
	}
	return warnf("the limit of open files is %d, and all connections that the listeners take need %d (%s): serve takes fewer at once; set %d or more by ulimit -n, LimitNOFILE= or the container runtime's limits, or lower --live-streams",
		limit, need, parts, need)
}
