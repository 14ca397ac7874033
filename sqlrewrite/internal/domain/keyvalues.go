package domain

import (
	"math/big"
	"slices"
	"strings"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/syntax"
)

// MaxKeys caps the combinations of public keys: each is a row of the answer.
const MaxKeys = 100_000

// Narrow drops the keys that WHERE rules out by itself: no row can have them, so showing them as noisy zeros would only
// mislead. It looks at text and policy alone. The result is not nil, even when it is empty.
func Narrow(domain []catalog.Key, c *algebra.Field, where algebra.Expr) []catalog.Key {
	kept := append(make([]catalog.Key, 0, len(domain)), domain...)
	filter := func(keep func(catalog.Key) bool) {
		n := 0
		for _, k := range kept {
			if keep(k) {
				kept[n] = k
				n++
			}
		}
		kept = kept[:n]
	}
	for _, e := range algebra.BoundConjuncts(where) {
		list, negated, ok := keyCondition(e, c)
		if !ok {
			continue
		}
		filter(func(k catalog.Key) bool {
			if k.Null {
				return false // a comparison with NULL is not true
			}
			for _, v := range list {
				if sameKey(c.Type, k, v) {
					return !negated
				}
			}
			return negated
		})
	}
	return kept
}

// Narrows reports whether [Narrow] applies a condition to the keys of a column.
func Narrows(e algebra.Expr, c *algebra.Field) bool {
	_, _, ok := keyCondition(e, c)
	return ok
}

// keyCondition recognises c = v, c <> v, c IN (v, ...) and c NOT IN (v, ...) for constants that are not NULL.
func keyCondition(e algebra.Expr, c *algebra.Field) (list []algebra.Constant, negated, ok bool) {
	var x algebra.Expr
	var values []algebra.Expr
	switch e := e.(type) {
	case algebra.Binary:
		if e.Op != syntax.Eq && e.Op != syntax.Ne {
			return nil, false, false
		}
		x, values, negated = e.L, []algebra.Expr{e.R}, e.Op == syntax.Ne
		if _, swapped := e.R.(algebra.Column); swapped {
			x, values = e.R, []algebra.Expr{e.L}
		}
	case algebra.In:
		x, values, negated = e.X, e.List, e.Not
	default:
		return nil, false, false
	}
	if col, isColumn := x.(algebra.Column); !isColumn || col.Of != c {
		return nil, false, false
	}
	for _, v := range values {
		k, isConstant := v.(algebra.Constant)
		if !isConstant || k.Null || c.Type.IsTime() && k.T != c.Type {
			return nil, false, false
		}
		list = append(list, k)
	}
	return list, negated, true
}

// sameKey compares a key with a constant of the same family by value.
func sameKey(t catalog.Type, k catalog.Key, v algebra.Constant) bool {
	if t.IsNumber() {
		a, okA := scalar.ParseNumber(k.Text)
		b, okB := scalar.ParseNumber(v.Text)
		return okA && okB && a.Cmp(b) == 0
	}
	return k.Text == v.Text
}

// The keys of GROUP BY x for a computed x are public when policy and text alone bound them: then all of them appear, as those of a declared
// domain do. They are found by evaluating x here for all values of its columns, or, where those are too many, for sets of
// values at once. What is found may hold keys that no row can have; what a row can have is always in it.

// datum is a value as PostgreSQL would compute it.
type datum struct {
	null  bool
	Value *big.Rat // numbers as they are, times in the unit of bounds, conditions as 0 and 1
	text  string   // texts, uuids
	// fuzzy numbers are quotients whose last digits are PostgreSQL's choice.
	fuzzy bool
}

// fuzz is more than PostgreSQL's choice of digits can move a fuzzy number of reasonable size.
const fuzzDigits = 9

// evaluator evaluates expressions over a row whose columns have the given values; a column without one can have any of its values.
type evaluator struct {
	row   map[*algebra.Field]datum
	where algebra.Expr
	work  *int // what is left of MaxWork
	// builtin looks into the table of functions, whose entries evaluate their operands.
	builtin func(name string) *Builtin
	ends    map[*algebra.Field]*scalar.Range // of columns in the row, which conditions ask for on each row
}

