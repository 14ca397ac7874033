package sqlprint

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/domain"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/internal/stability"
)

// StatementPrinter prints the statement of a layout. docs/sql/contributions.md proves the sensitivity of each form.
type StatementPrinter struct {
	*Printer
	Q        *algebra.BoundQuery
	bounding stability.Bounding
	part     *PlanPart
	inner    []string // per-unit aggregates; u.a0, u.a1, ... above
	counts   []string // counts of rows in one group that max_rows_total bounds together; u.d0, u.d1, ... above
	ranges   *Ranges
}

// NewStatementPrinter begins the statement of a part.
func NewStatementPrinter(q *algebra.BoundQuery, s stability.Bounding, part *PlanPart, as Style) *StatementPrinter {
	return &StatementPrinter{Printer: newRowPrinter(as, q.Shared().Steps), Q: q, bounding: s, part: part}
}

// Print prints the part's statement. Its value columns are those of its statistics, in order, then the number of units if private
// keys are selected by it; of a histogram the place of a candidate, from 0, and its rows.
func (p *StatementPrinter) Print() {
	q, s, part := p.Q, p.bounding, p.part
	values := len(part.Releases)
	switch {
	case part.Histogram(q):
		values = 2
		p.scanned()
	case values > 0 && q.Statistics[part.Releases[0]].Kind == algebra.CountDistinct:
		p.scanned()
	case s.Kind == stability.Flat:
		p.flat()
	case s.Kind == stability.PerUnit, s.Kind == stability.PerUnitAndKey, s.Kind == stability.KeptKeys:
		p.nested()
	default:
		panic("sqlrewrite: bounding without a printed form")
	}
	if part.Units {
		values++
	}
	p.finish(values)
	part.Statement.Partitioned = s.Partitioning != stability.Unpartitioned
	if s.Partitioning == stability.ByRange {
		part.Statement.Ranges = p.ranges
	}
}

// finish makes the part's statement of the text.
func (p *StatementPrinter) finish(values int) {
	if p.SemiJoins.Wait() {
		panic("sqlrewrite: rows that nothing joins")
	}
	t, needs, seed := p.template(), p.needs, p.args.seed
	*p.part = PlanPart{Releases: p.part.Releases, Units: p.part.Units, Template: t, SeedArg: seed, RowByRow: needs.rowByRow,
		Statement: Statement{SQL: t.sql(), Args: p.Args(), Keys: len(p.Q.Keys), Values: values, Preconditions: preconditions(p.Q),
			AddsUp: p.bounding.Kind != stability.Flat, Hashes: needs.pairs, InOrder: needs.bothSides,
			Blind: needs.bothSides && !p.Distributed, Unseeded: seed, Awaited: p.args.awaited, Zones: needs.zones}}
}

// flat is bounding (a): each row is a unit, so nothing but the values' bounds needs enforcing.
func (p *StatementPrinter) flat() {
	var outputs, keys []string
	for _, k := range p.Q.Keys {
		keys = append(keys, p.Key(k.X))
		outputs = append(outputs, asTextSQL(p.Key(k.X)))
	}
	for _, m := range p.part.statistics(p.Q) {
		outputs = append(outputs, asTextSQL(p.total(m)))
	}
	if p.part.Units {
		outputs = append(outputs, asTextSQL(p.count(algebra.Statistic{Kind: algebra.CountUnits})))
	}
	p.clause("SELECT ", strings.Join(outputs, ",\n       "))
	var shown []string
	if p.Distributed {
		shown = keys
	}
	from, _ := p.fromWhere("\n", shown, false)
	p.write(from)
	p.clause("\nGROUP BY ", strings.Join(keys, ", "))
	if !p.Distributed {
		p.groupFilter(keys)
	}
}

// groupFilter leaves out the groups outside the domain. The CASE makes it a test of the group: a plain HAVING over keys is
// tested by PostgreSQL row by row.
func (p *StatementPrinter) groupFilter(keys []string) {
	if domain := p.domainFilter(keys); domain != "" {
		p.clause("\nHAVING ", "CASE WHEN pg_catalog.count(*) > 0 THEN "+domain+" END")
	}
}

// inner begins the clauses of the rows of units.
const inner = "\n      "

