package sqlrewrite

import (
	"math/big"
	"strings"

	"noisegate/catalog"
	"noisegate/sqlrewrite/syntax"
)

// The keys of GROUP BY x for a computed x are public when policy and text alone bound them: then all of them appear, as those of a declared
// domain do. They are found by evaluating x here for all values of its columns, or, where those are too many, for sets of
// values at once. What is found may hold keys that no row can have; what a row can have is always in it.

// datum is a value as PostgreSQL would compute it.
type datum struct {
	null  bool
	value *big.Rat // numbers as they are, times in the unit of bounds, conditions as 0 and 1
	text  string   // texts, uuids
	// fuzzy numbers are quotients whose last digits are PostgreSQL's choice.
	fuzzy bool
}

// fuzz is more than PostgreSQL's choice of digits can move a fuzzy number of reasonable size.
const fuzzDigits = 9

// evaluator evaluates expressions over a row whose columns have the given values; a column without one can have any of its values.
type evaluator struct {
	row   map[*field]datum
	where expr
	work  *int // what is left of maxWork
}

const (
	maxCombinations = 10_000 // rows that are tried one by one
	maxWork         = 50_000 // values looked at for all keys of a query: some 30 ms at most (A44)
)

// spend reports whether there is work left to look at n values.
func (v evaluator) spend(n int) bool {
	*v.work -= n
	return *v.work >= 0
}

// keyDomainIn gives all keys of x in canonical order; ok is false when policy and text do not bound them, or not exactly, or when the
// work that is left does not suffice.
func keyDomainIn(x, where expr, work *int) (keys []catalog.Key, ok bool) {
	v := evaluator{row: make(map[*field]datum), where: where, work: work}
	type leafValues struct {
		of     *field
		values []datum
	}
	var leaves []leafValues
	combinations := 1
	for _, f := range columnsOf(x) {
		values, ok := v.columnValues(f)
		if !ok || len(values) == 0 || combinations*len(values) > maxCombinations {
			continue // left to sets
		}
		combinations *= len(values)
		leaves = append(leaves, leafValues{f, values})
	}
	found := make(map[string]datum)
	for i := range combinations {
		rest := i
		for _, l := range leaves {
			v.row[l.of] = l.values[rest%len(l.values)]
			rest /= len(l.values)
		}
		all, ok := v.values(x)
		if !ok {
			return nil, false
		}
		for _, d := range all {
			if d.fuzzy {
				return nil, false
			}
			found[d.identity()] = d
		}
		if len(found) > maxKeys {
			return nil, false
		}
	}
	return inOrder(found, x.typ())
}

// columnsOf are the columns of an expression, each once.
func columnsOf(e expr) []*field {
	var all []*field
	seen := make(map[*field]bool)
	var walk func(expr)
	walk = func(e expr) {
		if f := plainField(e); f != nil && !seen[f] {
			seen[f] = true
			all = append(all, f)
		}
		for _, child := range children(e) {
			walk(child)
		}
	}
	walk(e)
	return all
}

// identity is equal for equal values.
func (d datum) identity() string {
	switch {
	case d.null:
		return "null"
	case d.value != nil:
		return "v" + d.value.RatString()
	default:
		return "t" + d.text
	}
}

func nullDatum() datum                { return datum{null: true} }
func numberDatum(v *big.Rat) datum    { return datum{value: v} }
func textDatum(s string) datum        { return datum{text: s} }
func truthDatum(b bool) datum         { return datum{value: number(int64(boolIndex(b)))} }
func (d datum) isTrue() bool          { return !d.null && d.value != nil && d.value.Sign() > 0 }
func anyTruth() []datum               { return []datum{truthDatum(false), truthDatum(true), nullDatum()} }
func only(d datum) ([]datum, bool)    { return []datum{d}, true }
func isNull(d datum) bool             { return d.null }
func wholeNumbers(s *extent) *big.Int { return new(big.Int).Sub(floor(s.hi), ceil(s.lo)) }

// datumOf reads a key or constant.
func datumOf(k catalog.Key, t catalog.Type) (datum, bool) {
	switch {
	case k.Null:
		return nullDatum(), true
	case t.IsNumber():
		n, ok := parseNumber(k.Text)
		return numberDatum(n), ok
	case t == catalog.Bool:
		return truthDatum(k.Text == "true"), true
	case t.IsTime():
		at, ok := instant(k.Text)
		if !ok {
			return datum{}, false
		}
		return numberDatum(inUnit(at, t)), true
	case familyOf(t) == textFamily, t == catalog.UUID:
		return textDatum(k.Text), true
	default:
		return datum{}, false
	}
}

// values are what e can be in the row; ok is false when they are not known, or too many.
func (v evaluator) values(e expr) ([]datum, bool) {
	if !v.spend(1) {
		return nil, false
	}
	switch e := e.(type) {
	case column:
		if d, ok := v.row[e.of]; ok {
			return only(d)
		}
		return v.columnValues(e.of)
	case constant:
		d, ok := datumOf(catalog.Key{Text: e.text, Null: e.null}, e.t)
		return []datum{d}, ok
	case computed:
		if all, ok := v.operation(e.written); ok {
			return all, true
		}
		return v.ofExtent(e)
	case cast: // to text, which binding adds
		return v.operation(e)
	case not, in, is, distinct, like:
		return v.truth(e), true
	case binary:
		return v.truth(e), true // arithmetic is computed
	default:
		return nil, false
	}
}

