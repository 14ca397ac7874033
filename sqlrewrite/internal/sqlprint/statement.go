package sqlrewrite

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"noisegate/catalog"
)

// statementPrinter prints the statement of a layout. docs/sql.md proves the sensitivity of each form.
type statementPrinter struct {
	*printer
	q      *boundQuery
	shape  shape
	part   *planPart
	inner  []string // per-unit aggregates; u.a0, u.a1, ... above
	ranges *Ranges
	// distributed: tables may lie on several servers; see [Plan.Distribute].
	distributed bool
}

// printPart prints a part's statement. Its value columns are those of its measures, in order, then the number of units if private
// keys are selected by it; of a histogram the place of a candidate, from 0, and its rows.
func printPart(q *boundQuery, s shape, part *planPart) { newStatementPrinter(q, s, part).print() }

// Distribute prints the plan's statements for a database whose tables lie on several servers (Citus). It asks its workers for the columns that HAVING
// names, not for the keys that are computed from them, which is no SQL: so keys that a flat statement computes are held against their domain row by row.
// That are the same groups with the same rows; PostgreSQL itself is faster when it tests groups. The question stays what it is.
func (p *pricedPlan) Distribute() error {
	for i := range p.parts {
		s := newStatementPrinter(p.query, p.shape, &p.parts[i])
		s.distributed = true
		s.print()
	}
	return p.prove(p.snapshot)
}

func newStatementPrinter(q *boundQuery, s shape, part *planPart) *statementPrinter {
	return &statementPrinter{printer: newRowPrinter(), q: q, shape: s, part: part}
}

func (p *statementPrinter) print() {
	q, s, part := p.q, p.shape, p.part
	values := len(part.releases)
	switch {
	case part.histogram(q):
		values = 2
		p.scanned()
	case values > 0 && q.measures[part.releases[0]].kind == countDistinct:
		p.scanned()
	case s.kind == flat:
		p.flat()
	case s.kind == perUnit, s.kind == perUnitAndKey, s.kind == keptKeys:
		p.nested()
	default:
		panic("sqlrewrite: shape without a printed form")
	}
	if part.units {
		values++
	}
	if len(p.lifts) > 0 {
		panic("sqlrewrite: rows that nothing joins")
	}
	part.template = p.template()
	part.statement = Statement{SQL: part.template.sql(), Args: p.args, Keys: len(q.keys), Values: values, Pins: pins(q), Sorts: s.kind != flat,
		Pieces: s.cut != uncut, Hashes: p.pairs, InOrder: p.joins, Chained: p.chained}
	if s.cut == byRange {
		part.statement.Ranges = p.ranges
		part.statement.Sorts = len(q.keys) == 0 // rows come in the order of people; the few groups above them are better hashed
	}
	part.seedArg, part.added = p.seedArg, p.added
}

// measures are those of the part.
func (p *statementPrinter) measures() []measure {
	var all []measure
	for _, i := range p.part.releases {
		all = append(all, p.q.measures[i])
	}
	return all
}

// flat is shape (a): each row is a unit, so nothing but the values' bounds needs enforcing.
func (p *statementPrinter) flat() {
	var outputs, keys []string
	for _, k := range p.q.keys {
		keys = append(keys, p.key(k.x))
		outputs = append(outputs, asTextSQL(p.key(k.x)))
	}
	for _, m := range p.measures() {
		outputs = append(outputs, asTextSQL(p.total(m)))
	}
	if p.part.units {
		outputs = append(outputs, asTextSQL("pg_catalog.count(*)"))
	}
	p.clause("SELECT ", strings.Join(outputs, ",\n       "))
	domain := func() string {
		if p.distributed {
			return p.domainFilter(keys)
		}
		return ""
	}
	from, where, ok := p.steady(p.q.source.node, p.q.where, func() []string { return []string{p.notNullUnit(), domain()} })
	if !ok {
		from = p.from()
		where = joinConditions([]string{p.notNullUnit(), p.rowFilter(), domain()})
	}
	p.clause("\nFROM ", from)
	p.clause("\nWHERE ", where)
	p.clause("\nGROUP BY ", strings.Join(keys, ", "))
	if !p.distributed {
		p.groupFilter(keys)
	}
}

// groupFilter leaves out the groups outside the domain. The CASE makes it a test of the group: a plain HAVING over keys is
// tested by PostgreSQL row by row.
func (p *statementPrinter) groupFilter(keys []string) {
	if domain := p.domainFilter(keys); domain != "" {
		p.clause("\nHAVING ", "CASE WHEN pg_catalog.count(*) > 0 THEN "+domain+" END")
	}
}

