package api

import (
	"bytes"
	_ "embed"
)

//go:embed openapi.json
var openAPI []byte

// OpenAPI is the OpenAPI 3.1 description of the HTTP interface, as JSON.
func OpenAPI() []byte { return bytes.Clone(openAPI) }