// endsOf is the range of a bounded column as it counts in an expression.
func (v evaluator) endsOf(f *algebra.Field) *scalar.Range {
	s := v.ends[f]
	if s == nil {
		s = clampedColumn(f).Range
	}
	if v.ends != nil {
		v.ends[f] = s
	}
	return s
}

const (
	maxCombinations = 10_000 // rows that are tried one by one
	MaxWork         = 50_000 // values looked at for all keys of a query: some 30 ms at most (A44)
)

// spend reports whether there is work left to look at n values.
func (v evaluator) spend(n int) bool {
	*v.work -= n
	return *v.work >= 0
}

// KeyDomainIn gives all keys of x in canonical order; ok is false when policy and text do not bound them, or not exactly, or when the
// work that is left does not suffice. A condition is true, false or NULL at worst.
func KeyDomainIn(x, where algebra.Expr, work *int) (keys []catalog.Key, ok bool) {
	if x.Typ() != catalog.Bool {
		return keyDomain(x, where, work)
	}
	least := *work - MaxWork/10 // the next key is looked at too, but for ten such conditions
	keys, ok = keyDomain(x, where, work)
	*work = max(*work, least)
	if ok {
		return keys, true
	}
	found := make(map[string]datum)
	for _, d := range anyTruth() {
		found[d.identity()] = d
	}
	return inOrder(found, x.Typ())
}

// keyDomain evaluates x for all that its columns can be.
func keyDomain(x, where algebra.Expr, work *int) (keys []catalog.Key, ok bool) {
	v := evaluator{builtin: BuiltinOf, row: make(map[*algebra.Field]datum), where: where, work: work,
		ends: make(map[*algebra.Field]*scalar.Range)}
	type leafValues struct {
		of     *algebra.Field
		values []datum
	}
	var leaves []leafValues
	combinations := 1
	for _, f := range ColumnsOf(x) {
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
		if len(found) > MaxKeys {
			return nil, false
		}
	}
	return inOrder(found, x.Typ())
}

// ColumnsOf are the columns of an expression, each once.
func ColumnsOf(e algebra.Expr) (all []*algebra.Field) {
	for _, x := range algebra.Parts(e) {
		if f := algebra.PlainField(x); f != nil && !slices.Contains(all, f) {
			all = append(all, f)
		}
	}
	return all
}

// identity is equal for equal values.
func (d datum) identity() string {
	switch {
	case d.null:
		return "null"
	case d.Value != nil:
		return "v" + d.Value.RatString()
	default:
		return "t" + d.text
	}
}

func nullDatum() datum             { return datum{null: true} }
func numberDatum(v *big.Rat) datum { return datum{Value: v} }
func textDatum(s string) datum     { return datum{text: s} }
func truthDatum(b bool) datum      { return datum{Value: scalar.Number(int64(algebra.BoolIndex(b)))} }
func (d datum) isTrue() bool       { return !d.null && d.Value != nil && d.Value.Sign() > 0 }
func anyTruth() []datum            { return []datum{truthDatum(false), truthDatum(true), nullDatum()} }
func only(d datum) ([]datum, bool) { return []datum{d}, true }
func isNull(d datum) bool          { return d.null }
func wholeNumbers(s *scalar.Range) *big.Int {
	return new(big.Int).Sub(scalar.Floor(s.Hi), scalar.Ceil(s.Lo))
}

// DatumOf reads a key or constant.
func DatumOf(k catalog.Key, t catalog.Type) (datum, bool) {
	switch {
	case k.Null:
		return nullDatum(), true
	case t.IsNumber():
		n, ok := scalar.ParseNumber(k.Text)
		return numberDatum(n), ok
	case t == catalog.Bool:
		return truthDatum(k.Text == "true"), true
	case t.IsTime():
		at, ok := scalar.Instant(k.Text)
		if !ok {
			return datum{}, false
		}
		return numberDatum(scalar.InUnit(at, t)), true
	case scalar.FamilyOf(t) == scalar.TextFamily, t == catalog.UUID:
		return textDatum(k.Text), true
	default:
		return datum{}, false
	}
}