// nested are boundings (b), (c) and (d): what each unit has in each group, bounded, then added up.
func (p *StatementPrinter) nested() {
	var keys, values []string
	for i := range p.Q.Keys {
		keys = append(keys, fmt.Sprintf("u.k%d", i))
	}
	for _, i := range p.part.Releases {
		values = append(values, p.bounded(i))
	}
	if p.part.Units {
		values = append(values, "pg_catalog.count(*)")
	}
	units := p.totalled(p.units())
	from := "(" + units + ") AS u"
	if p.bounding.Partitioning != stability.Unpartitioned {
		from = p.partitions(units, keys, values)
		for i := range keys {
			keys[i] = fmt.Sprintf("h.k%d", i)
		}
		for i := range values {
			values[i] = fmt.Sprintf("pg_catalog.sum(h.v%d)", i)
		}
	}
	var outputs []string
	for _, e := range slices.Concat(keys, values) {
		outputs = append(outputs, asTextSQL(e))
	}
	p.clause("SELECT ", strings.Join(outputs, ",\n       "))
	p.clause("\nFROM ", from)
	total := p.bounding.MaxTotal > 0
	if p.bounding.Kind == stability.KeptKeys && !total {
		p.clause("\nWHERE ", p.kept("u"))
	}
	p.clause("\nGROUP BY ", strings.Join(keys, ", "))
	if p.bounding.Kind == stability.PerUnitAndKey && !total {
		p.groupFilter(keys)
	}
}

// kept are the groups that each unit keeps.
func (p *StatementPrinter) kept(alias string) string {
	return alias + ".place <= " + p.number(big.NewInt(p.bounding.MaxGroups), "bigint")
}

// totalled adds to what each unit has in each group how many rows of it count there: d0, d1, ... for each of counts. Where all of the
// unit's groups together have more than max_rows_total, each group has its share of these, rounded so that the shares add up: up to the
// next whole number for some groups and down for others, as an order of the unit's groups says that is another for each unit.
func (p *StatementPrinter) totalled(units string) string {
	if p.bounding.MaxTotal == 0 {
		return units
	}
	most, where, order := "", "", ""
	if len(p.counts) > 0 { // PostgreSQL refuses an argument that the text does not name
		most = p.number(big.NewInt(p.bounding.MaxTotal), "bigint")
	}
	if p.bounding.Kind == stability.KeptKeys {
		where, order = " WHERE "+p.kept("v"), "w.place"
	} else if len(p.counts) > 0 { // an order that is the same each time, so that the same question has the same true values
		order = p.groupHash("w", p.unitHash("w", p.number(new(big.Int), "bigint")))
	}
	for i := range p.Q.Cells() {
		order += fmt.Sprintf(", w.k%d", i)
	}
	inGroup, inAll, share := "v.*", "w.*", "t.*"
	for i, count := range p.counts {
		inGroup += fmt.Sprintf(", %s AS c%d", p.capped(count), i)
		inAll += fmt.Sprintf(",\n       pg_catalog.sum(w.c%[1]d) OVER (PARTITION BY %[3]s) AS t%[1]d,"+
			"\n       pg_catalog.sum(w.c%[1]d) OVER (PARTITION BY %[3]s ORDER BY %[2]s ROWS UNBOUNDED PRECEDING) AS s%[1]d", i, order,
			p.unitPartition("w"))
		share += fmt.Sprintf(",\n       CASE WHEN t.t%[1]d > %[2]s THEN (pg_catalog.div(t.s%[1]d * %[2]s, t.t%[1]d)"+
			" - pg_catalog.div((t.s%[1]d - t.c%[1]d) * %[2]s, t.t%[1]d))::bigint ELSE t.c%[1]d END AS d%[1]d", i, most)
	}
	return "SELECT " + share + "\nFROM (SELECT " + inAll + "\nFROM (SELECT " + inGroup + "\nFROM (" + units + ") AS v" + where + ") AS w) AS t"
}

// capped is a count of rows of one unit in one group, at most max_rows.
func (p *StatementPrinter) capped(count string) string {
	limit := p.number(big.NewInt(p.bounding.MaxRows), "bigint")
	return fmt.Sprintf("CASE WHEN %s > %s THEN %s ELSE %s END", count, limit, limit, count)
}

