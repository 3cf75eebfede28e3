package run

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"

	"rankcache/internal/cli"
	"rankcache/internal/httpserve"
	"rankcache/writer"
)

// writeTokens decides what a post may change: with the write token every board, with a
// class token the boards of its classes. Members are forgotten with [writer.ForgetRight] alone. Its methods may be called concurrently.
type writeTokens struct {
	all, byClass *cli.Secret
	log          *slog.Logger

	mu      sync.Mutex // guards the next two; the file of byClass is read under it
	content string
	tokens  []classToken // of the last content that could be read
}

// classToken is a token and the classes that it is for.
type classToken struct {
	token   string
	classes []string
}

// check returns an error that names the first bad line, without its token.
func (t *writeTokens) check() error {
	_, err := parseClassTokens(t.byClass.Get())
	if err != nil {
		return cli.Usagef("--%s: %w", t.byClass.Flag.Name, err)
	}
	return nil
}

// require lets the requests pass that have a token; without any tokens, all requests.
func (t *writeTokens) require(next http.Handler) http.Handler {
	if t.all.Get() == "" && t.byClass.Get() == "" {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, c := range t.current() {
			if httpserve.HasToken(r, c.token) {
				next.ServeHTTP(w, r.WithContext(writer.AllowClasses(r.Context(), c.classes)))
				return
			}
		}
		allowed := next
		if r.URL.Path == writer.ForgetPath { // a right of its own
			allowed = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				next.ServeHTTP(w, r.WithContext(writer.AllowClasses(r.Context(), nil)))
			})
		}
		httpserve.RequireToken("the write token", t.all.Get(), allowed).ServeHTTP(w, r)
	})
}

// current returns the class tokens in force: those of before if the file has a bad line.
func (t *writeTokens) current() []classToken {
	t.mu.Lock()
	defer t.mu.Unlock()
	content := t.byClass.Get()
	if content == t.content {
		return t.tokens
	}
	t.content = content
	tokens, err := parseClassTokens(content)
	if err != nil {
		t.log.Error("class tokens can't be used, the last ones stay in force", "err", err)
		return t.tokens
	}
	t.tokens = tokens
	return tokens
}

// parseClassTokens reads lines of a token, a space, and classes separated by commas.
func parseClassTokens(content string) (tokens []classToken, err error) {
	lineOf := map[string]int{}
	for i, line := range strings.Split(content, "\n") {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		if len(fields) != 2 {
			return nil, fmt.Errorf("line %d: want a token, a space, and classes separated by commas", i+1)
		}
		if before, again := lineOf[fields[0]]; again {
			return nil, fmt.Errorf("line %d: its token is that of line %d", i+1, before)
		}
		lineOf[fields[0]] = i + 1
		tokens = append(tokens, classToken{fields[0], strings.Split(fields[1], ",")})
	}
	if content != "" && len(tokens) == 0 {
		return nil, errors.New("there is no token in it")
	}
	return tokens, nil
}
