package apitest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/getkin/kin-openapi/openapi3"
)

// Values are what parameters and members of bodies may be given, by their names; the first is used where others are
// tried. A parameter that is an object, such as the dimensions, has whole arguments, as in "zone=7". Names of the
// document alone have what their schemas allow.
type Values map[string][]string

// tooLarge is more than any listener reads as a body, in bytes.
const tooLarge = 2 << 20

// Generate returns requests for every operation that has one of the tags: each value and limit of each parameter, those
// just beyond, other kinds, none, twice, and of other names; bodies of the schema with each of their members left out
// and of each other kind, bodies that are none, and too large; the methods that a path does not have; paths that
// lead elsewhere. Only one thing is changed at a time.
func (d *Document) Generate(values Values, tags ...string) (made []Exchange) {
	for _, path := range slices.Sorted(maps.Keys(d.doc.Paths.Map())) {
		item, own := d.doc.Paths.Value(path), false
		for method, op := range item.Operations() {
			if slices.ContainsFunc(op.Tags, func(tag string) bool { return slices.Contains(tags, tag) }) {
				g := generator{values, path, method, slices.Concat(item.Parameters, op.Parameters), op, nil}
				g.operation()
				made, own = append(made, g.made...), true
			}
		}
		if own {
			made = append(made, elsewhere(values, path)...)
		}
	}
	slices.SortFunc(made, func(a, b Exchange) int { return strings.Compare(a.key(), b.key()) })
	return slices.CompactFunc(made, func(a, b Exchange) bool { return a.key() == b.key() })
}

func (e Exchange) key() string { return fmt.Sprint(e.Target, e.Method, e.RequestHeader, e.RequestBody) }

// elsewhere returns requests by every method, and for paths beside this one.
func elsewhere(values Values, path string) (made []Exchange) {
	g := generator{values: values, path: path}
	at := g.target(nil, nil)
	for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"} {
		if !ends(path) {
			made = append(made, Exchange{Method: method, Target: at})
		}
	}
	if ends(path) {
		return made
	}
	for _, other := range []string{"/" + at, at + "/", at + "/..", at + "//x", at + "/x", strings.Replace(at, "/", "/./", 1), at + "?" + "no_such=1", at + "?%zz", at + "?a=%ff;b"} {
		made = append(made, Exchange{Method: "GET", Target: other})
	}
	return made
}

// ends reports whether a request of the path would end the process, or wait for half a minute.
func ends(path string) bool {
	return path == "/quit" || strings.HasSuffix(path, "/pprof/profile") || strings.HasSuffix(path, "/pprof/trace")
}

// generator makes the requests of one operation.
type generator struct {
	values     Values
	path       string
	method     string
	parameters openapi3.Parameters
	op         *openapi3.Operation
	made       []Exchange
}

func (g *generator) operation() {
	if ends(g.path) {
		return
	}
	bodies := []string{""}
	if g.op.RequestBody != nil {
		bodies = g.bodies(g.op.RequestBody.Value.Content.Get("application/json").Schema.Value)
	}
	for _, body := range bodies {
		g.add(g.target(nil, nil), nil, body)
	}
	for _, p := range g.parameters {
		for _, v := range g.tries(p.Value) {
			if !p.Value.Schema.Value.Type.Is("object") || utf8.ValidString(v) && !strings.ContainsAny(v, "\x00 ") { // arguments as they are
				g.parameter(p.Value, v, bodies[0])
			}
		}
	}
}

func (g *generator) add(target string, header http.Header, body string) {
	g.made = append(g.made, Exchange{Method: g.method, Target: target, RequestHeader: header, RequestBody: body})
}

// parameter adds a request with this value, and one with it twice.
func (g *generator) parameter(p *openapi3.Parameter, value, body string) {
	switch p.In {
	case "path":
		g.add(g.target(map[string]string{p.Name: value}, nil), nil, body)
	case "header":
		if utf8.ValidString(value) && !strings.ContainsAny(value, "\x00\n") {
			g.add(g.target(nil, nil), http.Header{http.CanonicalHeaderKey(p.Name): {value}}, body)
		}
	default:
		argument := value
		if !p.Schema.Value.Type.Is("object") {
			argument = p.Name + "=" + url.QueryEscape(value)
		}
		g.add(g.target(nil, []string{argument}), nil, body)
		g.add(g.target(nil, []string{argument, argument}), nil, body)
	}
}

