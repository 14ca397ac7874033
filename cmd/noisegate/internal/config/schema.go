package config

import (
	"strings"

	"noisegate.example/internal/pgversion"
)

// Schema is made of the list of settings, by which the file is read too.
func Schema() map[string]any {
	const each = "*" // stands for the name of a dataset
	config := New()
	config.Datasets[each] = NewDataset()
	root := object()
	for _, s := range config.settings() {
		at, parts := root, strings.Split(s.key, ".")
		for i, part := range parts[:len(parts)-1] {
			if i > 0 && parts[i-1] == "datasets" {
				if at["additionalProperties"] == false {
					at["additionalProperties"] = object()
				}
				at = at["additionalProperties"].(map[string]any)
				continue
			}
			at = child(at, part)
		}
		properties(at)[parts[len(parts)-1]] = typeOf(s)
	}
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["$id"] = "urn:noisegate:schema:config"
	root["title"] = "Noisegate configuration"
	return root
}

func object() map[string]any {
	return map[string]any{"type": "object", "properties": map[string]any{}, "additionalProperties": false}
}

func properties(o map[string]any) map[string]any { return o["properties"].(map[string]any) }

func child(o map[string]any, name string) map[string]any {
	if properties(o)[name] == nil {
		properties(o)[name] = object()
	}
	return properties(o)[name].(map[string]any)
}

// typeOf finds what a setting takes by what it refuses.
func typeOf(s setting) map[string]any {
	switch {
	case s.set("x") == nil:
		return map[string]any{"type": "string"}
	case s.set("true") == nil:
		return map[string]any{"type": "boolean"}
	case s.set("30s") == nil:
		return map[string]any{"type": "string", "pattern": `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`}
	case s.set("7") == nil:
		return map[string]any{"type": "integer"}
	default:
		return map[string]any{"enum": []pgversion.Policy{pgversion.OnlyTested, pgversion.AllowUntested}}
	}
}