// units are what each unit has in each group: its keys k0, k1, ... and the aggregates that the values above ask for.
func (p *StatementPrinter) units() string {
	unit := p.unitKey()
	keys, list := []string{unit}, []string(nil)
	if p.bounding.Kind == stability.KeptKeys || p.bounding.Partitioning != stability.Unpartitioned || p.bounding.MaxTotal > 0 {
		list = append(list, unit+" AS unit")
	}
	var cells []string
	for i, k := range p.Q.Cells() {
		if p.bounding.Kind != stability.PerUnit {
			cells = append(cells, p.Key(k.X))
			keys, list = append(keys, cells[i]), append(list, fmt.Sprintf("%s AS k%d", p.Key(k.X), i))
		} else if !p.private() {
			cells = append(cells, p.Key(k.X))
		}
	}
	for i, a := range p.inner {
		list = append(list, fmt.Sprintf("%s AS a%d", a, i))
	}
	if len(list) == 0 {
		list = []string{"1 AS one"}
	}
	domain := []string(nil)
	if p.bounding.Kind == stability.KeptKeys || p.bounding.MaxTotal > 0 || p.Q.Part != algebra.NoPart {
		domain = cells // before the choice: keys that are not shown must take neither a place nor rows
	}
	from, _ := p.fromWhere(inner, domain, true)
	source := "SELECT " + strings.Join(list, ", ") + from + "\n      GROUP BY " + strings.Join(keys, ", ")
	if p.bounding.Kind == stability.KeptKeys {
		return p.keep(source)
	}
	return source
}

// keep numbers each unit's keys in an order that only the secret seed decides.
func (p *StatementPrinter) keep(source string) string {
	return "SELECT v.*, " + p.place("row_number") + "\nFROM (" + source + ") AS v"
}

// place is the place of a group among those of its unit, in an order that only the secret seed decides. The order depends on nothing but
// the unit's own id and keys, so that other units' choices do not move when one unit leaves.
func (p *StatementPrinter) place(rank string) string {
	hash := p.groupHash("v", p.unitHash("v", p.seed()))
	var ties []string
	for i := range p.Q.Cells() {
		ties = append(ties, fmt.Sprintf("v.k%d", i))
	}
	return fmt.Sprintf("pg_catalog.%s() OVER (PARTITION BY %s ORDER BY %s, %s) AS place", rank, p.unitPartition("v"), hash,
		strings.Join(ties, ", "))
}

// groupHash hashes the keys of a group into another hash.
func (p *StatementPrinter) groupHash(alias, hash string) string {
	for i := range p.Q.Cells() {
		hash = fmt.Sprintf("pg_catalog.hashtextextended(COALESCE(%s, ''), %s)", asTextSQL(fmt.Sprintf("%s.k%d", alias, i)), hash)
	}
	return hash
}

// unitHash hashes a unit's id under a seed.
func (p *StatementPrinter) unitHash(alias, seed string) string {
	if p.Q.Source.Owner().Type.IsInteger() {
		return fmt.Sprintf("pg_catalog.hashint8extended(%s.unit::bigint, %s)", alias, seed)
	}
	return fmt.Sprintf("pg_catalog.hashtextextended(%s, %s)", asTextSQL(alias+".unit"), seed)
}

// unitPartition prints a unit's id for PARTITION BY; see [Printer.scattered].
func (p *StatementPrinter) unitPartition(alias string) string {
	return p.scattered(alias+".unit", p.Q.Source.Owner().Type)
}

// clause writes a clause unless its body is empty.
func (p *StatementPrinter) clause(keyword, body string) { p.write(clause(keyword, body)) }

// clause is a clause unless its body is empty.
func clause(keyword, body string) string {
	if body == "" {
		return ""
	}
	return keyword + body
}

// unitKey is the expression that tells units apart. Equal ids must have one text, as keys must: the hash of the text decides which
// groups a unit keeps, and that must not depend on which of the unit's rows PostgreSQL happened to read first.
func (p *StatementPrinter) unitKey() string {
	unit := p.Q.Source.Owner()
	if unit.Type == catalog.Numeric {
		return "pg_catalog.trim_scale(" + p.field(unit) + ")"
	}
	return p.Key(algebra.Column{Of: unit})
}

// owned leaves the rows that belong to a unit, and of a copy those that count.
func (p *StatementPrinter) owned() string {
	return joinConditions([]string{p.notNullUnit(), p.onlyRanked()})
}

