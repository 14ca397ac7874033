package catalog

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"noisegate/internal/pgtest"
)

// shared is where the real data is; it belongs to the project's machines, not to its repository.
const shared = "../../shared"

func corpusPolicy(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(shared, "corpus", name+".policy.yaml"))
	if errors.Is(err, os.ErrNotExist) {
		t.Skip("../shared is absent")
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

const adultTable = `CREATE TABLE people (person_id int PRIMARY KEY, age int, workclass text, fnlwgt int, education text, education_num int,
	marital_status text, occupation text, relationship text, race text, sex text, capital_gain int, capital_loss int, hours_per_week int,
	native_country text, income text)`

// apply inspects a database and applies a policy, both as the gateway's roles.
func apply(t *testing.T, p *pgtest.ProtectedDatabase, store *Store, document string) (*Revision, bool, error) {
	t.Helper()
	policy, problems := Parse(document)
	if len(problems) > 0 {
		t.Fatal(errors.Join(problems...))
	}
	schema, err := Inspect(t.Context(), pgtest.PoolOf(t, p.ReaderDSN), policy)
	if err != nil {
		t.Fatal(err)
	}
	return store.Apply(t.Context(), Application{Policy: policy, Schema: schema, By: "stella", Replaces: AnyVersion})
}

func newStore(t *testing.T) *Store {
	t.Helper()
	return NewStore(pgtest.PoolOf(t, pgtest.Control(t).LedgerDSN))
}

// TestCorpusPolicies applies the policies of the real datasets to their real schemas, and loads them again.
func TestCorpusPolicies(t *testing.T) {
	for _, c := range []struct {
		name   string
		schema func(t *testing.T, p *pgtest.ProtectedDatabase)
		want   []string
	}{
		{"census", func(t *testing.T, p *pgtest.ProtectedDatabase) {
			p.Exec(t, adultTable)
		}, []string{"people.age integer [17, 90] step 1", "people.person_id hidden unit", "people.income keys <=50K >50K", "people.workclass private"}},
		{"pums", func(t *testing.T, p *pgtest.ProtectedDatabase) {
			for _, table := range []string{"pums", "pums_null"} {
				p.Exec(t, "CREATE TABLE "+table+" (age int, sex int, educ int, race int, income int, married int, pid int)")
			}
		}, []string{"pums.income integer [0, 500000] step 1", "pums_null.pid unit", "pums.sex keys 0 1"}},
		{"pagila", func(t *testing.T, p *pgtest.ProtectedDatabase) {
			p.LoadDump(t, filepath.Join(shared, "data/pagila/pagila-schema.sql.gz"))
			p.Exec(t, "SET session_replication_role = replica; INSERT INTO store VALUES (1, 1, 1), (10, 2, 1), (2, 3, 1);"+
				"INSERT INTO staff (staff_id, first_name, last_name, address_id, store_id, username) VALUES (7, 'a', 'b', 1, 1, 'c')")
		}, []string{"customer.store_id keys 1 2 10", "rental.staff_id keys 7", "payment.rental_id unit",
			"payment.amount numeric [0, 12] step 1/100", "payment.payment_date timestamp with time zone [1640995200000000, 1672444800000000]",
			"customer.create_date date [18993, 19358]", "film.fulltext hidden"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			document := corpusPolicy(t, c.name)
			p := pgtest.Protected(t)
			c.schema(t, p)
			p.Grant(t)
			store := newStore(t)
			applied, changed, err := apply(t, p, store, document)
			if err != nil || !changed || applied.Snapshot.Version != 1 {
				t.Fatalf("apply: %v, changed %v", err, changed)
			}
			loaded, err := store.Load(t.Context(), c.name)
			if err != nil {
				t.Fatal(err)
			}
			text := describe(loaded.Snapshot)
			if text != describe(applied.Snapshot) || loaded.Snapshot.Digest != applied.Snapshot.Digest {
				t.Errorf("loaded:\n%s\napplied:\n%s", text, describe(applied.Snapshot))
			}
			for _, line := range c.want {
				if !strings.Contains(text, line) {
					t.Errorf("the snapshot lacks %q:\n%s", line, text)
				}
			}
			if err := Recheck(t.Context(), pgtest.PoolOf(t, p.ReaderDSN), loaded); err != nil {
				t.Error(err, errors.Unwrap(err))
			}
			again, changed, err := apply(t, p, store, document)
			if err != nil || changed || again.Snapshot.Version != 1 {
				t.Errorf("applying again: version %d, changed %v, %v; want nothing to change", again.Snapshot.Version, changed, err)
			}
		})
	}
}

// describe writes a snapshot as text, one column a line.
func describe(s *Snapshot) string {
	var b strings.Builder
	for _, t := range s.Tables {
		kind := [...]string{"public", "row", "column", "path"}[t.Unit.Kind]
		fmt.Fprintf(&b, "%s.%s %s %s rows %d groups %d\n", t.Schema, t.Name, kind, t.Unit.ToTable, t.MaxRows, t.MaxGroups)
		for _, c := range t.Columns {
			fmt.Fprintf(&b, "  %s.%s", t.Name, c.Name)
			if !c.Exposed {
				b.WriteString(" hidden")
			}
			if t.Unit.Kind != NoUnit && t.Unit.Column == c.Name {
				b.WriteString(" unit")
			}
			if c.Bounds != nil {
				fmt.Fprintf(&b, " %s [%s, %s]", c.Type, c.Bounds.Lo.RatString(), c.Bounds.Hi.RatString())
				if c.Bounds.Step != nil {
					b.WriteString(" step " + c.Bounds.Step.RatString())
				}
			}
			if c.Domain != nil {
				b.WriteString(" keys")
			}
			for _, key := range c.Domain {
				b.WriteString(" " + key.Text)
				if key.Null {
					b.WriteString("null")
				}
			}
			if c.PrivateKeys {
				b.WriteString(" private")
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}