// values are what e can be in the row; ok is false when they are not known, or too many.
func (v evaluator) values(e algebra.Expr) ([]datum, bool) {
	if !v.spend(1) {
		return nil, false
	}
	switch e := e.(type) {
	case algebra.Column:
		if d, ok := v.row[e.Of]; ok {
			return only(d)
		}
		return v.columnValues(e.Of)
	case algebra.Constant:
		d, ok := DatumOf(catalog.Key{Text: e.Text, Null: e.Null}, e.T)
		return []datum{d}, ok
	case algebra.Computed:
		if all, ok := v.operation(e.Written); ok {
			return all, true
		}
		return v.ofRange(e)
	case algebra.Cast: // to text, which binding adds
		return v.operation(e)
	case algebra.Not, algebra.In, algebra.Is, algebra.Distinct, algebra.Like, algebra.Exists, algebra.InRows:
		return v.truth(e), true
	case algebra.Binary:
		return v.truth(e), true // arithmetic is computed
	default:
		return nil, false
	}
}

// ofRange are the whole numbers between the bounds of an operation that gives whole numbers.
func (v evaluator) ofRange(e algebra.Computed) ([]datum, bool) {
	if e.Within == nil || !e.Within.Bounded() || !v.givesWhole(e) || !v.spendWhole(e.Within) {
		return nil, false
	}
	return append(whole(e.Within), nullDatum()), true
}

func (v evaluator) givesWhole(e algebra.Computed) bool {
	if e.Typ().IsInteger() {
		return true
	}
	c, ok := e.Written.(algebra.Call)
	if ok && c.Name == "extract" && c.Args[1].Typ() == scalar.IntervalType {
		return e.Within.Scale == 0 // and not of a part of a second
	}
	return ok && len(c.Args) == 1 && v.builtin(c.Name).Whole
}