// ofExtent are the whole numbers between the bounds of an operation that gives whole numbers.
func (v evaluator) ofExtent(e computed) ([]datum, bool) {
	if e.within == nil || !e.within.bounded() || !givesWhole(e) || !v.spendWhole(e.within) {
		return nil, false
	}
	return append(whole(e.within), nullDatum()), true
}

func givesWhole(e computed) bool {
	if e.typ().IsInteger() {
		return true
	}
	c, ok := e.written.(call)
	return ok && len(c.args) == 1 && (c.name == "floor" || c.name == "ceil" || c.name == "ceiling" || c.name == "round" || c.name == "trunc" || c.name == "sign")
}

// combine applies f to all pairs of values of two operands.
func (v evaluator) combine(l, r expr, f func(a, b datum) (datum, bool)) ([]datum, bool) {
	as, okA := v.values(l)
	bs, okB := v.values(r)
	if !okA || !okB || !v.spend(len(as)*len(bs)) {
		return nil, false
	}
	found := make(map[string]datum)
	for _, a := range as {
		for _, b := range bs {
			d, ok := nullDatum(), true
			if !a.null && !b.null {
				d, ok = f(a, b)
			}
			if !ok {
				return nil, false
			}
			found[d.identity()] = d
		}
	}
	return listed(found), true
}

func (v evaluator) each(x expr, f func(datum) (datum, bool)) ([]datum, bool) {
	return v.combine(x, constant{t: catalog.Bool, text: "true"}, func(a, _ datum) (datum, bool) { return f(a) })
}

func listed(found map[string]datum) []datum {
	all := make([]datum, 0, len(found))
	for _, d := range found {
		all = append(all, d)
	}
	return all
}

// operation evaluates what was written.
func (v evaluator) operation(e expr) ([]datum, bool) {
	switch e := e.(type) {
	case negate:
		return v.each(e.x, func(d datum) (datum, bool) { return datum{value: new(big.Rat).Neg(d.value), fuzzy: d.fuzzy}, true })
	case binary:
		if e.op == syntax.Concat {
			return v.combine(e.l, e.r, func(a, b datum) (datum, bool) { return textDatum(a.text + b.text), true })
		}
		if !e.l.typ().IsNumber() || !e.r.typ().IsNumber() {
			return v.timeOperation(e)
		}
		return v.combine(e.l, e.r, func(a, b datum) (datum, bool) { return arithmetic(e.op, e.t, a, b) })
	case choice:
		return v.choice(e)
	case cast:
		return v.cast(e)
	case call:
		return v.call(e)
	default:
		return nil, false
	}
}

// arithmetic computes as PostgreSQL does in type t.
func arithmetic(op syntax.Operator, t catalog.Type, a, b datum) (datum, bool) {
	d := datum{value: new(big.Rat), fuzzy: a.fuzzy || b.fuzzy}
	if (op == syntax.Divide || op == syntax.Modulo) && b.value.Sign() == 0 {
		return nullDatum(), !b.fuzzy
	}
	x, y := a.value, b.value
	if isFloat(t) {
		x, y = asFloat(x), asFloat(y)
	}
	switch op {
	case syntax.Add:
		d.value.Add(x, y)
	case syntax.Subtract:
		d.value.Sub(x, y)
	case syntax.Multiply:
		d.value.Mul(x, y)
	case syntax.Divide:
		d.value.Quo(x, y)
		if t.IsInteger() {
			d.value.SetInt(towardZero(d.value))
		} else if t == catalog.Numeric {
			digits, exact := d.value.FloatPrec()
			d.fuzzy = d.fuzzy || !exact || digits > quotientDigits
		}
	case syntax.Modulo:
		whole := new(big.Rat).SetInt(towardZero(new(big.Rat).Quo(x, y)))
		d.value.Sub(x, whole.Mul(whole, y))
	default:
		return datum{}, false
	}
	if isFloat(t) {
		d.value = asFloat(d.value)
	}
	return d, !isFloat(t) || !d.fuzzy
}

// timeOperation is a date with days added, or the days between two.
func (v evaluator) timeOperation(e binary) ([]datum, bool) {
	if e.t != catalog.Date && e.t != catalog.Int4 {
		return nil, false
	}
	return v.combine(e.l, e.r, func(a, b datum) (datum, bool) { return arithmetic(e.op, catalog.Int4, a, b) })
}

// truth evaluates a condition; what cannot be decided here can be anything.
func (v evaluator) truth(e expr) []datum {
	var all []datum
	ok := false
	switch e := e.(type) {
	case not:
		all, ok = v.each(e.x, func(d datum) (datum, bool) { return truthDatum(!d.isTrue()), true })
	case binary:
		all, ok = v.comparison(e)
	case is:
		all, ok = v.is(e)
	case in:
		all, ok = v.in(e)
	}
	if !ok {
		return anyTruth()
	}
	return all
}

