package earlier

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/sqlprint"
)

// sqlWords are words of descriptions.
var sqlWords = strings.Fields(
	"and or not is in like ilike case when then else end between distinct from collate filter where as null true false unknown exists " +
		"select over by")

// plainName reports whether no description of a computed value can hold a name: it is words, and none of those of SQL.
func plainName(name string) bool {
	for word := range strings.SplitSeq(name, " ") {
		for i, c := range word {
			if c != '_' && !unicode.IsLetter(c) && (i == 0 || !unicode.IsNumber(c) && !strings.ContainsRune("$#.-", c)) {
				return false
			}
		}
		if word == "" || len(word) <= 8 && slices.ContainsFunc(sqlWords, func(w string) bool { return strings.EqualFold(w, word) }) {
			return false
		}
	}
	return true
}

// readsAsOne reports whether a description names its columns beyond doubt.
func readsAsOne(e algebra.Expr) bool {
	if f := algebra.PlainField(e); f != nil && !plainName(f.Name) {
		return false
	}
	return !slices.ContainsFunc(algebra.Children(e), func(child algebra.Expr) bool { return !readsAsOne(child) })
}

// ambiguous reports whether another query may have the same descriptions.
func ambiguous(q *algebra.BoundQuery) bool {
	var all []algebra.Expr
	for _, m := range q.Statistics {
		all = append(all, m.X, m.Y, m.Filter)
	}
	for _, k := range q.Cells() {
		all = append(all, k.X)
	}
	return slices.ContainsFunc(all, func(e algebra.Expr) bool { return e != nil && !readsAsOne(e) })
}

// addStructure adds the structure of a question's expressions, where another question may have the same descriptions.
func addStructure(h sqlprint.Identity, q *algebra.BoundQuery) {
	if !ambiguous(q) {
		return
	}
	h.Add("structure")
	for _, m := range q.Statistics {
		h.Add(sqlprint.StructureOf(m.X), sqlprint.StructureOf(m.Y), sqlprint.StructureOf(m.Filter))
	}
	for _, k := range q.Cells() {
		h.Add(sqlprint.StructureOf(k.X))
	}
	for _, v := range q.Estimators {
		h.Add(fmt.Sprint(int(v.How), v.Of))
	}
	for _, out := range q.Outputs {
		h.Add(sqlprint.StructureOf(out.Expr))
	}
}
