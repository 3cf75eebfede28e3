package servers

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// tail returns the last n bytes of a file.
func tail(path string, n int64) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(io.NewSectionReader(f, max(0, size-n), n))
	return string(text), err
}

// folder returns dir, made if need be, or a new temporary folder when dir is empty; own tells which.
func folder(dir, name string) (path string, own bool, err error) {
	if dir == "" {
		path, err = os.MkdirTemp("", "rankcache-"+name+"-")
		own = true
	} else if path, err = filepath.Abs(dir); err == nil {
		err = os.MkdirAll(path, 0o700)
	}
	if err != nil {
		return "", false, fmt.Errorf("make the folder of %s: %w", name, err)
	}
	return path, own, nil
}
