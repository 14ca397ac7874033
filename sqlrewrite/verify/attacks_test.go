package verify

import (
	"math/big"
	"regexp"
	"strings"
	"testing"
)

// The very statements that version 7c2e952 sent for attacks on one bit about one person (testdata/attacks.jsonl) are refused: by what is
// wrong with them, and not for their age, as ONLY is put where today's statements have it.
//
// covers: B1 B2 B3 B4 B5 C1
func TestStatementsOf7c2e952AreRefused(t *testing.T) {
	plain := regexp.MustCompile(`(FROM|JOIN) ("public"\.)`)
	why := map[string]string{
		"B1": "width_bucket", "B2": "interval", "B3": "calendar", "B4": "rows that one row meets", "C1": "rows that one row meets",
		"B5": "",
	}
	seen := map[string]int{}
	for _, c := range read(t, "testdata/attacks.jsonl") {
		seen[c.id]++
		if c.id == "B4" || c.id == "C1" {
			c.claim.PairsPerRow = big.NewInt(1_000_000)
		}
		for _, sql := range []string{c.SQL, plain.ReplaceAllString(c.SQL, "$1 ONLY $2")} {
			err := Statement(sql, c.Args, c.on, c.claim)
			if err == nil || sql != c.SQL && !strings.Contains(err.Error(), why[c.id]) {
				t.Errorf("%s: %v\n%s\n%v", c.id, err, sql, c.Args)
			}
			if sql != c.SQL {
				t.Logf("%s: %v", c.id, err)
			}
		}
	}
	for id := range why {
		if seen[id] == 0 {
			t.Errorf("no statement of %s", id)
		}
	}
}
