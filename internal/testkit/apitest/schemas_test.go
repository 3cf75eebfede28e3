package apitest

import (
	"strings"
	"testing"
)

func TestLoadRefusesPropertiesBesideAllOf(t *testing.T) {
	const head = "openapi: 3.1.0\ninfo: {title: t, version: '1'}\npaths: {}\ncomponents: {schemas: {A: "
	for schema, wrong := range map[string]bool{
		`{allOf: [{type: object}], properties: {a: {type: string}}}`:                                 true,
		`{oneOf: [{type: object}], properties: {a: {type: string}}}`:                                 true,
		`{anyOf: [{type: object}], required: [a]}`:                                                   true,
		`{type: object, properties: {b: {allOf: [{type: object}], properties: {}}}}`:                 true,
		`{type: array, items: {allOf: [{type: object}], properties: {}}}`:                            true,
		`{allOf: [{type: object, properties: {a: {type: string}}}], unevaluatedProperties: false}`:   false,
		`{type: object, properties: {b: {oneOf: [{type: string}, {type: integer}]}}, required: [b]}`: false,
	} {
		_, err := Load(head + schema + "}}")
		if wrong != (err != nil && strings.Contains(err.Error(), "beside")) || !wrong && err != nil {
			t.Errorf("%s: %v", schema, err)
		}
	}
}