func (v evaluator) comparison(e binary) ([]datum, bool) {
	if e.op == syntax.And || e.op == syntax.Or {
		stop := e.op == syntax.Or // the value that decides
		as, okA := v.values(e.l)
		bs, okB := v.values(e.r)
		if !okA || !okB {
			return nil, false
		}
		found := make(map[string]datum)
		for _, a := range as {
			for _, b := range bs {
				d := truthDatum(!stop)
				switch {
				case !a.null && a.isTrue() == stop || !b.null && b.isTrue() == stop:
					d = truthDatum(stop)
				case a.null || b.null:
					d = nullDatum()
				}
				found[d.identity()] = d
			}
		}
		return listed(found), true
	}
	return v.combine(e.l, e.r, func(a, b datum) (datum, bool) {
		order, ok := compareData(a, b, e.l.typ(), e.r.typ())
		if !ok || a.value == nil && e.op != syntax.Eq && e.op != syntax.Ne {
			return datum{}, false // the order of texts is the database's
		}
		return truthDatum(compares(e.op, order)), true
	})
}

func compares(op syntax.Operator, order int) bool {
	switch op {
	case syntax.Eq:
		return order == 0
	case syntax.Ne:
		return order != 0
	case syntax.Lt:
		return order < 0
	case syntax.Le:
		return order <= 0
	case syntax.Gt:
		return order > 0
	default:
		return order >= 0
	}
}

// compareData compares values of two types; ok is false when that cannot be told here.
func compareData(a, b datum, at, bt catalog.Type) (order int, ok bool) {
	switch {
	case a.value == nil || b.value == nil:
		return strings.Compare(a.text, b.text), a.value == nil && b.value == nil && at != catalog.Char && bt != catalog.Char
	case a.fuzzy || b.fuzzy:
		gap := new(big.Rat).Sub(a.value, b.value)
		return gap.Sign(), new(big.Rat).Abs(gap).Cmp(new(big.Rat).SetFrac(big.NewInt(1), power10(fuzzDigits))) > 0
	case at.IsTime() && at != bt:
		return 0, false
	default:
		return a.value.Cmp(b.value), true
	}
}

func (v evaluator) is(e is) ([]datum, bool) {
	all, ok := v.values(e.x)
	if !ok {
		return []datum{truthDatum(false), truthDatum(true)}, true
	}
	found := make(map[string]datum)
	for _, d := range all {
		holds := d.null
		switch e.what {
		case syntax.IsTrue:
			holds = d.isTrue()
		case syntax.IsFalse:
			holds = !d.null && !d.isTrue()
		case syntax.IsNull, syntax.IsUnknown:
		}
		t := truthDatum(holds != e.not)
		found[t.identity()] = t
	}
	return listed(found), true
}

func (v evaluator) in(e in) ([]datum, bool) {
	var chain expr = binary{op: syntax.Eq, l: e.x, r: e.list[0], t: catalog.Bool}
	for _, item := range e.list[1:] {
		chain = binary{op: syntax.Or, l: chain, r: binary{op: syntax.Eq, l: e.x, r: item, t: catalog.Bool}, t: catalog.Bool}
	}
	if e.not {
		chain = not{x: chain}
	}
	return v.truth(chain), true
}

// choice collects the results of the arms that can be taken.
func (v evaluator) choice(e choice) ([]datum, bool) {
	found := make(map[string]datum)
	add := func(result expr) bool {
		all := []datum{nullDatum()}
		if result != nil {
			var ok bool
			if all, ok = v.values(result); !ok {
				return false
			}
		}
		for _, d := range all {
			found[d.identity()] = d
		}
		return true
	}
	for _, a := range e.arms {
		can, must := false, true
		conditions, ok := v.values(a.cond)
		if !ok {
			conditions = anyTruth()
		}
		for _, d := range conditions {
			can, must = can || d.isTrue(), must && d.isTrue()
		}
		if can && !add(a.result) {
			return nil, false
		}
		if must {
			return listed(found), true
		}
	}
	if !add(e.otherwise) {
		return nil, false
	}
	return listed(found), true
}

func (v evaluator) cast(e cast) ([]datum, bool) {
	from := e.x.typ()
	return v.each(e.x, func(d datum) (datum, bool) {
		switch {
		case e.t == catalog.Text && familyOf(from) == textFamily && from != catalog.Char:
			return d, true
		case e.t == catalog.Text && (from.IsInteger() || from == catalog.Date):
			return textDatum(valueText(d, from)), true
		case e.t == catalog.Text && from == catalog.Bool:
			return textDatum(valueText(d, from)), true
		case from == catalog.Bool && e.t.IsInteger():
			return d, true
		case from.IsInteger() && e.t.IsNumber() && len(e.mods) == 0:
			lowest, highest := integerRange(e.t)
			return d, lowest == nil || lowest.Cmp(d.value) <= 0 && d.value.Cmp(highest) <= 0
		case from == catalog.Date && e.t == catalog.Timestamp:
			return numberDatum(new(big.Rat).Mul(d.value, number(dayUnit))), true
		default:
			return datum{}, false
		}
	})
}
