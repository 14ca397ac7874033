package statement

import (
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// relationClass says whose relation a name is.
type relationClass int

const (
	unknownRelation relationClass = iota
	exposedRelation
	catalogRelation // of pg_catalog, information_schema or noisegate
)

// resolve finds what a name that no CTE hides stands for, as PostgreSQL does: schema by schema.
func (n *Names) resolve(schema, name string) (TableName, relationClass) {
	if schema != "" {
		return TableName{schema, name}, n.in(schema, name)
	}
	path := n.SearchPath
	if !slices.Contains(path, "pg_catalog") {
		path = slices.Concat([]string{"pg_catalog"}, path)
	}
	for _, schema := range path {
		if class := n.in(schema, name); class == exposedRelation || class == catalogRelation && isCatalog(schema, name) {
			return TableName{schema, name}, class
		}
	}
	if strings.HasPrefix(name, "pg_") { // of a version of PostgreSQL that this package does not know
		return TableName{"pg_catalog", name}, catalogRelation
	}
	return TableName{"", name}, unknownRelation
}

func (n *Names) in(schema, name string) relationClass {
	switch {
	case slices.Contains(n.Exposed, TableName{schema, name}):
		return exposedRelation
	case schema == "information_schema", schema == ownSchema, strings.HasPrefix(schema, "pg_"):
		return catalogRelation
	}
	return unknownRelation
}

// cte is one name of WITH, and those that were visible before it.
type cte struct {
	name  string
	outer *cte
}

func (c *cte) hides(name string) bool {
	for ; c != nil; c = c.outer {
		if c.name == name {
			return true
		}
	}
	return false
}

// survey is what a walk through a query finds.
type survey struct {
	names      *Names
	depth      int
	parameters int32
	exposed    bool
	catalog    *pg.RangeVar // the first of each
	unknown    *pg.RangeVar
}

// query says what kind of query a node is, and how many parameters it has. Relations are looked at with the scopes of WITH: a flat list
// of its names would take SELECT * FROM people WHERE EXISTS (WITH people AS ...) for a query without a table. The query stands between two
// bytes of the message.
func (r *reader) query(to *Statement, n *pg.Node, begin, end int) {
	s := &survey{names: &r.names}
	s.message(n.ProtoReflect(), nil)
	to.Kind, to.Parameters, to.Reads = Catalog, int(s.parameters), s.catalog != nil
	switch {
	case s.exposed && s.catalog != nil:
		halt(s.catalog.Location, stateUnsupported, "ask two queries", "tables of the dataset and catalogs cannot be read in one query")
	case s.unknown != nil && s.catalog != nil:
		halt(s.unknown.Location, stateNoTable, "", "relation %q does not exist", s.unknown.Relname)
	case s.exposed, s.unknown != nil:
		to.Kind = Data
		r.ends(to, n, begin, end)
	}
}

// defaultSchema is where the service looks for names without a schema.
const defaultSchema = "public"

// message looks at a node and what it holds; visible are the names of WITH that hide relations there.
func (s *survey) message(m protoreflect.Message, visible *cte) {
	s.depth++
	defer func() { s.depth-- }()
	if s.depth > maxDepth {
		halt(-1, stateUnsupported, "ask in several smaller queries", "the query is nested too deeply")
	}
	switch n := m.Interface().(type) {
	case *pg.RangeVar:
		s.relation(n, visible)
	case *pg.ParamRef:
		if n.Number < 1 || n.Number > maxParameters {
			halt(n.Location, stateNoParameter, "", "there is no parameter $%d", n.Number)
		}
		s.parameters = max(s.parameters, n.Number)
	case *pg.InsertStmt, *pg.UpdateStmt, *pg.DeleteStmt, *pg.MergeStmt:
		word, _, _ := strings.Cut(string(m.Descriptor().Name()), "Stmt")
		halt(-1, stateReadOnly, "", "cannot execute %s in a read-only transaction", strings.ToUpper(word))
	case *pg.IntoClause:
		halt(n.Rel.GetLocation(), stateReadOnly, "", "cannot execute SELECT INTO in a read-only transaction")
	case *pg.LockingClause:
		halt(-1, stateReadOnly, "", "cannot execute SELECT FOR UPDATE in a read-only transaction")
	case *pg.SelectStmt:
		eachCTE(n.WithClause, visible, func(query *pg.Node, inside *cte) { s.message(query.ProtoReflect(), inside) })
		visible = withNames(n.WithClause, visible)
	case *pg.WithClause:
		return // looked at with its statement
	}
	children(m, func(child protoreflect.Message) { s.message(child, visible) })
}

// children calls f for the messages that a message holds, in the order of the grammar's own definition.
func children(m protoreflect.Message, f func(protoreflect.Message)) {
	visit := func(field protoreflect.FieldDescriptor) {
		switch {
		case field.Message() == nil || !m.Has(field):
		case field.IsList():
			for i := range m.Get(field).List().Len() {
				f(m.Get(field).List().Get(i).Message())
			}
		default:
			f(m.Get(field).Message())
		}
	}
	if m.Descriptor().Name() == "Node" { // one of 270 fields
		if field := m.WhichOneof(m.Descriptor().Oneofs().Get(0)); field != nil {
			visit(field)
		}
		return
	}
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		visit(fields.Get(i))
	}
}

// withNames are the names that are visible after WITH.
func withNames(w *pg.WithClause, visible *cte) *cte {
	for _, node := range w.GetCtes() {
		visible = &cte{node.GetCommonTableExpr().GetCtename(), visible}
	}
	return visible
}

// eachCTE calls f for each query of WITH with the names that are visible in it. The queries of WITH RECURSIVE see each other and
// themselves; others those before them.
func eachCTE(w *pg.WithClause, visible *cte, f func(query *pg.Node, inside *cte)) {
	if w.GetRecursive() {
		visible = withNames(w, visible)
	}
	for _, node := range w.GetCtes() {
		f(node, visible)
		if !w.Recursive {
			visible = &cte{node.GetCommonTableExpr().GetCtename(), visible}
		}
	}
}

func (s *survey) relation(n *pg.RangeVar, visible *cte) {
	if n.Catalogname != "" && n.Catalogname != s.names.Database {
		halt(n.Location, stateUnsupported, "leave the database's name out", "cross-database references are not implemented: %q",
			n.Catalogname+"."+n.Schemaname+"."+n.Relname)
	}
	if n.Schemaname == "" && visible.hides(n.Relname) {
		return
	}
	found, class := s.names.resolve(n.Schemaname, n.Relname)
	if n.Schemaname == "" {
		switch {
		case class == exposedRelation && found.Schema != defaultSchema:
			halt(n.Location, stateUnsupported, "write "+found.Schema+"."+found.Name, "table %q is of a schema that must be named", n.Relname)
		case class == unknownRelation && s.names.in(defaultSchema, n.Relname) == exposedRelation:
			halt(n.Location, stateNoTable, "write "+defaultSchema+"."+n.Relname, "relation %q does not exist", n.Relname)
		}
	}
	switch {
	case class == exposedRelation:
		s.exposed = true
	case class == catalogRelation && s.catalog == nil:
		s.catalog = n
	case class == unknownRelation && s.unknown == nil:
		s.unknown = n
	}
}
