package sqlprint

import (
	"fmt"
	"math/big"
	"strings"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/internal/stability"
)

// This file prints the parts that look at an expression's values one by one: different values, and histograms. docs/sql/selections.md
// proves their sensitivities.

// Histogram reports whether a part gives rows of one candidate each: its place, and how many rows of the group have it.
func (p *PlanPart) Histogram(q *algebra.BoundQuery) bool {
	return len(p.Releases) > 0 && q.Statistics[p.Releases[0]].Chooses()
}

// scanned prints a part whose statistics all look at the same values.
func (p *StatementPrinter) scanned() {
	m := p.Q.Statistics[p.part.Releases[0]]
	if m.Kind == algebra.CountDistinct {
		p.distinctValues(m)
		return
	}
	p.tallies(m)
}

// distinctValues counts the different values of a group, among those that each unit keeps.
func (p *StatementPrinter) distinctValues(m algebra.Statistic) {
	x := p.filtered(m, p.Key(m.X))
	if p.bounding.Kind == stability.Flat {
		p.different(p.rows(x), p.outerWhere(""))
		return
	}
	hash := p.hashOf("v.x", m.X.Typ(), p.unitHash("v", p.seed()))
	// NULLs come last, and stay: a group without values is one of the unit's groups too.
	nth := fmt.Sprintf("pg_catalog.row_number() OVER (PARTITION BY %s ORDER BY v.x IS NULL, %s, v.x) AS nth", p.within(), hash)
	p.different(p.placed(p.unitRows(x), nth), p.outerWhere("u.nth <= "+p.number(big.NewInt(p.bounding.MaxValues), "bigint")))
}

// different counts the different values of x, by group. It groups by them, for which PostgreSQL hashes; count(DISTINCT x) sorts, and a
// sort takes another time where one row is out of order (docs/sql/work.md).
func (p *StatementPrinter) different(source, where string) {
	if !p.adds() {
		p.groups("pg_catalog.count(DISTINCT u.x)", source, where, false)
		return
	}
	list := strings.Join(append(p.outerKeys(), "u.x"), ", ")
	p.groups("pg_catalog.count(u.x)", "SELECT "+list+" FROM ("+source+") AS u"+clause("\nWHERE ", where)+"\nGROUP BY "+list, "", false)
}

// tallies counts the rows of each candidate of a group.
func (p *StatementPrinter) tallies(m algebra.Statistic) {
	x := p.filtered(m, p.candidate(m))
	if p.bounding.Kind == stability.Flat {
		p.groups("pg_catalog.count(*)", p.rows(x), p.outerWhere("u.x IS NOT NULL"), true)
		return
	}
	limit := p.number(big.NewInt(p.bounding.MaxRows), "bigint")
	if m.Kind == algebra.ChooseMode {
		p.groups("pg_catalog.sum(CASE WHEN u.n > "+limit+" THEN "+limit+" ELSE u.n END)", p.placed(p.unitRows(x)),
			p.outerWhere("u.x IS NOT NULL"), true)
		return
	}
	// A unit with more rows is represented by as many of its own quantiles as it may have rows.
	through := func(rows string) string {
		return "pg_catalog.div(2 * " + rows + " * " + limit + " + u.total, 2 * u.total)"
	}
	count := "pg_catalog.sum(CASE WHEN u.total > " + limit + " THEN " + through("u.upto") + " - " + through("(u.upto - u.n)") +
		" ELSE u.n END)"
	total := "pg_catalog.sum(v.n) FILTER (WHERE v.x IS NOT NULL) OVER (PARTITION BY " + p.within() + ") AS total"
	upto := "pg_catalog.sum(v.n) OVER (PARTITION BY " + p.within() + " ORDER BY v.x ROWS UNBOUNDED PRECEDING) AS upto"
	p.groups(count, p.placed(p.unitRows(x), total, upto), p.outerWhere("u.x IS NOT NULL"), true)
}

// candidate is the place of a row's value among the candidates, from 0; NULL where it is none.
func (p *StatementPrinter) candidate(m algebra.Statistic) string {
	if m.Among != nil {
		var texts []string
		for _, k := range m.Among {
			texts = append(texts, k.Text)
		}
		return fmt.Sprintf("(pg_catalog.array_position($%d::pg_catalog.text[], %s) - 1)", p.rawArg(texts), asTextSQL(p.Key(m.X)))
	}
	if m.Grid.Form == algebra.TimeSteps {
		return p.timeSteps(m.Grid)
	}
	g := *m.Grid
	if g.Form == algebra.ExactDecimal {
		g.Form = algebra.RoundDecimal // in steps row by row
	}
	if g.Lo.Sign() == 0 {
		return p.steps(&g)
	}
	return "(" + p.steps(&g) + " - " + p.number(g.Lo, stepType(&g)) + ")"
}

