package final

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// Files keeps files for good.
type Files interface {
	// Put writes a whole file, or nothing, and returns its URL. A file of that name is
	// replaced.
	Put(ctx context.Context, name string, data []byte) (fileURL string, err error)
}

// OpenFiles returns the folder or bucket of a URL: file:///folder, or
// s3://key:secret@host:port/bucket/prefix, with the options region=… and tls=false as
// query. It connects to nothing. No error holds the URL, which is a secret.
func OpenFiles(rawURL string) (Files, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil, errors.New("not a URL: want file:///folder or s3://key:secret@host:port/bucket/prefix, special signs of the secret as %XX")
	}
	switch {
	case u.Scheme == "file" && u.Host == "" && filepath.IsAbs(u.Path):
		return folder(u.Path), nil
	case u.Scheme == "s3" && u.Host != "":
		return openBucket(u)
	}
	return nil, errors.New("want file:///folder or s3://key:secret@host:port/bucket/prefix")
}

// folder is a folder of this machine.
type folder string

func (f folder) Put(_ context.Context, name string, data []byte) (string, error) {
	to := filepath.Join(string(f), filepath.FromSlash(name))
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
		err = temporary.Sync()
	}
	if err = errors.Join(err, temporary.Close()); err != nil {
		return "", err
	}
	return (&url.URL{Scheme: "file", Path: to}).String(), os.Rename(temporary.Name(), to)
}

// bucket is a bucket of a server that speaks S3.
type bucket struct {
	client       *minio.Core
	name, prefix string
}

func openBucket(u *url.URL) (Files, error) {
	b := &bucket{}
	b.name, b.prefix, _ = strings.Cut(strings.Trim(u.Path, "/"), "/")
	if b.name == "" {
		return nil, errors.New("the URL names no bucket: want s3://key:secret@host:port/bucket/prefix")
	}
	secret, _ := u.User.Password()
	var err error
	b.client, err = minio.NewCore(u.Host, &minio.Options{Creds: credentials.NewStaticV4(u.User.Username(), secret, ""), Secure: u.Query().Get("tls") != "false",
		Region: u.Query().Get("region")})
	if err != nil {
		return nil, errors.New("host or bucket can't be used: check s3://key:secret@host:port/bucket/prefix")
	}
	return b, nil
}

func (b *bucket) Put(ctx context.Context, name string, data []byte) (string, error) {
	key := path.Join(b.prefix, name)
	if _, err := b.client.PutObject(ctx, b.name, key, bytes.NewReader(data), int64(len(data)), "", "", minio.PutObjectOptions{ContentType: "application/octet-stream"}); err != nil {
		return "", fmt.Errorf("writing %s to the bucket %s: %w", key, b.name, err)
	}
	return (&url.URL{Scheme: "s3", Host: b.name, Path: "/" + key}).String(), nil
}
