package gateway

import (
	"testing"

	"noisegate.example/api"
	"noisegate.example/gateway/auth"
	"noisegate.example/internal/fault"
)

// TestColumnsNeedNoPrice: columns are told without a price and for nothing, and what would be refused is refused.
func TestColumnsNeedNoPrice(t *testing.T) {
	r, who := newRig(t), principal(t, "ana")
	ask := func(sql string, rows bool) ([]api.Column, error) {
		return r.Columns(t.Context(), who, api.QueryRequest{Dataset: "d", SQL: sql}, rows)
	}
	columns, err := ask("SELECT count(*) AS n, avg(age) AS a FROM people", false)
	if err != nil || len(columns) != 2 || columns[0].Name != "n" || columns[0].Type != "bigint" || columns[0].Kind != "aggregate" ||
		columns[1].Type != "numeric" {
		t.Errorf("%+v, %v", columns, err)
	}
	if _, err := ask("SELECT age FROM people", false); fault.CodeOf(err) != fault.CodeNotAggregate {
		t.Errorf("rows: %v", err)
	}
	if columns, err := ask("SELECT age FROM people", true); err != nil || len(columns) != 1 || columns[0].Type != "integer" {
		t.Errorf("rows that are not shown: %+v, %v", columns, err)
	}
	for sql, code := range map[string]fault.Code{"": fault.CodeRequestMissingField, "SELECT nothing FROM people": fault.CodeUnknownColumn,
		"SELEKT": fault.CodeSyntax} {
		for _, rows := range []bool{false, true} {
			if _, err := ask(sql, rows); fault.CodeOf(err) != code {
				t.Errorf("%q: %v, want %s", sql, err, code)
			}
		}
	}
	eve, ok := auth.NewPrincipal("eve", []string{"steward"}, nil)
	if !ok {
		t.Fatal("no principal")
	}
	_, err = r.Columns(t.Context(), eve, api.QueryRequest{Dataset: "d", SQL: "SELECT count(*) FROM people"}, false)
	if fault.CodeOf(err) != fault.CodeBudgetNoAccount {
		t.Errorf("a stranger: %v", err)
	}
	if r.data.runs > 0 {
		t.Error("rows were read")
	}
}
