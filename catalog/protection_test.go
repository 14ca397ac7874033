package catalog

import (
	"errors"
	"strings"
	"testing"

	"noisegate.example/internal/fault"
	"noisegate.example/internal/pgtest"
)

// Rows that were protected once do not become public under another table's name: a partition's, the whole's, an heir's, or the new name of
// the table itself. A neighbour in the same whole is nobody's secret, and a database that was restored is known by names.
//
// covers: A76
func TestProtectedRowsStayProtected(t *testing.T) {
	const parted = `CREATE TABLE stays (person_id int NOT NULL, at int NOT NULL, ward text) PARTITION BY RANGE (at);
		CREATE TABLE stays_1 PARTITION OF stays FOR VALUES FROM (0) TO (10) PARTITION BY RANGE (at);
		CREATE TABLE stays_11 PARTITION OF stays_1 FOR VALUES FROM (0) TO (5);
		CREATE TABLE stays_2 PARTITION OF stays FOR VALUES FROM (10) TO (20)`
	const plain = "CREATE TABLE stays (person_id int NOT NULL, ward text)"
	for name, c := range map[string]struct {
		ddl, protected string
		then           string // what the owner of the database does next
		public         string // table of the next version
		shows          string // the protected table that the refusal names; "": it is taken
	}{
		"partition":             {ddl: parted, protected: "stays", public: "stays_1", shows: `shows rows of "stays"`},
		"partition of one":      {ddl: parted, protected: "stays", public: "stays_11", shows: `shows rows of "stays"`},
		"whole":                 {ddl: parted, protected: "stays_1", public: "stays", shows: `shows rows of "stays_1"`},
		"whole of one":          {ddl: parted, protected: "stays_11", public: "stays", shows: `shows rows of "stays_11"`},
		"neighbour":             {ddl: parted, protected: "stays_1", public: "stays_2"},
		"itself":                {ddl: parted, protected: "stays", public: "stays", shows: `table "stays" was protected`},
		"part of the partition": {ddl: parted, protected: "stays_1", public: "stays_11", shows: `shows rows of "stays_1"`},
		"renamed": {ddl: plain, protected: "stays", then: "ALTER TABLE stays RENAME TO log", public: "log",
			shows: `shows rows of "stays"`},
		"renamed, another in its place": {ddl: plain, protected: "stays", then: "ALTER TABLE stays RENAME TO log; " + plain, public: "log",
			shows: `shows rows of "stays"`},
		"made again": {ddl: plain, protected: "stays", then: "DROP TABLE stays; " + plain, public: "stays", shows: `table "stays" was protected`},
		"restored, a partition": {ddl: parted, protected: "stays", then: "DROP TABLE stays; " + parted, public: "stays_1",
			shows: `shows rows of "stays"`},
		"restored, the whole": {ddl: parted, protected: "stays_1", then: "DROP TABLE stays; " + parted, public: "stays",
			shows: `shows rows of "stays_1"`},
		"heir":          {ddl: plain, protected: "stays", then: "CREATE TABLE log () INHERITS (stays)", public: "log", shows: `shows rows of "stays"`},
		"another table": {ddl: plain, protected: "stays", then: "CREATE TABLE log AS TABLE stays", public: "log"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, store := small(t), newStore(t)
			with := func(line string) string { return strings.Replace(smallPolicy, "  regions:", line+"  regions:", 1) }
			p.Exec(t, c.ddl)
			p.Grant(t)
			for _, document := range []string{with("  " + c.protected + ": {unit: {column: person_id}}\n"), smallPolicy} {
				if _, _, err := apply(t, p, store, document); err != nil {
					t.Fatal(err)
				}
			}
			if c.then != "" {
				p.Exec(t, c.then)
				p.Grant(t)
			}
			document := with("  " + c.public + ": {public: true}\n")
			policy, problems := Parse(document)
			if len(problems) > 0 {
				t.Fatal(errors.Join(problems...))
			}
			schema, err := Inspect(t.Context(), pgtest.PoolOf(t, p.ReaderDSN), policy)
			if err != nil {
				t.Fatal(err)
			}
			_, review := store.Review(t.Context(), policy, schema)
			_, changed, err := apply(t, p, store, document)
			for what, err := range map[string]error{"review": review, "apply": err} {
				if c.shows == "" && err != nil ||
					c.shows != "" && (fault.CodeOf(err) != fault.CodePolicyInvalid || !strings.Contains(err.Error(), c.shows)) {
					t.Errorf("%s: %v", what, err)
				}
			}
			if changed != (c.shows == "") {
				t.Errorf("changed: %v", changed)
			}
		})
	}
}

// A stored version that this noisegate does not understand protects the tables with a unit, and not those that were public: the file that
// mends it has them as before.
func TestUnreadableVersionsKeepWhatIsPublic(t *testing.T) {
	p, control := small(t), pgtest.Control(t)
	store := writing(pgtest.PoolOf(t, control.LedgerDSN))
	if _, _, err := apply(t, p, store, smallPolicy); err != nil {
		t.Fatal(err)
	}
	control.Exec(t, "SET session_replication_role = replica; UPDATE noisegate.policy SET document = document || 'of_long_ago: true'")
	stored, err := store.stored(t.Context(), "small")
	if err != nil || len(stored) != 1 {
		t.Fatal(stored, err)
	}
	if _, regions := stored[0].Protected["regions"]; regions || len(stored[0].Protected) != 3 {
		t.Errorf("protected: %v", stored[0].Protected)
	}
	store.chain.(*tables).protected.Store("regions", uint32(1)) // as an earlier one entered it
	opened := strings.Replace(smallPolicy, "  more_visits: {unit: {column: person_id}}", "  more_visits: {public: true}", 1)
	if _, _, err := apply(t, p, store, opened); fault.CodeOf(err) != fault.CodePolicyInvalid ||
		!strings.Contains(err.Error(), "more_visits") || strings.Contains(err.Error(), `"regions"`) {
		t.Errorf("opened: %v", err)
	}
	if _, changed, err := apply(t, p, store, smallPolicy+"  - {group: west, form: pure, epsilon: 1}\n"); err != nil || !changed {
		t.Errorf("mended: %v, %v", changed, err)
	}
}
