package profile

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// Defaults of [HTTPOptions].
const (
	DefaultMaxAnswer   = 4 << 20          // bytes
	DefaultMaxProfile  = 16 << 10         // bytes
	DefaultIdleTimeout = 90 * time.Second // of a kept connection
)

// HTTPOptions configure a profile service that is reached over HTTP.
type HTTPOptions struct {
	// URL accepts POST {"members":["…"]} and answers {"profiles":{"<member>":{…}}}, without unknown members.
	URL    string
	Header http.Header // sent with every request, such as Authorization
	// Current, if not nil, returns URL and header as they are now. It is called concurrently, its header not changed.
	Current     func() (url string, header http.Header)
	TLS         *tls.Config   // used for https. nil: the system's certificates.
	Timeout     time.Duration // bounds one request, its answer included. 0: [Options].CallTimeout alone bounds it.
	Connections int           // how many idle connections are kept, for IdleTimeout. 0: the defaults.
	IdleTimeout time.Duration
	// MaxAnswer and MaxProfile bound an answer and one profile in it, in bytes; the latter is 65,535 at most.
	MaxAnswer  int64
	MaxProfile int
}

// HTTP is a [Source] that loads profiles over HTTP.
type HTTP struct {
	opts   HTTPOptions
	client *http.Client
}

// NewHTTP returns a source. It opens no connection yet. Errors never contain the URL, which may hold a secret.
func NewHTTP(opts HTTPOptions) (*HTTP, error) {
	u, err := url.Parse(opts.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("profile URL: want http://host[:port]/path or https://…")
	}
	opts.MaxAnswer = cmp.Or(opts.MaxAnswer, DefaultMaxAnswer)
	opts.MaxProfile = cmp.Or(opts.MaxProfile, DefaultMaxProfile)
	opts.Header = withTypes(opts.Header)
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = opts.TLS
	transport.MaxIdleConnsPerHost = cmp.Or(opts.Connections, DefaultCalls)
	transport.IdleConnTimeout = cmp.Or(opts.IdleTimeout, DefaultIdleTimeout)
	return &HTTP{opts, &http.Client{Transport: transport, Timeout: opts.Timeout, CheckRedirect: noRedirect}}, nil
}

// noRedirect refuses redirects: they would turn the POST into a GET, or send the headers' secrets to another host.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// Close closes the idle connections.
func (h *HTTP) Close() { h.client.CloseIdleConnections() }

// Load implements [Source].
func (h *HTTP) Load(ctx context.Context, members []string, answers []Answer) error {
	req, err := h.request(ctx, members)
	if err != nil {
		return err
	}
	resp, err := h.client.Do(req)
	if err != nil {
		return fmt.Errorf("profile service: %w", withoutURL(err))
	}
	defer resp.Body.Close() // a body that was not read to its end closes the connection: it may have 200 MB left
	if resp.StatusCode != http.StatusOK {
		return bad(KindStatus, "HTTP %s", resp.Status)
	}
	if resp.ContentLength > h.opts.MaxAnswer {
		return bad(KindSize, "%d bytes, want at most %d", resp.ContentLength, h.opts.MaxAnswer)
	}
	body := &limitReader{resp.Body, h.opts.MaxAnswer}
	if err := decodeAnswer(body, members, answers, h.opts.MaxProfile); err != nil {
		return fmt.Errorf("profile service: %w", err)
	}
	return nil
}

func (h *HTTP) request(ctx context.Context, members []string) (*http.Request, error) {
	body, err := json.Marshal(struct {
		Members []string `json:"members"`
	}{members})
	if err != nil {
		return nil, err
	}
	url, header := h.opts.URL, h.opts.Header
	if h.opts.Current != nil {
		url, header = h.opts.Current()
		header = withTypes(header)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, errors.New("profile URL is not valid for a request")
	}
	req.Header = header // only read: the client copies what it adds
	return req, nil
}

// withTypes returns a copy of header with the content types of requests and answers.
func withTypes(header http.Header) http.Header {
	if header = header.Clone(); header == nil {
		header = make(http.Header)
	}
	header.Set("Content-Type", "application/json")
	header.Set("Accept", "application/json")
	return header
}

func withoutURL(err error) error {
	if urlErr, ok := errors.AsType[*url.Error](err); ok {
		return urlErr.Err
	}
	return err
}
