// Package objects keeps files by name in a folder, such as a shared volume, or in a bucket of anything that speaks S3.
// An object is replaced as a whole: who reads it has the one before or the new one.
package objects

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Store is a folder or a bucket. Methods may be called concurrently, and connect each time. Names are joined by "/".
// Errors wrap [fs.ErrNotExist] or [fs.ErrPermission]; none has the URL, which is a secret.
type Store struct {
	backend
	plain string // the host to which secrets and objects go unencrypted; "" for none
}

type backend interface {
	put(ctx context.Context, name string, data []byte) (objectURL string, err error)
	get(ctx context.Context, name string) (body io.ReadCloser, size int64, err error)
	remove(ctx context.Context, folder string) error
}

// Open returns the folder or bucket of a URL: file:///folder, or s3://key:secret@host:port/bucket/prefix, with the
// options region=… and tls=false as query. It connects to nothing. No error holds the URL, which is a secret.
func Open(rawURL string) (*Store, error) {
	u, err := url.Parse(rawURL)
	switch {
	case err != nil:
		return nil, errors.New("not a URL: want file:///folder or s3://key:secret@host:port/bucket/prefix, special signs of the secret as %XX")
	case slices.Contains(strings.Split(u.Path, "/"), ".."):
		return nil, errors.New(`the path of the URL has "..": write the folder or prefix itself`)
	case u.Scheme == "file" && u.Host == "" && filepath.IsAbs(u.Path):
		return &Store{backend: folder(u.Path)}, nil
	case u.Scheme == "s3" && u.Host != "":
		return openBucket(u)
	}
	return nil, errors.New("want file:///folder or s3://key:secret@host:port/bucket/prefix")
}

// Warning returns what to tell the operator about the URL; "" for nothing.
func (s *Store) Warning() string {
	if s.plain == "" {
		return ""
	}
	return "objects and the signature of each request are sent to " + s.plain + " unencrypted: leave out tls=false"
}

// isPublic reports whether a host is beyond a cluster, as far as its name tells.
func isPublic(host string) bool {
	if ip, err := netip.ParseAddr(host); err == nil {
		return !ip.IsPrivate() && !ip.IsLoopback() && !ip.IsLinkLocalUnicast()
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	inside := func(ending string) bool { return strings.HasSuffix(host, ending) }
	return strings.Contains(host, ".") && !slices.ContainsFunc([]string{".svc", ".local", ".internal", ".localhost"}, inside)
}

var errName = errors.New(`want parts without "." and ".." joined by "/"`)

// checkName refuses names that lead out of the store.
func checkName(name string) error {
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part == "." || part == ".." || strings.ContainsAny(part, "\\\x00") {
			return fmt.Errorf("object %q: %w", name, errName)
		}
	}
	return nil
}

// Put writes a whole object, or nothing, and returns its URL. An object of that name is replaced.
func (s *Store) Put(ctx context.Context, name string, data []byte) (objectURL string, err error) {
	if err := checkName(name); err != nil {
		return "", err
	}
	return s.put(ctx, name, data)
}

// Get returns an object, which the caller closes, and its size, -1: unknown. ctx ends reading, too.
func (s *Store) Get(ctx context.Context, name string) (body io.ReadCloser, size int64, err error) {
	if err := checkName(name); err != nil {
		return nil, 0, err
	}
	return s.get(ctx, name)
}

// RemoveBelow deletes all objects whose names begin with that of the folder and "/". None there is no error.
func (s *Store) RemoveBelow(ctx context.Context, folder string) error {
	if err := checkName(folder); err != nil {
		return err
	}
	return s.remove(ctx, folder)
}

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
