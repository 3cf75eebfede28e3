package apitest

import (
	"fmt"
	"path"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"go.yaml.in/yaml/v3"
)

// checkSiblings returns an error for the first schema that has properties beside
// allOf, oneOf or anyOf: client generators drop one of the two.
func checkSiblings(document string) error {
	var root yaml.Node
	if err := yaml.Unmarshal([]byte(document), &root); err != nil {
		return err
	}
	return siblingsIn(&root)
}

func siblingsIn(n *yaml.Node) error {
	keys := map[string]bool{}
	for i := 0; n.Kind == yaml.MappingNode && i < len(n.Content); i += 2 {
		keys[n.Content[i].Value] = true
	}
	for _, of := range []string{"allOf", "oneOf", "anyOf"} {
		if keys[of] && (keys["properties"] || keys["required"]) {
			return fmt.Errorf("line %d: properties or required beside %s: move them into a member of it", n.Line, of)
		}
	}
	for _, child := range n.Content {
		if err := siblingsIn(child); err != nil {
			return err
		}
	}
	return nil
}

// init teaches the validator the formats that the document explains, and streams of events.
func init() {
	openapi3filter.RegisterBodyDecoder("text/event-stream", openapi3filter.PlainBodyDecoder)
	for _, limit := range []int{64, 128} {
		define(fmt.Sprintf("utf8-%d", limit), func(s string) error {
			if len(s) > limit {
				return fmt.Errorf("%d bytes, want at most %d", len(s), limit)
			}
			return nil
		})
	}
	define("glob", func(s string) error {
		_, err := path.Match(s, "")
		return err
	})
}

func define(format string, check func(string) error) {
	openapi3.DefineStringFormatValidator(format, openapi3.NewCallbackValidator(check))
}
