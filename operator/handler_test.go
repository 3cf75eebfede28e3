package operator

import (
	"io/fs"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

func ask(method, path string, header ...string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(method, path, nil)
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	rec := httptest.NewRecorder()
	Handler().ServeHTTP(rec, req)
	return rec
}

func TestFilesAreSentAndKept(t *testing.T) {
	for path, kind := range map[string]string{"/": "text/html", "/assets/style.css": "text/css", "/assets/app.js": "text/javascript", "/assets/icon.svg": "image/svg+xml"} {
		first := ask("GET", path)
		if first.Code != http.StatusOK || !strings.HasPrefix(first.Header().Get("Content-Type"), kind) || first.Body.Len() == 0 {
			t.Fatalf("%s: %d %v", path, first.Code, first.Header())
		}
		if again := ask("GET", path, "If-None-Match", first.Header().Get("ETag")); again.Code != http.StatusNotModified || again.Body.Len() != 0 {
			t.Errorf("%s again: %d, %d bytes, want 304 and none", path, again.Code, again.Body.Len())
		}
		if other := ask("GET", path, "If-None-Match", `"older"`); other.Code != http.StatusOK {
			t.Errorf("%s after a change: %d, want 200", path, other.Code)
		}
		if head := ask("HEAD", path); head.Code != http.StatusOK || head.Body.Len() != 0 {
			t.Errorf("HEAD %s: %d, %d bytes", path, head.Code, head.Body.Len())
		}
	}
	for _, path := range []string{"/assets/", "/assets/none.js", "/assets/index.html", "/assets/../doc.go", "/index.html"} {
		if rec := ask("GET", path); rec.Code == http.StatusOK {
			t.Errorf("%s: %d, want it not to be there", path, rec.Code)
		}
	}
	if rec := ask("POST", "/"); rec.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST /: %d", rec.Code)
	}
}

func TestEveryFileIsGuarded(t *testing.T) {
	for _, f := range embedded() {
		path := "/assets/" + f.name
		if f.name == "index.html" {
			path = "/"
		}
		h := ask("GET", path).Header()
		for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer"} {
			if got := h.Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", path, name, got, want)
			}
		}
		csp := h.Get("Content-Security-Policy")
		for _, part := range []string{"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "trusted-types 'none'"} {
			if !strings.Contains(csp, part) {
				t.Errorf("%s: policy %q lacks %q", path, csp, part)
			}
		}
		if strings.Contains(csp, "unsafe") {
			t.Errorf("%s: policy %q", path, csp)
		}
	}
}

// The page reaches nothing but the listener that it came from, and nothing in it
// makes markup from text.
func TestSourcesAreSafe(t *testing.T) {
	elsewhere := regexp.MustCompile(`https?://[^\s"'<>]+`)
	inline := regexp.MustCompile(`(?i)<script(\s[^>]*)?>[^<]|<style|\sstyle=|\son[a-z]+=|javascript:`)
	markup := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|createContextualFragment|DOMParser`)
	for _, f := range embedded() {
		text := string(f.data)
		for _, url := range elsewhere.FindAllString(text, -1) {
			if url != "http://www.w3.org/2000/svg" {
				t.Errorf("%s names %s", f.name, url)
			}
		}
		if strings.HasSuffix(f.name, ".html") && inline.MatchString(text) {
			t.Errorf("%s has inline script or style: %q", f.name, inline.FindString(text))
		}
		if found := markup.FindString(text); found != "" {
			t.Errorf("%s uses %s", f.name, found)
		}
	}
}

// TestEveryAssetIsThere follows the names in the sources.
func TestEveryAssetIsThere(t *testing.T) {
	named := regexp.MustCompile(`(?:/assets/|from '\./)([a-z.]+)`)
	used := map[string]bool{"index.html": true}
	for _, f := range embedded() {
		for _, m := range named.FindAllStringSubmatch(string(f.data), -1) {
			used[m[1]] = true
			if _, err := fs.Stat(assets, "assets/"+m[1]); err != nil {
				t.Errorf("%s names %s: %v", f.name, m[1], err)
			}
		}
	}
	for _, f := range embedded() {
		if !used[f.name] {
			t.Errorf("%s is used by nothing", f.name)
		}
	}
}
