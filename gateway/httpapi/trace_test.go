package httpapi

import (
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestTracesAreNamedInTheLog: a line of the log names the trace that its request belongs to, where the request says so as W3C Trace Context
// has it, and nothing that a client writes otherwise.
func TestTracesAreNamedInTheLog(t *testing.T) {
	const trace, span = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	for parent, named := range map[string]bool{
		"00-" + trace + "-" + span + "-01":                                  true,
		"00-" + trace + "-" + span + "-00":                                  true, // not sampled elsewhere
		"cc-" + trace + "-" + span + "-01-what-comes-next":                  true, // a later version
		"00-" + trace + "-" + span + "-01-more":                             false,
		"cc-" + trace + "-" + span + "-01.more":                             false,
		"ff-" + trace + "-" + span + "-01":                                  false,
		"00-" + strings.Repeat("0", 32) + "-" + span + "-01":                false,
		"00-" + trace + "-" + strings.Repeat("0", 16) + "-01":               false,
		"00-" + strings.ToUpper(trace) + "-" + span + "-01":                 false,
		"00-" + trace + "-" + span:                                          false,
		"00-" + trace + "-" + span + "-01\nlevel=ERROR msg=forged":          false,
		"\"" + trace + "\"":                                                 false,
		"00-" + trace + "-" + span + "-01,00-" + trace + "-" + span + "-01": false,
		"": false,
	} {
		var log strings.Builder
		s := &server{log: slog.New(slog.NewTextHandler(&log, nil)), newRequestID: func() string { return "id" }}
		request := httptest.NewRequest("GET", "/healthz", nil)
		request.Header.Set("Traceparent", parent)
		s.router(routes()).ServeHTTP(httptest.NewRecorder(), request)
		if has := strings.Contains(log.String(), "trace_id="+trace+" parent_id="+span); has != named ||
			strings.Contains(log.String(), "trace_id") != named || strings.Count(log.String(), "\n") != 1 {
			t.Errorf("%q: named %v, want %v:\n%s", parent, has, named, log.String())
		}
	}
}
