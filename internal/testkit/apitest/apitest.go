// Package apitest validates requests and answers of tests by the OpenAPI document.
package apitest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"
)

// Document is an OpenAPI document that exchanges are checked against. It may be
// used concurrently.
type Document struct {
	doc    *openapi3.T
	router routers.Router

	mu   sync.Mutex
	seen map[string]bool // "GET /path 200 code" that were checked
}

// Load reads the document and checks that it is one that client generators read whole.
func Load(yaml string) (*Document, error) {
	if err := checkSiblings(yaml); err != nil {
		return nil, err
	}
	doc, err := openapi3.NewLoader().LoadFromData([]byte(yaml))
	if err != nil {
		return nil, err
	}
	if err := doc.Validate(context.Background()); err != nil {
		return nil, err
	}
	doc.Servers = nil // tests listen anywhere
	router, err := legacy.NewRouter(doc)
	return &Document{doc: doc, router: router, seen: map[string]bool{}}, err
}

// Operations returns "METHOD /path" of every operation that has one of the tags.
func (d *Document) Operations(tags ...string) map[string]bool {
	found := map[string]bool{}
	for path, item := range d.doc.Paths.Map() {
		for method, op := range item.Operations() {
			for _, tag := range tags {
				if strings.Contains(" "+strings.Join(op.Tags, " ")+" ", " "+tag+" ") {
					found[method+" "+path] = true
				}
			}
		}
	}
	return found
}

// Codes returns the codes that a problem may have.
func (d *Document) Codes() map[string]bool {
	codes := map[string]bool{}
	for _, code := range d.doc.Components.Schemas["Problem"].Value.Properties["code"].Value.Enum {
		codes[fmt.Sprint(code)] = true
	}
	return codes
}

// Exchange is a request and its answer, both read whole.
type Exchange struct {
	Method, Target string // the target is path and query
	RequestHeader  http.Header
	RequestBody    string
	Status         int
	Header         http.Header
	Body           string
}

// Check returns how the exchange differs from the document. A request is held
// against it only if it was answered well: the others are wrong on purpose.
func (d *Document) Check(e Exchange) error {
	in, err := d.request(e)
	if err != nil || strings.Contains(e.Body, `"code":"unknown_path"`) { // whatever the router takes it for
		return d.checkOutside(e)
	}
	d.note(in.Request.Method, in.Route.Path, e.Status)
	return check(e, in)
}

// CheckAnswer is Check without the request, which may be wrong and be taken.
func (d *Document) CheckAnswer(e Exchange) error {
	in, err := d.request(e)
	if err != nil || strings.Contains(e.Body, `"code":"unknown_path"`) {
		return d.checkOutside(e)
	}
	return checkAnswer(e, in)
}

// CheckRequest returns how the request of the exchange differs from the document.
func (d *Document) CheckRequest(e Exchange) error {
	in, err := d.request(e)
	if err != nil {
		return err
	}
	return openapi3filter.ValidateRequest(context.Background(), in)
}

// request returns the input of the request's validation. The error tells that it is for
// no operation of the document.
func (d *Document) request(e Exchange) (*openapi3filter.RequestValidationInput, error) {
	method := e.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	target := strings.ReplaceAll(e.Target, "%2F", "_") // the router would split there
	req, err := http.NewRequest(method, "http://localhost"+target, strings.NewReader(e.RequestBody))
	if err != nil {
		return nil, err
	}
	req.Header = e.RequestHeader.Clone()
	if req.Header == nil {
		req.Header = http.Header{}
	}
	if e.RequestBody != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	route, params, err := d.router.FindRoute(req)
	if err != nil {
		return nil, err
	}
	return &openapi3filter.RequestValidationInput{Request: req, PathParams: params, Route: route, QueryParams: queryOf(req),
		Options: &openapi3filter.Options{IncludeResponseStatus: true, SkipSettingDefaults: true,
			AuthenticationFunc:  openapi3filter.NoopAuthenticationFunc,
			ExcludeResponseBody: e.Method == http.MethodHead || e.Header.Get("Content-Encoding") != ""}}, nil
}

func queryOf(req *http.Request) url.Values {
	q, _ := url.ParseQuery(req.URL.RawQuery) // what is left of a wrong one was refused
	return q
}

func check(e Exchange, in *openapi3filter.RequestValidationInput) error {
	if e.Status < 400 {
		if err := openapi3filter.ValidateRequest(context.Background(), in); err != nil {
			return fmt.Errorf("the request: %w", err)
		}
	}
	return checkAnswer(e, in)
}

func checkAnswer(e Exchange, in *openapi3filter.RequestValidationInput) error {
	out := &openapi3filter.ResponseValidationInput{RequestValidationInput: in, Status: e.Status, Header: e.Header,
		Body: io.NopCloser(strings.NewReader(e.Body)), Options: in.Options}
	if err := openapi3filter.ValidateResponse(context.Background(), out); err != nil {
		return fmt.Errorf("the answer %d: %w", e.Status, err)
	}
	return nil
}

// checkOutside checks the answer to a request for no path of the document, or by
// no method of one.
func (d *Document) checkOutside(e Exchange) error {
	if e.Status < 400 {
		return errors.New("answered well, but not in the document")
	}
	if e.Method == http.MethodHead {
		return nil
	}
	if got := e.Header.Get("Content-Type"); got != "application/problem+json" {
		return fmt.Errorf("the answer %d has the type %q", e.Status, got)
	}
	var problem any
	if err := json.Unmarshal([]byte(e.Body), &problem); err != nil {
		return fmt.Errorf("the answer %d: %w", e.Status, err)
	}
	if err := d.doc.Components.Schemas["Problem"].Value.VisitJSON(problem); err != nil {
		return fmt.Errorf("the answer %d: %w", e.Status, err)
	}
	return nil
}

func (d *Document) note(method, path string, status int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seen[fmt.Sprintf("%s %s %d", method, path, status)] = true
}

// Seen reports whether an exchange was checked that was answered by this status,
// as in Seen("GET /v1/profiles/{member}", 404).
func (d *Document) Seen(operation string, status int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.seen[fmt.Sprintf("%s %d", operation, status)]
}
