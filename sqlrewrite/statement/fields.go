package statement

import (
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Where a value has no such field, PostgreSQL reads value.name as name(value): the call of a function, or a cast. So a field has a name
// that is nothing but a field's, or that a query may call.

// outputFields are the columns that the listed functions give.
var outputFields = set(strings.Fields(`abbrev baredesc barelabel catcode catdesc fkcols fktable grantee grantor identity is_array is_dst
	is_grantable is_opt isleaf key level n name object_args object_names option_name option_value parentrelid pkcols pktable
	privilege_type relid schema type utc_offset value word x`))

// field refuses the name of a field that may be that of a function or type which no list has.
func field(name string, at int32) {
	if outputFields[name] || types[name] || passes[name] && name != "format" { // whose arguments are looked at
		return
	}
	halt(at, stateUnsupported, "name the column in FROM, as in FROM (SELECT ...) AS t (a)", "field %q is not supported here", name)
}

// column checks the name of a column that would be a field if there were no such column. A relation's row has columns, and no listed
// function and no cast takes it; the row of a function in FROM may be a value of any type.
func (c *checker) column(n *pg.ColumnRef) {
	names := texts(n.Fields)
	if len(names) < 2 || names[len(names)-1] == "" { // a star
		return
	}
	name := names[len(names)-1]
	if columns, scalar := c.scalars[names[len(names)-2]]; scalar && !slices.Contains(columns, name) {
		field(name, n.Location)
	}
}

// findScalars finds the functions in FROM, wherever they stand. Of several with one name, only the columns count that all have.
func (c *checker) findScalars(m protoreflect.Message) {
	if f, ok := m.Interface().(*pg.RangeFunction); ok && len(f.Functions) == 1 && !f.Ordinality {
		name, _ := outputName(f.Functions[0].GetList().GetItems()[0])
		if f.Alias != nil {
			name = f.Alias.Aliasname
		}
		columns := []string{name}
		if named := texts(f.Alias.GetColnames()); len(named) > 0 {
			columns = named
		}
		if before, again := c.scalars[name]; again {
			columns = slices.DeleteFunc(columns, func(column string) bool { return !slices.Contains(before, column) })
		}
		c.scalars[name] = columns
	}
	children(m, c.findScalars)
}
