package pgledger

import (
	"strings"
	"testing"
)

// Each property by itself makes a ledger unsafe (A87, I9); TestPostgres reads them from a server.
func TestSafety(t *testing.T) {
	safe := safety{fsync: true, fullPageWrites: true, synchronousCommit: "on"}
	if err := safe.refuse(); err != nil {
		t.Fatal(err)
	}
	for word, spoil := range map[string]func(*safety){
		"fsync=off":                      func(s *safety) { s.fsync = false },
		"full_page_writes=off":           func(s *safety) { s.fullPageWrites = false },
		"synchronous_commit is local":    func(s *safety) { s.synchronousCommit = "local" },
		"synchronous_commit is off":      func(s *safety) { s.synchronousCommit = "off" },
		"synchronous_commit is remote_w": func(s *safety) { s.synchronousCommit = "remote_write" },
		"standby":                        func(s *safety) { s.recovering = true },
		"change noisegate.entry":         func(s *safety) { s.rewrites = true },
		"delete":                         func(s *safety) { s.deletes = true },
		"triggers":                       func(s *safety) { s.unguarded = true },
	} {
		s := safe
		spoil(&s)
		if err := s.refuse(); err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%s: %v", word, err)
		}
	}
}
