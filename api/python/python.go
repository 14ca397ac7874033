// Package python holds the client for Python, which the gateway serves with its documentation.
//
// It knows one file. It does not know what stands in it.
package python

import "embed"

//go:embed noisegate.py
var files embed.FS

// Client is the source of noisegate.py.
func Client() []byte {
	text, err := files.ReadFile("noisegate.py")
	if err != nil {
		panic(err) // it is embedded
	}
	return text
}
