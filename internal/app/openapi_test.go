package app

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"rankcache/internal/testkit/apitest"
	"rankcache/sidecar"
)

// TestDocumentHasTheRoutes reads the patterns that the sources give to a mux:
// each is in openapi.yaml, and nothing else is but the data port's.
func TestDocumentHasTheRoutes(t *testing.T) {
	doc, err := apitest.Load(sidecar.OpenAPI())
	if err != nil {
		t.Fatal(err)
	}
	in := doc.Operations("admin", "health", "writer", "ledger", "live")
	routes := map[string]bool{}
	for _, dir := range []string{"../serve", "../cli", "../../sidecar/adminapi", "../../sidecar/rpc", "../../writer", "../../ledger/history", "../../ledger/reads"} {
		patternsIn(t, dir, routes)
	}
	if len(routes) < 15 {
		t.Fatalf("only %d patterns were found: %v", len(routes), routes)
	}
	for route := range routes {
		if !in[route] {
			t.Errorf("%s is served, but not in the document", route)
		}
	}
	for op := range in {
		if !routes[op] {
			t.Errorf("%s is in the document, but not served", op)
		}
	}
}

// patternsIn adds the patterns "METHOD /path" in the calls of Handle and
// HandleFunc of a folder.
func patternsIn(t *testing.T, dir string, to map[string]bool) {
	t.Helper()
	files, err := filepath.Glob(dir + "/*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(dir, err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") || strings.HasPrefix(filepath.Base(file), "bench_") {
			continue
		}
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && len(call.Args) == 2 {
				addPattern(call, to)
			}
			return true
		})
	}
}

func addPattern(call *ast.CallExpr, to map[string]bool) {
	name := ""
	switch fun := call.Fun.(type) {
	case *ast.SelectorExpr:
		name = fun.Sel.Name
	case *ast.Ident:
		name = fun.Name
	}
	text, isText := call.Args[0].(*ast.BasicLit)
	if !isText || name != "Handle" && name != "HandleFunc" && name != "handle" && name != "guarded" {
		return
	}
	pattern, err := strconv.Unquote(text.Value)
	if method, path, found := strings.Cut(pattern, " "); err == nil && found {
		to[method+" "+strings.TrimSuffix(path, "{$}")] = true
	}
}
