package sidecar

import _ "embed"

// openAPI describes every path of all listeners.
//
//go:embed openapi.yaml
var openAPI string

// OpenAPI returns the HTTP reference as an OpenAPI 3.1 document in YAML.
func OpenAPI() string { return openAPI }
