package objects

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
)

// folder is a folder of this machine.
type folder string

func (f folder) path(name string) string { return filepath.Join(string(f), filepath.FromSlash(name)) }

func (f folder) put(_ context.Context, name string, data []byte) (string, error) {
	to := f.path(name)
	if err := os.MkdirAll(filepath.Dir(to), 0o750); err != nil {
		return "", err
	}
	temporary, err := os.CreateTemp(filepath.Dir(to), ".new-*")
	if err != nil {
		return "", err
	}
	defer os.Remove(temporary.Name()) // after the rename there is nothing
	_, err = temporary.Write(data)
	if err == nil {
		err = temporary.Chmod(0o640) // readers of a shared volume may have its group alone
	}
	if err == nil {
		err = temporary.Sync()
	}
	if err = errors.Join(err, temporary.Close()); err != nil {
		return "", err
	}
	return (&url.URL{Scheme: "file", Path: to}).String(), os.Rename(temporary.Name(), to)
}

func (f folder) get(_ context.Context, name string) (io.ReadCloser, int64, error) {
	path := f.path(name)
	info, err := os.Stat(path) // before it is opened: a pipe would wait for its writer
	if err != nil {
		return nil, 0, err
	}
	if !info.Mode().IsRegular() {
		return nil, 0, fmt.Errorf("%s is no file", path)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	if info, err = file.Stat(); err != nil { // it may have been replaced meanwhile
		return nil, 0, errors.Join(err, file.Close())
	}
	return file, info.Size(), nil
}

func (f folder) remove(_ context.Context, name string) error { return os.RemoveAll(f.path(name)) }
