package doctor

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// maxSocketPath is the longest path of a Unix socket, in bytes, that Linux and macOS
// accept.
const maxSocketPath = 103

// Folder returns the check that files can be created in the folder that a flag names.
// A missing folder passes if it can be created. The check creates a file and removes
// it.
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

// Socket returns the check that a Unix socket can be created at the path that a flag
// names. Its folder must exist.
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

// tryFile creates a file in dir, writes to it and removes it.
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
