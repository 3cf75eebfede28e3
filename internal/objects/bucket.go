package objects

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

const maxRetries = 3 // of a request that failed: callers try again by themselves, or have another source

type bucket struct {
	client       *minio.Core
	name, prefix string
}

func openBucket(u *url.URL) (*Store, error) {
	b := &bucket{}
	b.name, b.prefix, _ = strings.Cut(strings.Trim(u.Path, "/"), "/")
	if b.name == "" {
		return nil, errors.New("the URL names no bucket: want s3://key:secret@host:port/bucket/prefix")
	}
	secret, _ := u.User.Password()
	encrypted := u.Query().Get("tls") != "false"
	var err error
	b.client, err = minio.NewCore(u.Host, &minio.Options{Creds: credentials.NewStaticV4(u.User.Username(), secret, ""), Secure: encrypted,
		Region: u.Query().Get("region"), MaxRetries: maxRetries})
	if err != nil {
		return nil, errors.New("host or bucket can't be used: check s3://key:secret@host:port/bucket/prefix")
	}
	s := &Store{backend: b}
	if !encrypted && isPublic(u.Hostname()) {
		s.plain = u.Hostname()
	}
	return s, nil
}

// failed adds to a server's error what was tried, and whether the object is absent or the user is refused.
func (b *bucket) failed(doing, key string, err error) error {
	told := minio.ToErrorResponse(err)
	switch {
	case told.Code == minio.NoSuchKey:
		err = fmt.Errorf("%w: %w", fs.ErrNotExist, err)
	case told.StatusCode == http.StatusForbidden || told.StatusCode == http.StatusUnauthorized:
		err = fmt.Errorf("%w: %w", fs.ErrPermission, err)
	}
	return fmt.Errorf("%s %s of the bucket %s: %w", doing, key, b.name, err)
}

func (b *bucket) put(ctx context.Context, name string, data []byte) (string, error) {
	key := path.Join(b.prefix, name)
	if _, err := b.client.PutObject(ctx, b.name, key, bytes.NewReader(data), int64(len(data)), "", "", minio.PutObjectOptions{ContentType: "application/octet-stream"}); err != nil {
		return "", b.failed("write", key, err)
	}
	return (&url.URL{Scheme: "s3", Host: b.name, Path: "/" + key}).String(), nil
}

func (b *bucket) get(ctx context.Context, name string) (io.ReadCloser, int64, error) {
	key := path.Join(b.prefix, name)
	body, info, _, err := b.client.GetObject(ctx, b.name, key, minio.GetObjectOptions{})
	if err != nil {
		return nil, 0, b.failed("read", key, err)
	}
	return body, info.Size, nil
}

func (b *bucket) remove(ctx context.Context, folder string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the listing after an error
	prefix := path.Join(b.prefix, folder) + "/"
	for object := range b.client.Client.ListObjects(ctx, b.name, minio.ListObjectsOptions{Prefix: prefix, Recursive: true}) {
		if object.Err != nil {
			return b.failed("list", prefix, object.Err)
		}
		if err := b.client.RemoveObject(ctx, b.name, object.Key, minio.RemoveObjectOptions{}); err != nil {
			return b.failed("delete", object.Key, err)
		}
	}
	return nil
}
