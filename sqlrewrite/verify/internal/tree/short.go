package tree

import (
	"slices"
	"sync"

	pgquery "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// ShortDigits is how many digits a numeric has at most, before its point and after it, that [Short] leaves.
const ShortDigits = 100

// shortNumeric gives a numeric of at most [ShortDigits] digits before its point and after it, NaN or an infinity; and NULL for any other.
// Its first two conditions look at the header of a stored value, and leave what has few bytes; 1e131071 has few.
const shortNumeric = `CASE WHEN (pg_catalog.pg_column_size(x) <= 112) AND (pg_catalog.pg_column_compression(x) IS NULL)
	AND ((pg_catalog.abs(x) < '1e100'::numeric) OR (pg_catalog.abs(x) >= 'Infinity'::numeric)) AND (pg_catalog.round(x, 100) = x)
	THEN pg_catalog.trim_scale(x) END`

var parsedShort = sync.OnceValue(func() *pgquery.CaseExpr {
	parsed, err := pgquery.Parse("SELECT " + shortNumeric)
	if err != nil {
		panic(err)
	}
	return parsed.Stmts[0].Stmt.GetSelectStmt().TargetList[0].GetResTarget().Val.GetCaseExpr()
})

// Short is the column of which a CASE is the short value, written in this one way; nil for others.
func Short(c *pgquery.CaseExpr) (column *pgquery.ColumnRef) {
	if len(c.Args) != 1 {
		return nil
	}
	f := c.Args[0].GetCaseWhen().GetResult().GetFuncCall()
	if f == nil || len(f.Args) != 1 || f.Args[0].GetColumnRef() == nil {
		return nil
	}
	column = f.Args[0].GetColumnRef()
	left := pairs{{c.ProtoReflect(), parsedShort().ProtoReflect()}}
	for len(left) > 0 {
		next := left[len(left)-1]
		left = left[:len(left)-1]
		if of, is := next.got.Interface().(*pgquery.ColumnRef); is {
			if slices.ContainsFunc(of.Fields, func(n *pgquery.Node) bool { return n.GetString_() == nil }) ||
				!slices.Equal(Words(of.Fields), Words(column.Fields)) {
				return nil
			}
		} else if !left.push(next) {
			return nil
		}
	}
	return column
}

// pairs are nodes that are to be equal, but for where they stand in the text.
type pairs []struct{ got, want protoreflect.Message }

// push compares the fields of two nodes, and adds the nodes in them.
func (p *pairs) push(of struct{ got, want protoreflect.Message }) bool {
	equal := of.got.Descriptor() == of.want.Descriptor()
	of.got.Range(func(f protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
		equal = equal && (f.Name() == "location" || of.want.Has(f))
		return equal
	})
	of.want.Range(func(f protoreflect.FieldDescriptor, want protoreflect.Value) bool {
		got := of.got.Get(f)
		switch {
		case f.Name() == "location":
		case f.IsList():
			equal = equal && f.Message() != nil && got.List().Len() == want.List().Len()
			for i := 0; equal && i < want.List().Len(); i++ {
				*p = append(*p, struct{ got, want protoreflect.Message }{got.List().Get(i).Message(), want.List().Get(i).Message()})
			}
		case f.Message() != nil:
			equal = equal && of.got.Has(f)
			*p = append(*p, struct{ got, want protoreflect.Message }{got.Message(), want.Message()})
		default:
			equal = equal && got.Equal(want)
		}
		return equal
	})
	return equal
}
