package pgwire

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"noisegate.example/api"
	"noisegate.example/gateway/gatewaytest"
)

// A statement that asks for a model is charged once, by whichever protocol and at whichever door; its answer is one column of type json.
func TestModelsOverTheWire(t *testing.T) {
	d := opened(t, gatewaytest.Options{}, nil)
	conn := d.connect(t, priced, nil)
	if _, err := conn.Exec(t.Context(), "SET noisegate.delta = '1e-8'"); err != nil {
		t.Fatal(err)
	}
	const sql = "SELECT linregr(income, ARRAY[1, age]) AS m FROM people WHERE age > $1"
	before := d.Entries(t)
	described, err := conn.Prepare(t.Context(), "q", sql)
	if err != nil || len(described.Fields) != 1 || described.Fields[0].Name != "m" || described.Fields[0].DataTypeOID != pgtype.JSONOID {
		t.Fatalf("%+v, %v", described, err)
	}
	literal := strings.Replace(sql, "$1", "20", 1)
	plan := table(t, conn, "EXPLAIN "+literal)
	if !strings.Contains(fmt.Sprint(plan), "linear regression by moments: a pass over the rows of people") {
		t.Errorf("%v", plan)
	}
	if d.Entries(t) != before {
		t.Error("an estimate was charged")
	}
	var text string
	if err := conn.QueryRow(t.Context(), "q", 20).Scan(&text); err != nil {
		t.Fatal(err)
	}
	var model api.FitModel
	if err := json.Unmarshal([]byte(text), &model); err != nil || model.Model != "linear" || len(model.Coefficients) != 1 {
		t.Errorf("%s: %v", text, err)
	}
	once := d.Entries(t)
	if once == before {
		t.Error("it was not charged")
	}
	var again string
	if err := conn.QueryRow(t.Context(), literal+";", pgx.QueryExecModeSimpleProtocol).Scan(&again); err != nil || again != text {
		t.Errorf("%s, %v", again, err)
	}
	same := api.QueryRequest{Dataset: gatewaytest.Dataset, SQL: literal, Epsilon: "0.1", Delta: "1e-8"}
	over, err := d.overHTTP(t).Query(t.Context(), same, "")
	if err != nil || !over.Replayed || over.Rows[0][0].String() != text {
		t.Errorf("%+v, %v", over, err)
	}
	for sql, state := range map[string]string{
		"SELECT kmeans(ARRAY[age], 2) FROM people GROUP BY region": "42501",
		"SELECT linregr(secret, ARRAY[1, age]) FROM people":        "42703",
	} {
		var refused *pgconn.PgError
		if _, err := conn.Exec(t.Context(), sql); !errors.As(err, &refused) || refused.Code != state {
			t.Errorf("%s: %v", sql, err)
		}
		if _, err := conn.Prepare(t.Context(), "", sql); !errors.As(err, &refused) || refused.Code != state {
			t.Errorf("prepared, %s: %v", sql, err)
		}
	}
	if d.Entries(t) != once {
		t.Error("a replay or a refusal was charged")
	}
}