// combine applies f to all pairs of values of two operands.
func (v evaluator) combine(l, r algebra.Expr, f func(a, b datum) (datum, bool)) ([]datum, bool) {
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

func (v evaluator) each(x algebra.Expr, f func(datum) (datum, bool)) ([]datum, bool) {
	return v.combine(x, algebra.Constant{T: catalog.Bool, Text: "true"}, func(a, _ datum) (datum, bool) { return f(a) })
}

func listed(found map[string]datum) []datum {
	all := make([]datum, 0, len(found))
	for _, d := range found {
		all = append(all, d)
	}
	return all
}

// operation evaluates what was written.
func (v evaluator) operation(e algebra.Expr) ([]datum, bool) {
	switch e := e.(type) {
	case algebra.Negate:
		return v.each(e.X, func(d datum) (datum, bool) { return datum{Value: new(big.Rat).Neg(d.Value), fuzzy: d.fuzzy}, true })
	case algebra.Binary:
		if e.Op == syntax.Concat {
			return v.combine(e.L, e.R, func(a, b datum) (datum, bool) { return textDatum(a.text + b.text), true })
		}
		if !e.L.Typ().IsNumber() || !e.R.Typ().IsNumber() {
			return v.timeOperation(e)
		}
		return v.combine(e.L, e.R, func(a, b datum) (datum, bool) { return arithmetic(e.Op, e.T, a, b) })
	case algebra.Choice:
		return v.choice(e)
	case algebra.Cast:
		return v.cast(e)
	case algebra.Call:
		return v.call(e)
	default:
		return nil, false
	}
}

// arithmetic computes as PostgreSQL does in type t.
func arithmetic(op syntax.Operator, t catalog.Type, a, b datum) (datum, bool) {
	d := datum{Value: new(big.Rat), fuzzy: a.fuzzy || b.fuzzy}
	if (op == syntax.Divide || op == syntax.Modulo) && b.Value.Sign() == 0 {
		return nullDatum(), !b.fuzzy
	}
	x, y := a.Value, b.Value
	if scalar.IsFloat(t) {
		x, y = scalar.AsFloat(x), scalar.AsFloat(y)
	}
	switch op {
	case syntax.Add:
		d.Value.Add(x, y)
	case syntax.Subtract:
		d.Value.Sub(x, y)
	case syntax.Multiply:
		d.Value.Mul(x, y)
	case syntax.Divide:
		d.Value.Quo(x, y)
		if t.IsInteger() {
			d.Value.SetInt(scalar.TowardZero(d.Value))
		} else if t == catalog.Numeric {
			digits, exact := d.Value.FloatPrec()
			d.fuzzy = d.fuzzy || !exact || digits > quotientDigits
		}
	case syntax.Modulo:
		whole := new(big.Rat).SetInt(scalar.TowardZero(new(big.Rat).Quo(x, y)))
		d.Value.Sub(x, whole.Mul(whole, y))
	default:
		return datum{}, false
	}
	if scalar.IsFloat(t) {
		d.Value = scalar.AsFloat(d.Value)
	}
	return d, !scalar.IsFloat(t) || !d.fuzzy
}

// timeOperation is a date with days added, or the days between two.
func (v evaluator) timeOperation(e algebra.Binary) ([]datum, bool) {
	if e.T != catalog.Date && e.T != catalog.Int4 {
		return nil, false
	}
	return v.combine(e.L, e.R, func(a, b datum) (datum, bool) { return arithmetic(e.Op, catalog.Int4, a, b) })
}

// truth evaluates a condition; what cannot be decided here can be anything.
func (v evaluator) truth(e algebra.Expr) []datum {
	var all []datum
	ok := false
	switch e := e.(type) {
	case algebra.Not:
		all, ok = v.each(e.X, func(d datum) (datum, bool) { return truthDatum(!d.isTrue()), true })
	case algebra.Binary:
		all, ok = v.comparison(e)
	case algebra.Is:
		all, ok = v.is(e)
	case algebra.In:
		all, ok = v.in(e)
	}
	if !ok {
		return anyTruth()
	}
	return all
}

func (v evaluator) comparison(e algebra.Binary) ([]datum, bool) {
	if e.Op == syntax.And || e.Op == syntax.Or {
		stop := e.Op == syntax.Or // the value that decides
		as, okA := v.values(e.L)
		bs, okB := v.values(e.R)
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
	if all, ok := v.beyondBounds(e); ok {
		return all, true
	}
	return v.combine(e.L, e.R, func(a, b datum) (datum, bool) {
		order, ok := compareData(a, b, e.L.Typ(), e.R.Typ())
		if !ok || a.Value == nil && e.Op != syntax.Eq && e.Op != syntax.Ne {
			return datum{}, false // the order of texts is the database's
		}
		return truthDatum(compares(e.Op, order)), true
	})
}

// beyondBounds are the truth values of a bounded column's comparison with a constant. A condition sees the column's value itself: where the
// column counts as one of its bounds, it may lie beyond.
func (v evaluator) beyondBounds(e algebra.Binary) ([]datum, bool) {
	f := algebra.PlainField(e.L)
	if f == nil {
		f = algebra.PlainField(e.R)
	}
	if f == nil || f.Domain() != nil || !IsGrid(f) {
		return nil, false
	}
	op, with, ok := comparedWith(e, f)
	if !ok {
		return nil, false
	}
	var within *scalar.Range
	null := false
	switch d, known := v.row[f]; {
	case known && d.null:
		return []datum{d}, true
	case known:
		within = &scalar.Range{Lo: d.Value, Hi: d.Value}
	default:
		within, null = v.within(f)
	}
	at, bounds := with[0], v.endsOf(f)
	orders := []int{within.Lo.Cmp(at), within.Hi.Cmp(at)}
	if within.Lo.Cmp(at) < 0 && at.Cmp(within.Hi) < 0 {
		orders = append(orders, 0)
	}
	for outwards, end := range map[int][2]*big.Rat{-1: {within.Lo, bounds.Lo}, 1: {within.Hi, bounds.Hi}} {
		if end[0].Cmp(end[1]) != 0 {
			continue
		}
		orders = append(orders, outwards)
		if at.Cmp(end[1]) == outwards {
			orders = append(orders, 0, -outwards)
		}
	}
	found := make(map[string]datum)
	for _, order := range orders {
		t := truthDatum(compares(op, order))
		found[t.identity()] = t
	}
	if null {
		found[nullDatum().identity()] = nullDatum()
	}
	return listed(found), true
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
	case a.Value == nil || b.Value == nil:
		return strings.Compare(a.text, b.text), a.Value == nil && b.Value == nil && at != catalog.Char && bt != catalog.Char
	case a.fuzzy || b.fuzzy:
		gap := new(big.Rat).Sub(a.Value, b.Value)
		return gap.Sign(), new(big.Rat).Abs(gap).Cmp(new(big.Rat).SetFrac(big.NewInt(1), scalar.Power10(fuzzDigits))) > 0
	case at.IsTime() && at != bt:
		return 0, false
	default:
		return a.Value.Cmp(b.Value), true
	}
}

func (v evaluator) is(e algebra.Is) ([]datum, bool) {
	all, ok := v.values(e.X)
	if !ok {
		return []datum{truthDatum(false), truthDatum(true)}, true
	}
	found := make(map[string]datum)
	for _, d := range all {
		holds := d.null
		switch e.What {
		case syntax.IsTrue:
			holds = d.isTrue()
		case syntax.IsFalse:
			holds = !d.null && !d.isTrue()
		case syntax.IsNull, syntax.IsUnknown:
		}
		t := truthDatum(holds != e.Not)
		found[t.identity()] = t
	}
	return listed(found), true
}

func (v evaluator) in(e algebra.In) ([]datum, bool) {
	var chain algebra.Expr = algebra.Binary{Op: syntax.Eq, L: e.X, R: e.List[0], T: catalog.Bool}
	for _, item := range e.List[1:] {
		chain = algebra.Binary{Op: syntax.Or, L: chain, R: algebra.Binary{Op: syntax.Eq, L: e.X, R: item, T: catalog.Bool}, T: catalog.Bool}
	}
	if e.Not {
		chain = algebra.Not{X: chain}
	}
	return v.truth(chain), true
}

// choice collects the results of the arms that can be taken.
func (v evaluator) choice(e algebra.Choice) ([]datum, bool) {
	found := make(map[string]datum)
	add := func(result algebra.Expr) bool {
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
	for _, a := range e.Arms {
		can, must := false, true
		conditions, ok := v.values(a.Cond)
		if !ok {
			conditions = anyTruth()
		}
		for _, d := range conditions {
			can, must = can || d.isTrue(), must && d.isTrue()
		}
		if can && !add(a.Result) {
			return nil, false
		}
		if must {
			return listed(found), true
		}
	}
	if !add(e.Otherwise) {
		return nil, false
	}
	return listed(found), true
}

func (v evaluator) cast(e algebra.Cast) ([]datum, bool) {
	from := e.X.Typ()
	if from.IsTime() && from != catalog.Date && e.T == catalog.Date {
		return v.starts("day", e.X, e.T)
	}
	return v.each(e.X, func(d datum) (datum, bool) {
		switch {
		case e.T == catalog.Text && scalar.FamilyOf(from) == scalar.TextFamily && from != catalog.Char:
			return d, true
		case e.T == catalog.Text && (from.IsInteger() || from == catalog.Date):
			return textDatum(valueText(d, from)), true
		case e.T == catalog.Text && from == catalog.Bool:
			return textDatum(valueText(d, from)), true
		case from == catalog.Bool && e.T.IsInteger():
			return d, true
		case from.IsInteger() && e.T.IsNumber() && len(e.Mods) == 0:
			lowest, highest := scalar.IntegerRange(e.T)
			return d, lowest == nil || lowest.Cmp(d.Value) <= 0 && d.Value.Cmp(highest) <= 0
		case from == catalog.Date && e.T.IsTime() && e.T != from:
			return numberDatum(new(big.Rat).Mul(d.Value, scalar.Number(scalar.DayUnit))), true
		case from.IsTime() && e.T.IsTime(): // of one unit: the session's time zone is UTC
			return d, true
		default:
			return datum{}, false
		}
	})
}
