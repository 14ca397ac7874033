package archtest

import (
	"encoding/json"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"noisegate.example/internal/testfiles"
)

// goldenCopies are the files that hold records of golden/accounting.json, each in the package whose tests read them.
func goldenCopies() []string {
	return []string{"mechanisms/testdata/*.json", "mechanisms/local/testdata/*.json", "budget/accounting/testdata/*.json",
		"budget/budgettest/*.json", "internal/stattest/testdata/*.json"}
}

// notOurs are the families that no test reads, and why.
func notOurs() map[string]string {
	return map[string]string{
		"quantile_exponential": "quantiles are chosen from the column's public grid (quantile_exponential_grid), never from real intervals",
		"select_base2_exponential": "the exact exponential mechanism is fast enough; a second one with base 2, whose ε is a multiple of ln 2, " +
			"has no use",
	}
}

type goldenRecord struct {
	ID, Family      string
	Inputs, Outputs map[string]any
	RelTol          *float64 `json:"rel_tol"`
}

func readGolden(t *testing.T, name string) []goldenRecord {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var records []goldenRecord
	if json.Unmarshal(text, &records) != nil {
		return nil // not a list of records
	}
	return records
}

// TestEveryGoldenRecordIsRead holds the copies against ../shared/golden/accounting.json: every record is in one of them, unchanged, and
// a test of that package names its family; or its family is in notOurs.
func TestEveryGoldenRecordIsRead(t *testing.T) {
	text, err := os.ReadFile(testfiles.Fetched(t, "golden/accounting.json"))
	if err != nil {
		t.Fatal(err)
	}
	var shared struct{ Records []goldenRecord }
	if err := json.Unmarshal(text, &shared); err != nil {
		t.Fatal(err)
	}
	tree, err := Load(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	copied := map[string]goldenRecord{}
	home := map[string][]string{}
	for _, pattern := range goldenCopies() {
		files, err := filepath.Glob(filepath.Join("../..", pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: no such files (%v)", pattern, err)
		}
		for _, name := range files {
			dir := strings.TrimSuffix(path.Dir(filepath.ToSlash(strings.TrimPrefix(name, "../../"))), "/testdata")
			for _, r := range readGolden(t, name) {
				copied[r.ID] = r
				home[r.ID] = append(home[r.ID], dir)
			}
		}
	}
	read, left := 0, 0
	for _, want := range shared.Records {
		got, isCopied := copied[want.ID]
		why := notOurs()[want.Family]
		switch {
		case why != "" && namesFamily(tree, home[want.ID], want.Family):
			t.Errorf("%s is read, and not ours: %s", want.ID, why)
		case why != "":
			left++
		case isCopied && !sameRecord(got, want):
			t.Errorf("the copy of %s differs", want.ID)
		case isCopied && !namesFamily(tree, home[want.ID], want.Family):
			t.Errorf("no file of %v names the family of %s", home[want.ID], want.ID)
		case isCopied:
			read++
		default:
			t.Errorf("nobody reads %s", want.ID)
		}
	}
	t.Logf("%d records: %d read, %d of families that are not ours", len(shared.Records), read, left)
}

// sameRecord compares what a copy has kept; a copy of one family may leave its name to the file.
func sameRecord(got, want goldenRecord) bool {
	return (got.Family == want.Family || got.Family == "") && reflect.DeepEqual(got.Inputs, want.Inputs) &&
		(got.Outputs == nil || reflect.DeepEqual(got.Outputs, want.Outputs)) &&
		(got.RelTol == nil || reflect.DeepEqual(got.RelTol, want.RelTol))
}

// namesFamily reports whether a test in one of the directories names the family, in quotes or as the name of the file that it embeds.
func namesFamily(t *Tree, dirs []string, family string) bool {
	for _, dir := range dirs {
		for _, f := range byDir(t.Files)[dir] {
			if strings.Contains(f.Text, `"`+family+`"`) || strings.Contains(f.Text, family+".json") {
				return true
			}
		}
	}
	return false
}