// notNullUnit drops rows without a unit: nobody's privacy would bound them. A NOT NULL of the policy's day proves nothing: it may
// have been dropped since, and an inheriting table need not have it.
func (p *StatementPrinter) notNullUnit() string {
	unit := p.Q.Source.Owner()
	if unit.Present() {
		return ""
	}
	return "(" + p.field(unit) + " IS NOT NULL)"
}

func joinConditions(all []string) string {
	return strings.Join(slices.DeleteFunc(all, func(c string) bool { return c == "" }), " AND ")
}

// Key is the expression that groups by a column. Two rows are in one group iff their texts are equal byte by byte: otherwise the
// text that a group shows would be that of one of its rows.
func (p *StatementPrinter) Key(e algebra.Expr) string {
	name := p.asIs(e)
	if c, ok := e.(algebra.Computed); ok {
		// PostgreSQL drops a collation under a collation where it casts the key to text, and would not see that the same key is grouped by.
		if inner, ok := c.ErrorFree.(algebra.Collate); ok {
			x := inner.X
			for inner, ok = x.(algebra.Collate); ok && p.adds(); inner, ok = x.(algebra.Collate) { // a text that is cast to text has several
				x = inner.X
			}
			name = p.Text(x)
		}
		switch {
		case scalar.IsFloat(algebra.CarrierOf(e)):
			name = "(" + name + " + " + p.arg("0", "double precision") + ")" // 0 for -0
		case algebra.CarrierOf(e) == catalog.Numeric:
			name = "pg_catalog.trim_scale(" + name + ")"
		}
	}
	switch e.Typ() {
	case catalog.Text:
		if p.adds() { // of varchar PostgreSQL casts below the collation, and would not see that the same key is shown and grouped by
			name += "::" + textType
		}
		return "(" + name + " COLLATE " + byteCollation + ")"
	case catalog.Char:
		return "(" + name + "::" + textType + " COLLATE " + byteCollation + ")"
	default:
		return name
	}
}

func asTextSQL(e string) string { return e + "::" + textType }

// domainFilter leaves out rows or groups whose public keys are not in the declared domain: they are not part of the answer.
func (p *StatementPrinter) domainFilter(keys []string) string {
	var all []string
	for i, k := range p.Q.Cells() {
		if p.private() {
			continue // a private tuple is selected whatever it holds
		}
		if k.X.Typ() == catalog.Bool && NeverNull(k.X) && len(k.Domain) == 2 && !p.adds() {
			continue // there are no other keys, but for NULL where a column's NOT NULL was dropped
		}
		var texts []string
		null := false
		for _, d := range k.Domain {
			if d.Null {
				null = true
			} else {
				texts = append(texts, d.Text)
			}
		}
		key := asTextSQL(keys[i])
		condition := fmt.Sprintf("%s = ANY ($%d::pg_catalog.text[])", key, p.rawArg(texts))
		if null {
			condition = fmt.Sprintf("(%s OR %s IS NULL)", condition, key)
		}
		all = append(all, condition)
	}
	return strings.Join(all, " AND ")
}

// private reports whether groups are shown whatever their keys are.
func (p *StatementPrinter) private() bool {
	return slices.ContainsFunc(p.Q.Cells(), algebra.GroupKey.Private)
}

// filterClause is an aggregate's FILTER.
func (p *StatementPrinter) filterClause(m algebra.Statistic) string {
	if m.Filter == nil {
		return ""
	}
	return " FILTER (WHERE " + p.Text(m.Filter) + ")"
}

// count is the number of rows of a group that a statistic looks at.
func (p *StatementPrinter) count(m algebra.Statistic) string {
	switch {
	case m.Kind == algebra.CountUnits && p.bounding.MostRank > 0 && !p.Q.CountsEveryUnit(): // a unit may have several rows
		unit := p.field(p.Q.Source.Owner())
		if !p.Distributed { // else each server counts those that lie there
			unit = p.scattered(unit, catalog.Int8)
		}
		return "pg_catalog.count(DISTINCT " + unit + ")" + p.filterClause(m)
	case m.Kind == algebra.CountRows, m.Kind == algebra.CountUnits:
		return "pg_catalog.count(*)" + p.filterClause(m)
	default:
		return "pg_catalog.count(" + p.asIs(m.X) + ")" + p.filterClause(m)
	}
}

