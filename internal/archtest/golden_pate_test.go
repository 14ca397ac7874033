package archtest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"noisegate.example/internal/testfiles"
)

// pateRecord is a record of golden/pate.json; unlike those of accounting.json it has a section instead of a family.
type pateRecord struct {
	ID, Section, Function, Source, Note string
	Inputs, Output                      map[string]any
}

// pateNotOurs are the records that no test reads, and why.
func pateNotOurs() map[string]string {
	return map[string]string{
		"lnmax/mnist/smoothed_sens_2017": "the record's own note: the reference prints it, and it is no smooth sensitivity (one direction only)",
	}
}

// TestEveryPATERecordIsRead holds the copies in pate/testdata against ../shared/golden/pate.json: every record is there, unchanged, and a
// test of the package names its section and the beginning of its id; or it is in pateNotOurs.
func TestEveryPATERecordIsRead(t *testing.T) {
	text, err := os.ReadFile(testfiles.Fetched(t, "golden/pate.json"))
	if err != nil {
		t.Fatal(err)
	}
	var shared struct{ Records []pateRecord }
	if err := json.Unmarshal(text, &shared); err != nil {
		t.Fatal(err)
	}
	copied := map[string]pateRecord{}
	files, err := filepath.Glob("../../pate/testdata/golden_*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no copies (%v)", err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var records []pateRecord
		if err := json.Unmarshal(text, &records); err != nil {
			t.Fatal(err)
		}
		for _, r := range records {
			copied[r.ID] = r
		}
	}
	tests := ""
	tree, err := Load(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range byDir(tree.Files)["pate"] {
		if f.Test {
			tests += f.Text
		}
	}
	read := 0
	for _, want := range shared.Records {
		switch got, isCopied := copied[want.ID]; {
		case pateNotOurs()[want.ID] != "":
		case !isCopied:
			t.Errorf("nobody reads %s", want.ID)
		case !reflect.DeepEqual(got, want):
			t.Errorf("the copy of %s differs", want.ID)
		case !namesRecord(tests, want):
			t.Errorf("no test of package pate runs over %s", want.ID)
		default:
			read++
		}
	}
	t.Logf("%d records: %d read, %d not ours", len(shared.Records), read, len(pateNotOurs()))
}

// namesRecord reports whether a test runs over the records of a section that begin as this one does.
func namesRecord(tests string, r pateRecord) bool {
	for end := len(r.ID); end > 0; end-- {
		if strings.Contains(tests, `golden(t, "`+r.Section+`", "`+r.ID[:end]+`"`) {
			return true
		}
	}
	return false
}
