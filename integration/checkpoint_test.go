package integration

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"noisegate.example/api"
)

// TestOldEditsAreFoundAfterAFastStart: a gateway starts from what it had verified, so that an edit of an old entry lets
// it start, and stops its answers once the look at the whole, which follows at once, has found it. A file that was
// written with another key is no reason to trust anything.
//
// covers: F13
func TestOldEditsAreFoundAfterAFastStart(t *testing.T) {
	t.Parallel()
	s := newStack(t, people(ampleBudget))
	ana := s.token(t, "ana", "analyst")
	for i := range 3 {
		s.receipt(t, ana, i)
	}
	restart := func() {
		t.Helper()
		s.stop(t)
		s.serve(t)
	}
	restart() // verifies three answers and writes them down
	verified := filepath.Join(s.dir, "anchor.json.verified")
	if text := read(t, verified); !strings.Contains(text, `"dataset":"people"`) {
		t.Fatal(text)
	}
	restart()
	s.receipt(t, ana, 4)

	s.stop(t)
	s.exec(t, control, `SET session_replication_role = replica; UPDATE noisegate.entry SET epsilon = 1 WHERE kind = 'settle'
		AND seq = (SELECT min(seq) FROM noisegate.entry WHERE kind = 'settle')`)
	s.serveUntil(t, "/healthz") // it may never be ready
	s.eventually(t, func() bool { return strings.Contains(s.log.String(), "a ledger is broken") })
	s.eventually(t, func() bool { return s.status("/readyz") == http.StatusServiceUnavailable })
	if p := refusal(t, api.NewClient(s.url, ana), question(10)); p.Status != http.StatusServiceUnavailable {
		t.Errorf("got %v", p)
	}

	// Without a checkpoint the whole is verified first.
	s.kill()
	write(t, verified, strings.Replace(read(t, verified), `"signature":"`, `"signature":"AAAA`, 1))
	said := strings.Count(s.log.String(), "a ledger is broken")
	s.serveUntil(t, "/healthz")
	s.eventually(t, func() bool {
		return strings.Contains(s.log.String(), "were not signed with this gateway's key") &&
			strings.Count(s.log.String(), "a ledger is broken") > said
	})
	if p := refusal(t, api.NewClient(s.url, ana), question(11)); p.Status != http.StatusServiceUnavailable {
		t.Errorf("got %v", p)
	}
}