// sum is the sum of a statistic's steps over the rows of a group, NULL when there are none.
func (p *StatementPrinter) sum(m algebra.Statistic) string {
	if m.Kind == algebra.SumProducts {
		return p.sumOfProducts(m)
	}
	steps, decimal := p.decimalSteps(m.Grid)
	s := "pg_catalog.sum(" + steps + ")" + p.filterClause(m)
	if decimal {
		s = "(" + s + " * " + p.number(m.Grid.Step.Denom(), "numeric") + ")"
	}
	wide := "numeric"
	switch {
	case m.Grid.Narrow():
		wide = "bigint"
		if !m.Grid.Small() { // what follows is cheaper in whole numbers
			s += "::bigint"
		}
	case decimal:
		s = "pg_catalog.trunc" + s
	}
	if m.Kind != algebra.SumCentred {
		return s
	}
	return "(" + s + " - " + p.number(m.Grid.Centre(), wide) + " * " + p.count(m) + ")"
}

// total is a statistic over all rows of a group, for tables where each row is a unit.
func (p *StatementPrinter) total(m algebra.Statistic) string {
	switch m.Kind {
	case algebra.CountRows, algebra.CountValues, algebra.CountUnits:
		return p.count(m)
	case algebra.SumSteps, algebra.SumCentred, algebra.SumProducts:
		return "COALESCE(" + p.sum(m) + ", 0)"
	default:
		panic("sqlrewrite: statistic without a total")
	}
}

// bounded is a statistic over units, each of which adds at most what its sensitivity says.
func (p *StatementPrinter) bounded(release int) string {
	m := p.Q.Statistics[release]
	total := func(of string) string { return "COALESCE(pg_catalog.sum(" + of + "), 0)" }
	switch m.Kind {
	case algebra.CountUnits:
		if m.Filter == nil {
			return "pg_catalog.count(*)"
		}
		return "pg_catalog.count(*) FILTER (WHERE " + p.perUnit(p.count(m)) + " > 0)"
	case algebra.CountRows, algebra.CountValues:
		if p.bounding.MaxTotal > 0 {
			return total(p.rowsThatCount(m))
		}
		return total(p.capped(p.perUnit(p.count(m))))
	case algebra.SumSteps, algebra.SumCentred, algebra.SumProducts:
		if p.adds() && p.Q.ClampsUnits(release) {
			return total(p.clampedSum(m))
		}
		s, n := p.perUnit(p.sum(m)), p.perUnit(p.count(m))
		limit := p.rowsThatCount(m)
		less := fmt.Sprintf("pg_catalog.div(%s::numeric * %s, %s::numeric)", s, limit, n)
		if m.Kind != algebra.SumProducts && m.Grid.Narrow() {
			less += "::bigint"
		}
		return total(fmt.Sprintf("CASE WHEN %s > %s THEN %s ELSE %s END", n, limit, less, s))
	default:
		panic("sqlrewrite: statistic without a bounded form")
	}
}

// rowsThatCount is how many rows of one unit count in one group at most, for a statistic.
func (p *StatementPrinter) rowsThatCount(m algebra.Statistic) string {
	if p.bounding.MaxTotal == 0 {
		return p.number(big.NewInt(p.bounding.MaxRows), "bigint")
	}
	n := strings.Replace(p.perUnit(p.count(m)), "u.", "v.", 1)
	at := slices.Index(p.counts, n)
	if at < 0 {
		at = len(p.counts)
		p.counts = append(p.counts, n)
	}
	return fmt.Sprintf("u.d%d", at)
}

// clampedSum is a unit's sum in one group, clamped to what the rows that count can add. A side that no row's value reaches is left out.
func (p *StatementPrinter) clampedSum(m algebra.Statistic) string {
	s := p.perUnit(p.sum(m))
	larger, smaller, kind := "pg_catalog.numeric_larger", "pg_catalog.numeric_smaller", "numeric"
	if m.Grid.Narrow() {
		larger, smaller, kind = "pg_catalog.int8larger", "pg_catalog.int8smaller", "bigint"
	}
	end := func(each *big.Int) string {
		if p.bounding.MaxTotal == 0 {
			return p.number(new(big.Int).Mul(each, big.NewInt(p.bounding.MaxRows)), kind)
		}
		rows := p.rowsThatCount(m)
		if kind == "numeric" {
			rows += "::numeric"
		}
		return rows + " * " + p.number(each, kind)
	}
	if m.Grid.Hi.Sign() > 0 {
		s = smaller + "(" + s + ", " + end(m.Grid.Hi) + ")"
	}
	if m.Grid.Lo.Sign() < 0 {
		s = larger + "(" + s + ", " + end(m.Grid.Lo) + ")"
	}
	return s
}

