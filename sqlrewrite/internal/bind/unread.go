package bind

import (
	"reflect"
	"slices"

	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/syntax"
)

// unread reports whether an output that was refused can be left out: nothing in the statement has its name, or stands for all columns, and
// the columns that it names exist.
func unread(b *algebra.Binder, item syntax.Item, refused error) bool {
	if code := fault.CodeOf(refused); !b.InFrom || b.Whole == nil || b.Query.Distinct ||
		code != fault.CodeUnsupported && code != fault.CodeUnknownFunction && code != fault.CodeUnitColumn {
		return false
	}
	return resolves(b, item.Expr) && !reads(reflect.ValueOf(b.Whole), itemName(item))
}

// resolves reports whether an expression holds no query, and each name in it is that of a column.
func resolves(b *algebra.Binder, n syntax.Expr) bool {
	switch n := n.(type) {
	case *syntax.Column:
		_, err := column(b, n)
		return err == nil
	case *syntax.InQuery, *syntax.Exists, *syntax.Scalar:
		return false
	default:
		return !slices.ContainsFunc(operands(n), func(x syntax.Expr) bool { return !resolves(b, x) })
	}
}

// reads reports whether a column of some name may be read anywhere in a part of a statement.
func reads(v reflect.Value, name string) bool {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return false
		}
		switch n := v.Interface().(type) {
		case *syntax.Column:
			return n.Name == name
		case *syntax.Star:
			return true
		case *syntax.Join:
			if n.Natural || slices.Contains(n.Using, name) {
				return true
			}
		}
		return reads(v.Elem(), name)
	case reflect.Slice:
		for i := range v.Len() {
			if reads(v.Index(i), name) {
				return true
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if reads(v.Field(i), name) {
				return true
			}
		}
	default: // words and numbers
	}
	return false
}