// filtered is x on the rows that pass a statistic's filter, else NULL.
func (p *StatementPrinter) filtered(m algebra.Statistic, x string) string {
	if m.Filter == nil {
		return x
	}
	return "CASE WHEN " + p.Text(m.Filter) + " THEN " + x + " END"
}

// rows are the keys and x of the rows of the block.
func (p *StatementPrinter) rows(x string) string {
	return p.innerRows(nil, append(p.innerKeys(), x+" AS x"))
}

// unitRows are, for each unit, its keys and values of x with the number of rows that have them.
func (p *StatementPrinter) unitRows(x string) string {
	list := append(append([]string{p.unitKey() + " AS unit"}, p.innerKeys()...), x+" AS x")
	var ordinals []string
	for i := range list {
		ordinals = append(ordinals, fmt.Sprint(i+1))
	}
	return p.innerRows(ordinals, append(list, "pg_catalog.count(*) AS n"))
}

func (p *StatementPrinter) innerKeys() []string {
	var list []string
	for i, k := range p.Q.Keys {
		list = append(list, fmt.Sprintf("%s AS k%d", p.Key(k.X), i))
	}
	return list
}

// innerRows reads the source: rows of units, and of groups that may be shown.
func (p *StatementPrinter) innerRows(groupBy, list []string) string {
	var keys []string
	for _, k := range p.Q.Keys {
		keys = append(keys, p.Key(k.X))
	}
	from, joins := p.fromWhere(inner, keys, false)
	text := "SELECT " + strings.Join(list, ", ") + from + clause("\n      GROUP BY ", strings.Join(groupBy, ", "))
	if joins { // the query around has conditions on what it groups by
		text += fence
	}
	return text
}

// placed adds columns to the rows of units, and each group's place in its unit's order where a unit keeps only some.
func (p *StatementPrinter) placed(source string, columns ...string) string {
	if p.bounding.Kind == stability.KeptKeys {
		columns = append(columns, p.place("dense_rank"))
	}
	if len(columns) == 0 {
		return source
	}
	return "SELECT v.*, " + strings.Join(columns, ",\n       ") + "\nFROM (" + source + ") AS v"
}

// within are the columns that make one group of one unit.
func (p *StatementPrinter) within() string {
	list := p.unitPartition("v")
	for i := range p.Q.Keys {
		list += fmt.Sprintf(", v.k%d", i)
	}
	return list
}

// groups prints the outer level: aggregate per group, and per value of x if asked.
func (p *StatementPrinter) groups(aggregate, source, where string, byValue bool) {
	keys, outputs := p.outerKeys(), []string(nil)
	if byValue {
		keys = append(keys, "u.x")
	}
	for _, k := range keys {
		outputs = append(outputs, asTextSQL(k))
	}
	outputs = append(outputs, asTextSQL(aggregate))
	p.clause("SELECT ", strings.Join(outputs, ",\n       "))
	p.clause("\nFROM (", source+") AS u")
	p.clause("\nWHERE ", where)
	p.clause("\nGROUP BY ", strings.Join(keys, ", "))
}

func (p *StatementPrinter) outerKeys() []string {
	var keys []string
	for i := range p.Q.Keys {
		keys = append(keys, fmt.Sprintf("u.k%d", i))
	}
	return keys
}

// outerWhere is a condition on the rows of units, with that on the groups that each unit keeps.
func (p *StatementPrinter) outerWhere(condition string) string {
	if p.bounding.Kind == stability.KeptKeys {
		return joinConditions([]string{condition, p.kept("u")})
	}
	return condition
}

// Distinguishable reports whether the values of an expression can be told apart by their hash: equal values have one. Not so
// intervals: 1 day and 24 hours are equal and have two texts.
func Distinguishable(e algebra.Expr) bool {
	return scalar.FamilyOf(e.Typ()) != scalar.UnknownFamily && e.Typ() != scalar.IntervalType
}

// hashOf hashes a value of type t, which the statement calls by a name, so that equal values have equal hashes.
func (p *Printer) hashOf(name string, t catalog.Type, seed string) string {
	switch {
	case t.IsInteger():
		return "pg_catalog.hashint8extended(" + name + "::bigint, " + seed + ")"
	case t == catalog.Numeric:
		return "pg_catalog.hash_numeric_extended(" + name + ", " + seed + ")"
	case scalar.IsFloat(t):
		return "pg_catalog.hashfloat8extended(" + name + "::double precision, " + seed + ")"
	default:
		return "pg_catalog.hashtextextended(" + asTextSQL(name) + ", " + seed + ")"
	}
}