// perUnit adds an aggregate to the inner level, once, and gives its name above.
func (p *StatementPrinter) perUnit(aggregate string) string {
	at := slices.Index(p.inner, aggregate)
	if at < 0 {
		at, p.inner = len(p.inner), append(p.inner, aggregate)
	}
	return fmt.Sprintf("u.a%d", at)
}

func (p *StatementPrinter) number(v *big.Int, sqlType string) string {
	return p.arg(v.String(), sqlType)
}

// steps is the value of a column in steps of its grid. CASE clamps: it keeps NULL, sends NaN, which sorts above every
// number, to the upper bound, and does not evaluate the arithmetic of a branch that it does not take.
func (p *StatementPrinter) steps(g *algebra.Grid) string {
	x := p.asIs(g.X)
	result := "bigint"
	if g.Small() {
		result = "integer"
	}
	switch g.Form {
	case algebra.WholeSteps:
		body := p.clampWhole(g)
		if t := algebra.CarrierOf(g.X); t == catalog.Int8 && g.Small() || t != catalog.Int8 && !g.Small() {
			body += "::" + result
		}
		return body
	case algebra.DividedSteps:
		base := new(big.Int).Mul(g.Lo, g.Step.Num())
		half := new(big.Int).Rsh(g.Step.Num(), 1)
		inner := fmt.Sprintf("((%s::bigint - %s) / %s + %s)", x, p.number(base.Sub(base, half), "bigint"),
			p.number(g.Step.Num(), "bigint"), p.number(g.Lo, "bigint"))
		compare := string(g.X.Typ())
		if scalar.IsFloat(g.X.Typ()) {
			compare = "double precision"
		}
		if g.Small() {
			inner += "::integer"
		}
		if scalar.IsFloat(algebra.CarrierOf(g.X)) && p.adds() {
			return strings.Replace(inner, x+"::bigint", p.clampFloat(g)+"::bigint", 1)
		}
		return p.clamp(g, compare, result, inner)
	case algebra.ExactDecimal:
		return p.clampDecimal(g)
	case algebra.RoundDecimal:
		scaled := p.stepDigits(g)
		if !g.Step.IsInt() {
			scaled += " * " + p.number(g.Step.Denom(), "numeric")
		} else if g.Step.Cmp(scalar.One()) > 0 {
			scaled += " / " + p.number(g.Step.Num(), "numeric")
		}
		return "pg_catalog.round(" + scaled + ")"
	case algebra.ScaledFloat:
		if p.adds() {
			return "(" + p.clampFloat(g) + " * " + p.number(g.Step.Denom(), "double precision") + ")::" + result
		}
		return p.clamp(g, "double precision", result, "("+x+" * "+p.number(g.Step.Denom(), "double precision")+")::"+result)
	default:
		panic("sqlrewrite: grid without a printed form")
	}
}

// clamp prints CASE WHEN x < lo THEN lo WHEN x > hi THEN hi ELSE body END, with the bounds in the column's unit for the
// comparison and in steps for the result. A side that the column's type guarantees is left out.
func (p *StatementPrinter) clamp(g *algebra.Grid, compare, result, body string) string {
	if g.Clamped {
		return body
	}
	x := p.asIs(g.X)
	bound := func(k *big.Int) string {
		if compare == "double precision" {
			return p.arg(scalar.FormatFloat(g.Float(k), 64), compare)
		}
		return p.arg(scalar.DecimalText(g.Value(k)), compare)
	}
	inSteps := func(k *big.Int) string { return p.number(k, result) }
	lowest, highest := scalar.IntegerRange(g.X.Typ())
	var arms string
	if lowest == nil || g.Value(g.Lo).Cmp(lowest) > 0 {
		arms += " WHEN " + x + " < " + bound(g.Lo) + " THEN " + inSteps(g.Lo)
	}
	if highest == nil || g.Value(g.Hi).Cmp(highest) < 0 {
		arms += " WHEN " + x + " > " + bound(g.Hi) + " THEN " + inSteps(g.Hi)
	}
	if arms == "" {
		return body
	}
	return "CASE" + arms + " ELSE " + body + " END"
}

