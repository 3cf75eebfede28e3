package bench

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"

	"github.com/valyala/fasthttp"

	"rankcache/sidecar/httpapi"
)

// fixedTarget answers with bytes that were written down before, on a bare server
// of the library that the sidecar's data port uses: what is left when there is no
// board. It sends the header fields that rankcache sends.
type fixedTarget struct {
	replies map[string]*fixedReply // by the last part of the path
}

type fixedReply struct {
	contentType string
	fields      [][2][]byte
	body        []byte
}

// newFixedTarget reads the folder's files: each is a whole HTTP reply, answered
// to every path that ends in its name: a path as long as the real one is as much
// to read.
func newFixedTarget(_ context.Context, o *targetOptions) (target, error) {
	files, err := filepath.Glob(filepath.Join(o.replies, "*"))
	if err != nil {
		return nil, err
	}
	t := &fixedTarget{replies: make(map[string]*fixedReply)}
	for _, file := range files {
		if t.replies[filepath.Base(file)], err = readReply(file); err != nil {
			return nil, err
		}
	}
	return t, nil
}

func readReply(file string) (*fixedReply, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	resp, err := http.ReadResponse(bufio.NewReader(f), nil)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	r := &fixedReply{contentType: resp.Header.Get("Content-Type")}
	for name, values := range resp.Header {
		if name != "Content-Type" && name != "Date" && name != "Content-Length" {
			r.fields = append(r.fields, [2][]byte{[]byte(name), []byte(values[0])})
		}
	}
	r.body, err = io.ReadAll(resp.Body)
	return r, err
}

func (t *fixedTarget) serve(ctx context.Context, ln net.Listener) error {
	return serveFast(ctx, ln, func(ctx *fasthttp.RequestCtx) {
		path := ctx.Path()
		r := t.replies[string(path[bytes.LastIndexByte(path, '/')+1:])]
		if r == nil {
			ctx.NotFound()
			return
		}
		ctx.Response.Header.SetContentType(r.contentType)
		for i := range r.fields {
			ctx.Response.Header.SetCanonical(r.fields[i][0], r.fields[i][1])
		}
		ctx.Response.SetBodyRaw(r.body)
	})
}

// serveFast answers on ln with a bare server until ctx is done. It sends as much by one
// system call as the data port.
func serveFast(ctx context.Context, ln net.Listener, h fasthttp.RequestHandler) error {
	srv := &fasthttp.Server{Handler: h, NoDefaultServerHeader: true, CloseOnShutdown: true, WriteBufferSize: httpapi.WriteBuffer}
	stop := context.AfterFunc(ctx, func() { _ = srv.ShutdownWithContext(ctx) }) // no time for requests in hand
	defer stop()
	if err := srv.Serve(ln); ctx.Err() == nil && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}
