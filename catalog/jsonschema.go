package catalog

import _ "embed"

//go:embed policy.schema.json
var policySchema []byte

// JSONSchema describes policy files for editors, as JSON Schema 2020-12: names, types and ranges. What parts of a file
// must not contradict is left to [Parse] and [Check].
func JSONSchema() []byte { return policySchema }