// clampWhole is clamp for integers that are their own steps, by the functions behind max and min: they keep NULL and cost less
// than CASE, about a tenth of a whole scan.
func (p *StatementPrinter) clampWhole(g *algebra.Grid) string {
	name := map[catalog.Type]string{catalog.Int2: "int2", catalog.Int4: "int4", catalog.Int8: "int8"}[g.X.Typ()]
	clamped := p.asIs(g.X)
	if g.Clamped {
		return clamped
	}
	lowest, highest := scalar.IntegerRange(g.X.Typ())
	if g.Value(g.Hi).Cmp(highest) < 0 {
		clamped = "pg_catalog." + name + "smaller(" + clamped + ", " + p.number(g.Hi, string(g.X.Typ())) + ")"
	}
	if g.Value(g.Lo).Cmp(lowest) > 0 {
		clamped = "pg_catalog." + name + "larger(" + clamped + ", " + p.number(g.Lo, string(g.X.Typ())) + ")"
	}
	return clamped
}

// clampDecimal is clampWhole for numerics: they are compared digit by digit, and once a side is a sixth of a whole sum cheaper than
// CASE. NaN, which sorts above every number, becomes the upper bound.
func (p *StatementPrinter) clampDecimal(g *algebra.Grid) string {
	x := p.asIs(g.X)
	if g.Clamped {
		return x
	}
	bound := func(k *big.Int) string { return p.arg(scalar.DecimalText(g.Value(k)), "numeric") }
	return "pg_catalog.numeric_larger(pg_catalog.numeric_smaller(" + x + ", " + bound(g.Hi) + "), " + bound(g.Lo) + ")"
}

// clampFloat is clampWhole for floats: NaN becomes the upper bound.
func (p *StatementPrinter) clampFloat(g *algebra.Grid) string {
	x := p.asIs(g.X)
	if g.Clamped {
		return x
	}
	if algebra.CarrierOf(g.X) == catalog.Float4 {
		x += "::double precision"
	}
	bound := func(k *big.Int) string { return p.arg(scalar.FormatFloat(g.Float(k), 64), "double precision") }
	return "pg_catalog.float8larger(pg_catalog.float8smaller(" + x + ", " + bound(g.Hi) + "), " + bound(g.Lo) + ")"
}

// decimalSteps are the steps of a grid as they are added up, and whether they are still numbers of the column's unit, to be scaled after
// the sum: where the step is one over a power of ten, rounding to its digits is all that each row needs.
func (p *StatementPrinter) decimalSteps(g *algebra.Grid) (steps string, decimal bool) {
	if digits, ok := decimalDigits(g); ok && digits > 0 && g.Form == algebra.RoundDecimal && p.adds() {
		return "pg_catalog.round(" + p.clampDecimal(g) + ", " + strconv.Itoa(digits) + ")", true
	}
	return p.steps(g), g.Form == algebra.ExactDecimal
}

// stepDigits clamps a numeric, and drops the digits that a column without fixed ones may have beyond all that can matter: a row with the
// longest numeric that there is then costs no more than others in what follows.
func (p *StatementPrinter) stepDigits(g *algebra.Grid) string {
	x := p.clampDecimal(g)
	if _, fixed := algebra.Scale(g.X); fixed || !p.adds() {
		return x
	}
	digits, ok := decimalDigits(g)
	if !ok {
		digits = domain.FreeScale + len(g.Step.Denom().String())
	}
	return "pg_catalog.round(" + x + ", " + strconv.Itoa(digits) + ")"
}

// NeverNull reports whether an expression has a value on every row.
func NeverNull(e algebra.Expr) bool {
	f := algebra.PlainField(e)
	return f != nil && f.NotNull()
}

// MaxCandidates caps the points that a quantile or a mode is chosen from: each point that has rows is a row of the statement's result.
const MaxCandidates = 10_000
