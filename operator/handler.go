package operator

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"time"
)

//go:embed assets
var assets embed.FS

// policy allows the page its own files and listener alone: nothing inline, no frame, no other host, no markup of text.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// file is one embedded file, ready to be sent.
type file struct {
	name, kind, etag string
	data             []byte
}

// Handler returns the handler of "/" and "/assets/…": GET and HEAD, with ETags. It may be called concurrently.
func Handler() *http.ServeMux {
	mux := http.NewServeMux()
	for _, f := range embedded() {
		pattern := "GET /assets/" + f.name
		if f.name == "index.html" {
			pattern = "GET /{$}"
		}
		mux.Handle(pattern, f)
	}
	return mux
}

// ServeHTTP sends the file, or 304 to a browser that has it.
func (f *file) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", f.kind)
	h.Set("ETag", f.etag)
	h.Set("Cache-Control", "no-cache") // keep it, but ask: the next version has the same address
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(f.data))
}

// embedded returns the files. They are part of the program, so a fault in them is one of its build.
func embedded() (files []*file) {
	entries, err := fs.ReadDir(assets, "assets")
	if err != nil {
		panic(err)
	}
	for _, e := range entries {
		data, err := assets.ReadFile("assets/" + e.Name())
		if err != nil {
			panic(err)
		}
		files = append(files, newFile(e.Name(), data))
	}
	return files
}

func newFile(name string, data []byte) *file {
	sum := sha256.Sum256(data)
	return &file{name: name, kind: kindOf(name), data: data,
		etag: `"` + base64.RawURLEncoding.EncodeToString(sum[:16]) + `"`}
}

// kindOf names the types itself: the system's MIME table may differ.
func kindOf(name string) string {
	switch ext := path.Ext(name); ext {
	case ".html":
		return "text/html; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	default:
		panic(fmt.Sprintf("operator: no content type for %s", name))
	}
}
