package tree

import (
	"slices"
	"sync"

	pgquery "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// ShortDigits is how many digits a numeric has at most, before its point and after it, that [Short] leaves.
const ShortDigits = 100

// shortNumeric gives a numeric of at most [ShortDigits] digits before its point and after it, NaN or an infinity; and NULL for any other. Its
// first two conditions look at the header of a stored value, and leave what has few bytes; 1e131071 has few.
const shortNumeric = `CASE WHEN (pg_catalog.pg_column_size(x) <= 112) AND (pg_catalog.pg_column_compression(x) IS NULL)
	AND ((pg_catalog.abs(x) < '1e100'::numeric) OR (pg_catalog.abs(x) >= 'Infinity'::numeric)) AND (pg_catalog.round(x, 100) = x)
	THEN pg_catalog.trim_scale(x) END`

var parsedShort = sync.OnceValue(func() *pgquery.CaseExpr {
	parsed, err := pgquery.Parse("SELECT " + shortNumeric)
	if err != nil {
		panic(err)
	}
	c := parsed.Stmts[0].Stmt.GetSelectStmt().TargetList[0].GetResTarget().Val.GetCaseExpr()
	renamed(c.ProtoReflect(), []string{"x"})
	return c
})

// Short is the column of which a CASE is the short value, written in this one way; nil for others.
func Short(c *pgquery.CaseExpr) (column *pgquery.ColumnRef) {
	if len(c.Args) != 1 {
		return nil
	}
	f := c.Args[0].GetCaseWhen().GetResult().GetFuncCall()
	if f == nil || len(f.Args) != 1 {
		return nil
	}
	column = f.Args[0].GetColumnRef()
	if column == nil || slices.ContainsFunc(column.Fields, func(n *pgquery.Node) bool { return n.GetString_() == nil }) {
		return nil
	}
	of := proto.Clone(c).(*pgquery.CaseExpr)
	if !renamed(of.ProtoReflect(), Words(column.Fields)) || !proto.Equal(of, parsedShort()) {
		return nil
	}
	return column
}

// renamed leaves places in the text out and calls a column x; false where another column is named.
func renamed(m protoreflect.Message, column []string) bool {
	if r, ok := m.Interface().(*pgquery.ColumnRef); ok {
		r.Location = 0
		for i, n := range r.Fields {
			if i >= len(column) || n.GetString_() == nil || n.GetString_().Sval != column[i] {
				return false
			}
		}
		if len(r.Fields) != len(column) {
			return false
		}
		r.Fields = []*pgquery.Node{pgquery.MakeStrNode("x")}
		return true
	}
	same := true
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.Name() == "location":
			m.Clear(f)
		case f.Message() == nil:
		case f.IsList():
			for i := range v.List().Len() {
				same = same && renamed(v.List().Get(i).Message(), column)
			}
		default:
			same = same && renamed(v.Message(), column)
		}
		return same
	})
	return same
}