// target returns path and query: of each parameter of the path the value in changed, else the first one, and the first
// ones of those of the query that have to be there and are not in query.
func (g *generator) target(changed map[string]string, query []string) string {
	path := g.path
	for name, values := range g.values {
		if v, ok := changed[name]; ok {
			values = []string{v}
		}
		path = strings.ReplaceAll(path, "{"+name+"}", url.PathEscape(values[0]))
	}
	for name, v := range changed {
		path = strings.ReplaceAll(path, "{"+name+"}", url.PathEscape(v))
	}
	path = strings.NewReplacer("{", "", "}", "").Replace(path)
	if name := "dims"; len(query) == 0 && slices.ContainsFunc(g.parameters, func(p *openapi3.ParameterRef) bool { return p.Value.Name == name }) && g.values[name] != nil {
		query = append(query, g.values[name][0])
	}
	if len(query) > 0 {
		path += "?" + strings.Join(query, "&")
	}
	return path
}

// tries returns values of a parameter: those that it may have, its limits, and what is beyond.
func (g *generator) tries(p *openapi3.Parameter) []string {
	all := slices.Clone(g.values[p.Name])
	s := p.Schema.Value
	for _, v := range append(s.Enum, s.Default) {
		if v != nil {
			all = append(all, fmt.Sprint(v))
		}
	}
	for _, limit := range []*float64{s.Min, s.Max} {
		if limit != nil {
			all = append(all, fmt.Sprintf("%.0f", *limit), fmt.Sprintf("%.0f", *limit-1), fmt.Sprintf("%.0f", *limit+1))
		}
	}
	return append(all, "", "x", "0", "-1", "1.5", "1e3", "NaN", "99999999999999999999", "a b", "a/b", "..", "%", "\x00", "\xff", "é", strings.Repeat("y", 200))
}

// bodies returns bodies of a schema, the good ones first.
func (g *generator) bodies(s *openapi3.Schema) (all []string) {
	var wrong []string
	for _, form := range forms(s) {
		whole, _ := g.example(form, 0).(map[string]any)
		all = append(all, text(whole))
		for _, name := range slices.Sorted(maps.Keys(whole)) {
			for _, v := range append(g.alternatives(name), nil, true, -1, 1.5, 1e300, "", "x y", "\x00", strings.Repeat("z", 200), []any{}, map[string]any{}, []any{nil}) {
				other := maps.Clone(whole)
				other[name] = v
				wrong = append(wrong, text(other))
			}
			less := maps.Clone(whole)
			delete(less, name)
			wrong = append(wrong, text(less))
		}
		more := maps.Clone(whole)
		more["no_such"] = 1
		wrong = append(wrong, text(more))
	}
	wrong = append(wrong, "{", "null", "[]", `"x"`, "{}", `{"a":1}{`, "\xff", `{"a":1e999}`, strings.Repeat("[", 20_000), strings.Repeat(" ", tooLarge))
	return append(all, wrong...)
}

func (g *generator) alternatives(name string) (all []any) {
	for _, v := range g.values[name] {
		all = append(all, v)
	}
	return all
}

func text(v any) string {
	b, _ := json.Marshal(v) // of what has just been made
	return string(b)
}

// forms returns the alternatives of a schema.
func forms(s *openapi3.Schema) (all []*openapi3.Schema) {
	for _, of := range slices.Concat(s.OneOf, s.AnyOf) {
		all = append(all, forms(of.Value)...)
	}
	if all == nil {
		all = append(all, s)
	}
	return all
}

// maxDepth bounds examples of schemas that have themselves as members.
const maxDepth = 6

// example returns a value of a schema, with all members of an object.
func (g *generator) example(s *openapi3.Schema, depth int) any {
	if s = forms(s)[0]; depth > maxDepth {
		return nil
	}
	switch {
	case s.Const != nil:
		return s.Const
	case len(s.Enum) > 0:
		return s.Enum[0]
	case s.Example != nil:
		return s.Example
	case len(s.AllOf) > 0 || s.Type.Is("object") || s.Properties != nil:
		return g.object(s, depth)
	case slices.Contains(s.Type.Slice(), "array"):
		if s.Items == nil {
			return []any{}
		}
		return []any{g.example(s.Items.Value, depth+1)}
	case s.Type.Is("boolean"):
		return true
	case slices.Contains(s.Type.Slice(), "integer"), slices.Contains(s.Type.Slice(), "number"):
		if s.Min != nil {
			return max(*s.Min, 1)
		}
		return 1
	}
	return "x"
}

func (g *generator) object(s *openapi3.Schema, depth int) map[string]any {
	made := map[string]any{}
	for _, part := range s.AllOf {
		if more, ok := g.example(part.Value, depth+1).(map[string]any); ok {
			maps.Copy(made, more)
		}
	}
	for name, property := range s.Properties {
		made[name] = g.example(property.Value, depth+1)
		if given := g.values[name]; given != nil && !property.Value.Type.Is("array") && !property.Value.Type.Is("object") {
			made[name] = given[0]
		}
	}
	return made
}
