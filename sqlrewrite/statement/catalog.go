package statement

import (
	"slices"
	"time"

	pg "github.com/pganalyze/pg_query_go/v6"

	"noisegate.example/sqlrewrite/internal/parse"
)

// The limits of a printed statement: relations of the session's own make it longer than the client's. Its depth is bounded by the
// client's, so that the parser's stack is safe.
const (
	maxPrintedBytes  = 4 << 20
	maxPrintedTokens = 400_000
)

// View is what a session may see of the catalogs where the twin's own would show its server instead of the dataset.
type View struct {
	Names
	User       string      // the analyst
	PID        int32       // of this session
	Version    string      // what version() gives
	Owner      uint32      // the OID of the owner of the twin's tables, which is shown as the analyst's
	Parameters []Parameter // the settings of the session: all that pg_settings and current_setting know
	Sessions   []Activity  // the analyst's own sessions

	// Columns are those of the twin's relations whose rows are replaced; see [Replaced].
	Columns map[TableName][]Column
	// Own are the rows of the gateway's own relations, by name: budget, columns and releases of schema noisegate.
	Own map[string]Rows
}

// Parameter is one setting, as pg_settings shows it.
type Parameter struct{ Name, Value, Description string }

// Activity is one session, as pg_stat_activity shows it.
type Activity struct {
	PID         int32
	Application string
	State       string // active, idle, idle in transaction
	Started     time.Time
}

// Column is a column, with its type as PostgreSQL's format_type writes it.
type Column struct{ Name, Type string }

// Rows are a relation as values; nil is NULL.
type Rows struct {
	Columns []Column
	Values  [][]*string
}

// Replaced are the relations whose columns a [View] must hold, sorted.
func Replaced() []TableName {
	return sortedRelations(func(schema string, t treatment) bool {
		return schema != ownSchema && (t == shownRelation || t == emptyRelation)
	})
}

// TwinTypes are the types that parameters of a rewritten text may have, sorted, by PostgreSQL's names; so may arrays of them. Of any other
// the database must not read a value: the input of some looks up names of the server's roles.
func TwinTypes() []TableName {
	var all []TableName
	for schema, names := range map[string]map[string]bool{"pg_catalog": types, "information_schema": informationTypes} {
		for name := range names {
			all = append(all, TableName{schema, name})
		}
	}
	slices.SortFunc(all, compareNames)
	return all
}

// Rewrite gives the text that runs on the catalog twin in place of a statement of kind Catalog. Only nodes, relations, functions,
// types and operators of its lists are in it, functions and relations with their schemas; what PostgreSQL shares between the databases of
// a server is replaced by values of the session. The text was parsed and checked again after it was printed. Parameters keep their
// numbers. An error is a [*Refusal].
func Rewrite(s Statement, v View) (string, error) {
	tree, err := parse.Tree(s.Text, parse.Limits{Bytes: MaxBytes, Tokens: maxTokens})
	if err != nil {
		return "", s.place(ofText(s.Text, err))
	}
	var text string
	refusal := guarded(s.Text, func() {
		if len(tree.Stmts) != 1 || tree.Stmts[0].Stmt.GetSelectStmt() == nil {
			halt(-1, stateUnsupported, "", "not a query")
		}
		c := &checker{view: &v}
		c.node(tree.Stmts[0].Stmt.ProtoReflect(), nil)
		w := &rewriter{view: &v}
		w.message(tree.Stmts[0].Stmt.ProtoReflect(), nil)
		text = w.print(tree.Stmts[0].Stmt)
	})
	if refusal != nil {
		return "", s.place(refusal)
	}
	return text, nil
}

// place counts a refusal's position in the message.
func (s Statement) place(r *Refusal) error {
	if r.Position > 0 {
		r.Position += s.Offset
	}
	return r
}

// print writes a tree that was rewritten, and makes sure that what PostgreSQL will read in it is what the lists allow.
func (w *rewriter) print(n *pg.Node) string {
	text, err := printed(n)
	if err != nil {
		halt(-1, stateUnsupported, "", "the query cannot be printed")
	}
	again, err := parse.Tree(text, parse.Limits{Bytes: maxPrintedBytes, Tokens: maxPrintedTokens})
	if err != nil || len(again.Stmts) != 1 || again.Stmts[0].Stmt.GetSelectStmt() == nil {
		halt(-1, stateUnsupported, "ask in a simpler way", "the query cannot be printed")
	}
	if !sameTree(n, again.Stmts[0].Stmt) { // the printer leaves out brackets here and there
		halt(-1, stateUnsupported, "ask in a simpler way", "the query cannot be printed")
	}
	c := &checker{view: w.view, final: true}
	c.node(again.Stmts[0].Stmt.ProtoReflect(), nil)
	return text
}