// nested are shapes (b), (c) and (d): what each unit has in each group, bounded, then added up.
func (p *statementPrinter) nested() {
	var keys, values []string
	for i := range p.q.keys {
		keys = append(keys, fmt.Sprintf("u.k%d", i))
	}
	for _, m := range p.measures() {
		values = append(values, p.bounded(m))
	}
	if p.part.units {
		values = append(values, "pg_catalog.count(*)")
	}
	units := p.units()
	from := "(" + units + ") AS u"
	if p.shape.cut != uncut {
		from = p.pieces(units, keys, values)
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
	if p.shape.kind == keptKeys {
		p.write("\nWHERE u.place <= ")
		p.arg(fmt.Sprint(p.shape.maxGroups), "bigint")
	}
	p.clause("\nGROUP BY ", strings.Join(keys, ", "))
	if p.shape.kind == perUnitAndKey {
		p.groupFilter(keys)
	}
}

// units are what each unit has in each group: its keys k0, k1, ... and the aggregates that the values above ask for.
func (p *statementPrinter) units() string {
	unit := p.unitKey()
	keys, list := []string{unit}, []string(nil)
	if p.shape.kind == keptKeys || p.shape.cut != uncut {
		list = append(list, unit+" AS unit")
	}
	for i, k := range p.q.keys {
		keys = append(keys, p.key(k.x))
		list = append(list, fmt.Sprintf("%s AS k%d", p.key(k.x), i))
	}
	for i, a := range p.inner {
		list = append(list, fmt.Sprintf("%s AS a%d", a, i))
	}
	if len(list) == 0 {
		list = []string{"1 AS one"}
	}
	domain := []string(nil)
	if p.shape.kind == keptKeys {
		domain = keys[1:] // before the choice: keys that are not shown must not take a place
	}
	source := p.sub(func() {
		p.clause("SELECT ", strings.Join(list, ", "))
		p.fromWhere(domain, true)
		p.clause("\n      GROUP BY ", strings.Join(keys, ", "))
	})
	if p.shape.kind == keptKeys {
		return p.keep(source)
	}
	return source
}

// keep numbers each unit's keys in an order that only the secret seed decides.
func (p *statementPrinter) keep(source string) string {
	return "SELECT v.*, " + p.place("row_number") + "\nFROM (" + source + ") AS v"
}

// place is the place of a group among those of its unit, in an order that only the secret seed decides. The order depends on nothing but
// the unit's own id and keys, so that other units' choices do not move when one unit leaves.
func (p *statementPrinter) place(rank string) string {
	hash := p.unitHash()
	var ties []string
	for i := range p.q.keys {
		key := fmt.Sprintf("v.k%d", i)
		hash = fmt.Sprintf("pg_catalog.hashtextextended(COALESCE(%s, ''), %s)", asTextSQL(key), hash)
		ties = append(ties, key)
	}
	return fmt.Sprintf("pg_catalog.%s() OVER (PARTITION BY v.unit ORDER BY %s, %s) AS place", rank, hash, strings.Join(ties, ", "))
}

// unitHash hashes a unit's id under the secret seed.
func (p *statementPrinter) unitHash() string {
	if p.seedArg == 0 {
		p.seedArg = p.rawArg(int64(0))
	}
	if p.q.source.owner().Type.IsInteger() {
		return fmt.Sprintf("pg_catalog.hashint8extended(v.unit::bigint, $%d::bigint)", p.seedArg)
	}
	return fmt.Sprintf("pg_catalog.hashtextextended(%s, $%d::bigint)", asTextSQL("v.unit"), p.seedArg)
}

// clause writes a clause unless its body is empty.
func (p *statementPrinter) clause(keyword, body string) {
	if body != "" {
		p.write(keyword, body)
	}
}

// unitKey is the expression that tells units apart. Equal ids must have one text, as keys must: the hash of the text decides which
// groups a unit keeps, and that must not depend on which of the unit's rows PostgreSQL happened to read first.
func (p *statementPrinter) unitKey() string {
	unit := p.q.source.owner()
	if unit.Type == catalog.Numeric {
		return "pg_catalog.trim_scale(" + p.field(unit) + ")"
	}
	return p.key(column{of: unit})
}

// notNullUnit drops rows without a unit: nobody's privacy would bound them. A NOT NULL of the policy's day proves nothing: it may
// have been dropped since, and an inheriting table need not have it.
func (p *statementPrinter) notNullUnit() string {
	unit := p.q.source.owner()
	if unit.present {
		return ""
	}
	return "(" + p.field(unit) + " IS NOT NULL)"
}

func (p *statementPrinter) rowFilter() string {
	if p.q.where == nil {
		return ""
	}
	return p.text(p.q.where)
}

func joinConditions(all []string) string {
	var some []string
	for _, c := range all {
		if c != "" {
			some = append(some, c)
		}
	}
	return strings.Join(some, " AND ")
}

// key is the expression that groups by a column. Two rows are in one group iff their texts are equal byte by byte: otherwise the
// text that a group shows would be that of one of its rows.
func (p *statementPrinter) key(e expr) string {
	name := p.operand(e)
	if c, ok := e.(computed); ok {
		// PostgreSQL drops a collation under a collation where it casts the key to text, and would not see that the same key is grouped by.
		if inner, ok := c.total.(collate); ok {
			name = p.text(inner.x)
		}
		switch {
		case isFloat(carrierOf(e)):
			name = "(" + name + " + " + p.sub(func() { p.arg("0", "double precision") }) + ")" // 0 for -0
		case carrierOf(e) == catalog.Numeric:
			name = "pg_catalog.trim_scale(" + name + ")"
		}
	}
	switch e.typ() {
	case catalog.Text:
		return "(" + name + " COLLATE " + byteCollation + ")"
	case catalog.Char:
		return "(" + name + "::" + textType + " COLLATE " + byteCollation + ")"
	default:
		return name
	}
}

// operand prints an expression as it is, without the cast that comparisons of enums need.
func (p *statementPrinter) operand(e expr) string {
	if f := plainField(e); f != nil {
		return p.field(f)
	}
	return p.text(e)
}

func asTextSQL(e string) string { return e + "::" + textType }

// domainFilter leaves out rows or groups whose public keys are not in the declared domain: they are not part of the answer.
func (p *statementPrinter) domainFilter(keys []string) string {
	var all []string
	for i, k := range p.q.keys {
		if p.q.private() {
			continue // a private tuple is selected whatever it holds
		}
		if k.x.typ() == catalog.Bool && neverNull(k.x) && len(k.domain) == 2 && !p.adds() {
			continue // there are no other keys, but for NULL where a column's NOT NULL was dropped
		}
		var texts []string
		null := false
		for _, d := range k.domain {
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

// filterClause is an aggregate's FILTER.
func (p *statementPrinter) filterClause(m measure) string {
	if m.filter == nil {
		return ""
	}
	return " FILTER (WHERE " + p.text(m.filter) + ")"
}

// count is the number of rows of a group that a measure looks at.
func (p *statementPrinter) count(m measure) string {
	switch m.kind {
	case countRows, countUnits:
		return "pg_catalog.count(*)" + p.filterClause(m)
	default:
		return "pg_catalog.count(" + p.operand(m.x) + ")" + p.filterClause(m)
	}
}

// sum is the sum of a measure's steps over the rows of a group, NULL when there are none.
func (p *statementPrinter) sum(m measure) string {
	if m.kind == sumProducts {
		return p.sumOfProducts(m)
	}
	steps, decimal := p.decimalSteps(m.grid)
	s := "pg_catalog.sum(" + steps + ")" + p.filterClause(m)
	if decimal {
		s = "(" + s + " * " + p.number(m.grid.step.Denom(), "numeric") + ")"
	}
	wide := "numeric"
	switch {
	case m.grid.narrow():
		wide = "bigint"
		if !m.grid.small() { // what follows is cheaper in whole numbers
			s += "::bigint"
		}
	case decimal:
		s = "pg_catalog.trunc" + s
	}
	if m.kind != sumCentred {
		return s
	}
	return "(" + s + " - " + p.number(m.grid.centre(), wide) + " * " + p.count(m) + ")"
}

// total is a measure over all rows of a group, for tables where each row is a unit.
func (p *statementPrinter) total(m measure) string {
	switch m.kind {
	case countRows, countValues, countUnits:
		return p.count(m)
	case sumSteps, sumCentred, sumProducts:
		return "COALESCE(" + p.sum(m) + ", 0)"
	default:
		panic("sqlrewrite: measure without a total")
	}
}

// bounded is a measure over units, each of which adds at most what its sensitivity says.
func (p *statementPrinter) bounded(m measure) string {
	limit := func() string { return p.number(big.NewInt(p.shape.maxRows), "bigint") }
	switch m.kind {
	case countUnits:
		if m.filter == nil {
			return "pg_catalog.count(*)"
		}
		return "pg_catalog.count(*) FILTER (WHERE " + p.perUnit(p.count(m)) + " > 0)"
	case countRows, countValues:
		n := p.perUnit(p.count(m))
		return fmt.Sprintf("COALESCE(pg_catalog.sum(CASE WHEN %s > %s THEN %s ELSE %s END), 0)", n, limit(), limit(), n)
	case sumSteps, sumCentred, sumProducts:
		s, n := p.perUnit(p.sum(m)), p.perUnit(p.count(m))
		less := fmt.Sprintf("pg_catalog.div(%s::numeric * %s, %s::numeric)", s, limit(), n)
		if m.kind != sumProducts && m.grid.narrow() {
			less += "::bigint"
		}
		return fmt.Sprintf("COALESCE(pg_catalog.sum(CASE WHEN %s > %s THEN %s ELSE %s END), 0)", n, limit(), less, s)
	default:
		panic("sqlrewrite: measure without a bounded form")
	}
}

// perUnit adds an aggregate to the inner level, once, and gives its name above.
func (p *statementPrinter) perUnit(aggregate string) string {
	for i, known := range p.inner {
		if known == aggregate {
			return fmt.Sprintf("u.a%d", i)
		}
	}
	p.inner = append(p.inner, aggregate)
	return fmt.Sprintf("u.a%d", len(p.inner)-1)
}

func (p *statementPrinter) number(v *big.Int, sqlType string) string {
	return p.sub(func() { p.arg(v.String(), sqlType) })
}

// steps is the value of a column in steps of its grid. CASE clamps: it keeps NULL, sends NaN, which sorts above every
// number, to the upper bound, and does not evaluate the arithmetic of a branch that it does not take.
func (p *statementPrinter) steps(g *grid) string {
	x := p.operand(g.x)
	result := "bigint"
	if g.small() {
		result = "integer"
	}
	switch g.form {
	case wholeSteps:
		body := p.clampWhole(g)
		if t := carrierOf(g.x); t == catalog.Int8 && g.small() || t != catalog.Int8 && !g.small() {
			body += "::" + result
		}
		return body
	case dividedSteps:
		base := new(big.Int).Mul(g.lo, g.step.Num())
		half := new(big.Int).Rsh(g.step.Num(), 1)
		inner := fmt.Sprintf("((%s::bigint - %s) / %s + %s)", x, p.number(base.Sub(base, half), "bigint"),
			p.number(g.step.Num(), "bigint"), p.number(g.lo, "bigint"))
		compare := string(g.x.typ())
		if isFloat(g.x.typ()) {
			compare = "double precision"
		}
		if g.small() {
			inner += "::integer"
		}
		if isFloat(carrierOf(g.x)) && p.adds() {
			return strings.Replace(inner, x+"::bigint", p.clampFloat(g)+"::bigint", 1)
		}
		return p.clamp(g, compare, result, inner)
	case exactDecimal:
		return p.clampDecimal(g)
	case roundDecimal:
		scaled := p.stepDigits(g)
		if !g.step.IsInt() {
			scaled += " * " + p.number(g.step.Denom(), "numeric")
		} else if g.step.Cmp(one()) > 0 {
			scaled += " / " + p.number(g.step.Num(), "numeric")
		}
		return "pg_catalog.round(" + scaled + ")"
	case scaledFloat:
		if p.adds() {
			return "(" + p.clampFloat(g) + " * " + p.number(g.step.Denom(), "double precision") + ")::" + result
		}
		return p.clamp(g, "double precision", result, "("+x+" * "+p.number(g.step.Denom(), "double precision")+")::"+result)
	default:
		panic("sqlrewrite: grid without a printed form")
	}
}

// clamp prints CASE WHEN x < lo THEN lo WHEN x > hi THEN hi ELSE body END, with the bounds in the column's unit for the
// comparison and in steps for the result. A side that the column's type guarantees is left out.
func (p *statementPrinter) clamp(g *grid, compare, result, body string) string {
	if g.clamped {
		return body
	}
	x := p.operand(g.x)
	bound := func(k *big.Int) string {
		if compare == "double precision" {
			return p.sub(func() { p.arg(formatFloat(g.float(k), 64), compare) })
		}
		return p.sub(func() { p.arg(decimalText(g.value(k)), compare) })
	}
	inSteps := func(k *big.Int) string { return p.number(k, result) }
	lowest, highest := integerRange(g.x.typ())
	var arms string
	if lowest == nil || g.value(g.lo).Cmp(lowest) > 0 {
		arms += " WHEN " + x + " < " + bound(g.lo) + " THEN " + inSteps(g.lo)
	}
	if highest == nil || g.value(g.hi).Cmp(highest) < 0 {
		arms += " WHEN " + x + " > " + bound(g.hi) + " THEN " + inSteps(g.hi)
	}
	if arms == "" {
		return body
	}
	return "CASE" + arms + " ELSE " + body + " END"
}

// clampWhole is clamp for integers that are their own steps, by the functions behind max and min: they keep NULL and cost less
// than CASE, about a tenth of a whole scan.
func (p *statementPrinter) clampWhole(g *grid) string {
	name := map[catalog.Type]string{catalog.Int2: "int2", catalog.Int4: "int4", catalog.Int8: "int8"}[g.x.typ()]
	clamped := p.operand(g.x)
	if g.clamped {
		return clamped
	}
	lowest, highest := integerRange(g.x.typ())
	if g.value(g.hi).Cmp(highest) < 0 {
		clamped = "pg_catalog." + name + "smaller(" + clamped + ", " + p.number(g.hi, string(g.x.typ())) + ")"
	}
	if g.value(g.lo).Cmp(lowest) > 0 {
		clamped = "pg_catalog." + name + "larger(" + clamped + ", " + p.number(g.lo, string(g.x.typ())) + ")"
	}
	return clamped
}

// clampDecimal is clampWhole for numerics: they are compared digit by digit, and once a side is a sixth of a whole sum cheaper than
// CASE. NaN, which sorts above every number, becomes the upper bound.
func (p *statementPrinter) clampDecimal(g *grid) string {
	x := p.operand(g.x)
	if g.clamped {
		return x
	}
	bound := func(k *big.Int) string { return p.sub(func() { p.arg(decimalText(g.value(k)), "numeric") }) }
	return "pg_catalog.numeric_larger(pg_catalog.numeric_smaller(" + x + ", " + bound(g.hi) + "), " + bound(g.lo) + ")"
}

// clampFloat is clampWhole for floats: NaN becomes the upper bound.
func (p *statementPrinter) clampFloat(g *grid) string {
	x := p.operand(g.x)
	if g.clamped {
		return x
	}
	if carrierOf(g.x) == catalog.Float4 {
		x += "::double precision"
	}
	bound := func(k *big.Int) string {
		return p.sub(func() { p.arg(formatFloat(g.float(k), 64), "double precision") })
	}
	return "pg_catalog.float8larger(pg_catalog.float8smaller(" + x + ", " + bound(g.hi) + "), " + bound(g.lo) + ")"
}

// decimalSteps are the steps of a grid as they are added up, and whether they are still numbers of the column's unit, to be scaled after the sum:
// where the step is one over a power of ten, rounding to its digits is all that each row needs.
func (p *statementPrinter) decimalSteps(g *grid) (steps string, decimal bool) {
	if digits, ok := g.decimalDigits(); ok && digits > 0 && g.form == roundDecimal && p.adds() {
		return "pg_catalog.round(" + p.clampDecimal(g) + ", " + strconv.Itoa(digits) + ")", true
	}
	return p.steps(g), g.form == exactDecimal
}

// stepDigits clamps a numeric, and drops the digits that a column without fixed ones may have beyond all that can matter: a row with the longest
// numeric that there is then costs no more than others in what follows.
func (p *statementPrinter) stepDigits(g *grid) string {
	x := p.clampDecimal(g)
	if _, fixed := scale(g.x); fixed || !p.adds() {
		return x
	}
	digits, ok := g.decimalDigits()
	if !ok {
		digits = freeScale + len(g.step.Denom().String())
	}
	return "pg_catalog.round(" + x + ", " + strconv.Itoa(digits) + ")"
}

// decimalDigits is d where the step of a grid is 10^-d.
func (g *grid) decimalDigits() (int, bool) {
	digits, exact := g.step.FloatPrec()
	return digits, exact && g.step.Num().Cmp(one().Num()) == 0 && g.step.Denom().Cmp(power10(digits)) == 0
}

// integerRange is the range of an integer type, nil for other types.
func integerRange(t catalog.Type) (lowest, highest *big.Rat) {
	bits := integerBits(t)
	if bits == 0 {
		return nil, nil
	}
	top := new(big.Int).Lsh(big.NewInt(1), bits-1)
	return new(big.Rat).SetInt(new(big.Int).Neg(top)), new(big.Rat).SetInt(new(big.Int).Sub(top, big.NewInt(1)))
}

// integerBits is the width of an integer type, 0 for other types.
func integerBits(t catalog.Type) uint {
	switch t {
	case catalog.Int2:
		return 16
	case catalog.Int4:
		return 32
	case catalog.Int8:
		return 64
	default:
		return 0
	}
}
