package httpapi

import (
	"io"
	"slices"
	"strings"
	"testing"

	"noisegate.example/api"
	"noisegate.example/gateway/gatewaytest"
	"noisegate.example/internal/fault"
)

// TestVerifyOverHTTP: a steward has the ledger read again, which an entry that somebody changed breaks. Afterwards too it is verified,
// listed and exported: it is evidence.
func TestVerifyOverHTTP(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	sam := f.client("sam:steward")
	if _, err := f.client("ana:analyst").Query(t.Context(), api.QueryRequest{Dataset: gatewaytest.Dataset, Epsilon: "1",
		SQL: "SELECT count(*) FROM people"}, ""); err != nil {
		t.Fatal(err)
	}
	got, err := sam.Verify(t.Context(), gatewaytest.Dataset)
	if err != nil || got.Entries == 0 || got.Seq == 0 || len(got.Hash) != 64 || got.Dataset != gatewaytest.Dataset || got.Unchained != 0 {
		t.Fatalf("%+v, %v", got, err)
	}
	page, err := sam.Audit(t.Context(), gatewaytest.Dataset, "")
	if err != nil || page.Heads[0] != got.ChainHead {
		t.Errorf("%+v, %v, verified %+v", page.Heads, err, got.ChainHead)
	}
	if _, err := sam.Verify(t.Context(), "payroll"); codeOfError(err) != fault.CodeUnknownDataset {
		t.Errorf("another dataset: %v", err)
	}
	f.Control.Exec(t, "UPDATE noisegate.account SET used_epsilon = used_epsilon - 1 WHERE used_epsilon > 0")
	for range 2 {
		if got, err := sam.Verify(t.Context(), gatewaytest.Dataset); err != nil || !strings.Contains(got.Broken, "is broken") {
			t.Errorf("%+v, %v, want that it is broken", got, err)
		}
		if broken, err := sam.Audit(t.Context(), gatewaytest.Dataset, ""); err != nil || !slices.Equal(broken.Heads, page.Heads) {
			t.Errorf("%+v, %v, want the heads of before", broken, err)
		}
		export, err := sam.Export(t.Context(), gatewaytest.Dataset)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(export)
		if export.Close(); err != nil || !strings.Contains(string(text), page.Heads[0].Hash) {
			t.Errorf("the export is %.200s, %v", text, err)
		}
	}
}
