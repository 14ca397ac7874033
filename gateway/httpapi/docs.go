package httpapi

import (
	"bytes"
	"net/http"
	"path"
	"time"

	"noisegate.example/docs"
	"noisegate.example/internal/fault"
)

// docsRoutes serve the documentation, which holds nothing secret: people read it before they have a token.
func docsRoutes() (all []route) {
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		all = append(all,
			route{method: method, pattern: docs.Root, public: true, handle: getPage},
			route{method: method, pattern: docs.Root + "/api", public: true, handle: getOpenAPI},
			route{method: method, pattern: docs.Root + "/{page}", public: true, handle: getPage},
			route{method: method, pattern: docs.Root + "/{folder}/{page}", public: true, handle: getPage})
	}
	return all
}

// getPage answers a page. Pages may be kept, unlike answers; they load their style and pictures from here, and nothing else.
func getPage(_ *server, x *exchange) error {
	file, ok := docs.Find(path.Join(x.r.PathValue("folder"), x.r.PathValue("page")))
	if !ok {
		return fault.RequestNotFound("such page")
	}
	x.file(file.Kind, file.ETag,
		"default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'", file.Body)
	return nil
}

// file sends a file of the program's own, or that the reader's copy is the last one.
func (x *exchange) file(kind, tag, policy string, content []byte) {
	h := x.w.Header()
	h.Set("Content-Type", kind)
	h.Set("ETag", tag)
	h.Set("Cache-Control", "no-cache") // ask whether it changed
	h.Set("Content-Security-Policy", policy)
	_ = http.NewResponseController(x.w).SetWriteDeadline(time.Now().Add(writeTimeout))
	http.ServeContent(x.w, x.r, "", time.Time{}, bytes.NewReader(content))
}
