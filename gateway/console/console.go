// Package console holds the console: the page in a browser where people ask, and see what they have. Its sources are in this directory;
// make console builds dist from them, which is what is served.
//
// It knows the built files. It does not know who serves them, nor what they ask of a gateway.
package console

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path"
	"sync"
)

//go:embed dist
var files embed.FS

// Root is where the files of the page are served; the page itself is at /.
const Root = "/console"

// Policy is the Content-Security-Policy of the page. Scripts and styles come from the gateway alone and none stands in the page, requests
// go nowhere else, and no text can become HTML or script: the page has no policy of trusted types that could make it so.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; " +
	"form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// File is what one address answers.
type File struct {
	Kind string // a media type
	Body []byte
	Gzip []byte // the same, compressed
	ETag string // of Body, quoted; that of Gzip is another, see [File.GzipETag]
}

// GzipETag is the entity tag of the compressed file.
func (f File) GzipETag() string { return f.ETag[:len(f.ETag)-1] + `-gzip"` }

// Find is the file of a name behind [Root]; "" is the page. Files are compressed once, when the first one is asked for.
func Find(name string) (File, bool) {
	file, ok := built()[name]
	return file, ok
}

// built are all files by name.
var built = sync.OnceValue(func() map[string]File {
	kinds := map[string]string{".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8",
		".css": "text/css; charset=utf-8", ".svg": "image/svg+xml", ".txt": "text/plain; charset=utf-8"}
	all := map[string]File{}
	_ = fs.WalkDir(files, "dist", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		kind := kinds[path.Ext(name)]
		if kind == "" {
			panic(fmt.Sprintf("console: %s has no media type", name)) // a test asks for every file
		}
		sum := sha256.Sum256(content)
		all[path.Base(name)] = File{Kind: kind, Body: content, Gzip: compressed(content), ETag: `"` + hex.EncodeToString(sum[:16]) + `"`}
		return nil
	}) // embedded files can be read
	all[""] = all["index.html"]
	return all
})

func compressed(content []byte) []byte {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err == nil {
		_, err = w.Write(content)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		panic(fmt.Sprintf("console: %v", err)) // the level is one, and a buffer takes everything
	}
	return b.Bytes()
}
