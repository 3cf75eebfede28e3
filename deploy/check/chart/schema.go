package main

import (
	"encoding/json"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// schemaOf returns a JSON schema of values.yaml, by which Helm refuses a value whose name or type it does not have.
func schemaOf(values string) (string, error) {
	var root any
	if err := yaml.Unmarshal([]byte(values), &root); err != nil {
		return "", err
	}
	schema := objectSchema(root.(map[string]any))
	schema["$schema"] = "http://json-schema.org/draft-07/schema#"
	schema["properties"].(map[string]any)["global"] = map[string]any{"type": "object"} // Helm's own, of a chart that contains this one
	text, err := json.MarshalIndent(schema, "", "  ")
	return string(text) + "\n", err
}

func objectSchema(values map[string]any) map[string]any {
	properties := map[string]any{}
	for name, value := range values {
		properties[name] = valueSchema(name, value)
	}
	return map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
}

func valueSchema(name string, value any) map[string]any {
	switch v := value.(type) {
	case map[string]any:
		if name == "resources" || name == "strategy" || len(v) == 0 {
			return map[string]any{"type": "object"} // Kubernetes's
		}
		return objectSchema(v)
	case []any:
		return map[string]any{"type": "array", "items": map[string]any{"type": "object"}} // Kubernetes's, too
	case bool:
		return map[string]any{"type": "boolean"}
	case int:
		return map[string]any{"type": "integer", "minimum": 0}
	}
	switch name {
	case "rooms":
		return map[string]any{"type": "string", "pattern": roomsPattern}
	case "redisRole":
		return map[string]any{"type": "string", "enum": []string{"master", "replica"}}
	}
	return map[string]any{"type": "string"}
}

// roomsPattern: the rooms are text, of which a schema sees lines only. One that begins at the margin begins one of the three lists.
const roomsPattern = `^(([ \t#-].*|(rooms|boards|classes):.*|---)?\r?(\n|$))*$`
