package httpapi

import (
	"net/http"
	"strings"

	"noisegate.example/api"
	"noisegate.example/gateway/auth"
	"noisegate.example/gateway/console"
	"noisegate.example/internal/fault"
)

// consoleRoutes serve the console, which holds nothing secret, and what it alone asks for.
func consoleRoutes() []route {
	all := []route{
		{method: http.MethodGet, pattern: "/v1/principal", roles: []auth.Role{auth.Analyst, auth.Steward, auth.ML, auth.Collector},
			handle: operation(nothing, (*server).principal, asJSON)},
	}
	all = append(all, loginRoutes()...)
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		all = append(all,
			route{method: method, pattern: "/", public: true, handle: getConsole},
			route{method: method, pattern: console.Root + "/{file}", public: true, handle: getConsole})
	}
	return all
}

// getConsole answers a file of the console, compressed where the client takes that.
func getConsole(_ *server, x *exchange) error {
	file, ok := console.Find(x.r.PathValue("file"))
	if !ok {
		return fault.RequestNotFound("such file")
	}
	x.w.Header().Set("Vary", "Accept-Encoding")
	body, tag := file.Body, file.ETag
	if takesGzip(x.r.Header) {
		x.w.Header().Set("Content-Encoding", "gzip")
		body, tag = file.Gzip, file.GzipETag()
	}
	x.file(file.Kind, tag, console.Policy, body)
	return nil
}

// takesGzip reads Accept-Encoding: whether gzip is named, and not at quality 0.
func takesGzip(h http.Header) bool {
	for coding := range strings.SplitSeq(strings.Join(h.Values("Accept-Encoding"), ","), ",") {
		name, quality, _ := strings.Cut(strings.ReplaceAll(coding, " ", ""), ";")
		if strings.EqualFold(name, "gzip") {
			return strings.Trim(strings.TrimPrefix(strings.ToLower(quality), "q="), "0.") != "" || quality == ""
		}
	}
	return false
}

// principal says who the token is of.
func (s *server) principal(x *exchange, _ struct{}) (*api.Principal, error) {
	who := &api.Principal{Subject: x.who.Subject, Roles: []string{}, Groups: x.who.Groups}
	for _, role := range x.who.Roles {
		who.Roles = append(who.Roles, string(role))
	}
	if who.Groups == nil {
		who.Groups = []string{}
	}
	return who, nil
}
