package joinorder

import (
	"slices"

	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/syntax"
)

// lifted is a condition in which the equalities of columns that all branches of an OR have stand beside it: (a AND b) OR (a AND c) is
// a AND (b OR c), whatever is true, false or unknown, since AND is the least and OR the greatest of two truths.
func (o *orderer) lifted(e syntax.Expr) (all syntax.Expr) {
	for _, c := range algebra.Conjuncts(e) {
		for _, l := range o.beside(c) {
			all = both(all, l)
		}
	}
	return all
}

// beside are the conditions that stand for one.
func (o *orderer) beside(e syntax.Expr) (all []syntax.Expr) {
	branches := disjuncts(e)
	if len(branches) < 2 {
		return []syntax.Expr{e}
	}
	for _, common := range branches[0] {
		if sidesOf(common) == nil || slices.ContainsFunc(branches[1:], func(b []syntax.Expr) bool { return !holds(b, common) }) {
			continue
		}
		for i, b := range branches {
			branches[i] = slices.DeleteFunc(slices.Clone(b), func(c syntax.Expr) bool { return sameEquality(c, common) })
		}
		all = append(all, common)
	}
	if all == nil {
		return []syntax.Expr{e}
	}
	o.changed = true
	var rest syntax.Expr
	for _, b := range branches {
		var branch syntax.Expr
		for _, c := range b {
			branch = both(branch, c)
		}
		switch {
		case branch == nil: // it says what all say, and so does the OR
			return all
		case rest == nil:
			rest = branch
		default:
			rest = &syntax.Binary{Pos: e.At(), Op: syntax.Or, L: rest, R: branch}
		}
	}
	return append(all, rest)
}

// disjuncts are the branches of ORs, each as its conditions.
func disjuncts(e syntax.Expr) [][]syntax.Expr {
	if or, ok := e.(*syntax.Binary); ok && or.Op == syntax.Or {
		return append(disjuncts(or.L), disjuncts(or.R)...)
	}
	return [][]syntax.Expr{algebra.Conjuncts(e)}
}

func holds(conditions []syntax.Expr, e syntax.Expr) bool {
	return slices.ContainsFunc(conditions, func(c syntax.Expr) bool { return sameEquality(c, e) })
}

// sameEquality reports whether two conditions equate columns of the same names.
func sameEquality(a, b syntax.Expr) bool {
	name := func(c *syntax.Column) syntax.Column {
		return syntax.Column{Schema: c.Schema, Qualifier: c.Qualifier, Name: c.Name}
	}
	other := sidesOf(b)
	return slices.ContainsFunc(sidesOf(a), func(x equal) bool {
		return len(other) > 0 && name(x.own) == name(other[0].own) && name(x.other) == name(other[0].other)
	})
}
