package sqlrewrite

import (
	"cmp"
	"math/big"
	"slices"
	"strconv"
	"time"

	"noisegate/catalog"
)

// call evaluates the functions whose values are the same here and in PostgreSQL.
func (v evaluator) call(e call) ([]datum, bool) {
	switch e.name {
	case "coalesce":
		return v.firstOf(e.args)
	case "nullif":
		return v.nullif(e)
	case "extract", "date_part":
		return v.extract(e)
	case "date_trunc":
		return v.truncations(e)
	case "floor", "ceil", "ceiling", "trunc", "round", "abs", "sign":
		if len(e.args) != 1 {
			return nil, false
		}
		return v.each(e.args[0], func(d datum) (datum, bool) { return roundDatum(e, d) })
	case "length":
		return v.each(e.args[0], func(d datum) (datum, bool) {
			return numberDatum(number(int64(len([]rune(d.text))))), len(d.text) < maxText
		})
	case `"left"`, "substr":
		return v.part(e)
	default:
		return nil, false
	}
}

// nullif gives the first where the second is NULL, unlike other functions.
func (v evaluator) nullif(e call) ([]datum, bool) {
	as, okA := v.values(e.args[0])
	bs, okB := v.values(e.args[1])
	if !okA || !okB || !v.spend(len(as)*len(bs)) {
		return nil, false
	}
	found := make(map[string]datum)
	for _, a := range as {
		for _, b := range bs {
			d := a
			if !a.null && !b.null {
				order, ok := compareData(a, b, e.args[0].typ(), e.args[1].typ())
				if !ok {
					return nil, false
				}
				if order == 0 {
					d = nullDatum()
				}
			}
			found[d.identity()] = d
		}
	}
	return listed(found), true
}

func (v evaluator) firstOf(args []expr) ([]datum, bool) {
	found := make(map[string]datum)
	for _, arg := range args {
		all, ok := v.values(arg)
		if !ok {
			return nil, false
		}
		if len(args) > 1 {
			delete(found, nullDatum().identity())
		}
		for _, d := range all {
			found[d.identity()] = d
		}
		if !slices.ContainsFunc(all, isNull) {
			break
		}
	}
	return listed(found), true
}

// roundDatum is a rounding, of a number that does not lie too near to where it jumps.
func roundDatum(e call, d datum) (datum, bool) {
	x := new(big.Rat).Set(d.value)
	if isFloat(e.t) {
		x = asFloat(x)
	}
	if d.fuzzy {
		twice := new(big.Rat).Mul(x, number(2))
		near := new(big.Rat).SetInt(floor(new(big.Rat).Add(twice, big.NewRat(1, 2))))
		if order, ok := compareData(datum{value: twice, fuzzy: true}, numberDatum(near), catalog.Numeric, catalog.Numeric); !ok && order != 0 {
			return datum{}, false
		}
	}
	switch e.name {
	case "abs":
		return datum{value: x.Abs(x), fuzzy: d.fuzzy}, true
	case "sign":
		return numberDatum(number(int64(x.Sign()))), true
	case "floor":
		return numberDatum(x.SetInt(floor(x))), true
	case "ceil", "ceiling":
		return numberDatum(x.SetInt(ceil(x))), true
	case "trunc":
		return numberDatum(x.SetInt(towardZero(x))), true
	}
	rounded := roundTo(x, 0)
	if isFloat(e.t) && !x.IsInt() && x.Denom().Cmp(big.NewInt(2)) == 0 { // half goes to the even neighbour
		half := floor(x)
		if half.Bit(0) == 1 {
			half.Add(half, big.NewInt(1))
		}
		rounded = new(big.Rat).SetInt(half)
	}
	return numberDatum(rounded), true
}

// part is left(x, n) and substr(x, from, count) of short texts.
func (v evaluator) part(e call) ([]datum, bool) {
	from, okFrom := 1, true
	count, okCount := wholeConstant(e.args[len(e.args)-1])
	if e.name == "substr" {
		from, okFrom = wholeConstant(e.args[1])
		if len(e.args) == 2 {
			count, okCount = maxText, true
		}
	}
	if !okFrom || !okCount || count < 0 {
		return nil, false
	}
	return v.each(e.args[0], func(d datum) (datum, bool) {
		letters := []rune(d.text)
		first := min(max(from-1, 0), len(letters))
		last := min(max(from-1+count, first), len(letters))
		return textDatum(string(letters[first:last])), len(d.text) < maxText
	})
}

// times are the values of a time for a function of them that only sees whole units: one of a column without a value here is given by its
// narrowed bounds.
func (v evaluator) times(x expr) (s *extent, null, ok bool) {
	f := plainField(x)
	if f == nil || f.Bounds == nil {
		return nil, false, false
	}
	s, null = v.within(f)
	return s, null, true
}

// extract gives every value of the field, for dates that are known only theirs.
func (v evaluator) extract(e call) ([]datum, bool) {
	name, x := e.args[0].(constant).text, e.args[1]
	if all, ok := v.values(x); ok && x.typ() == catalog.Date {
		found := make(map[string]datum)
		for _, d := range all {
			if !d.null {
				var known bool
				if d, known = fieldOf(name, atTime(d.value, x.typ())); !known {
					return nil, false
				}
			}
			found[d.identity()] = d
		}
		return listed(found), true
	}
	i := slices.IndexFunc(timeFields(), func(f timeField) bool { return f.name == name })
	f := timeFields()[i]
	s, null, ok := v.times(x)
	switch {
	case !ok || f.scale > 0:
		return nil, false
	case f.hi > 0:
		s = between(f.lo, f.hi)
	default:
		s = fieldExtent(name, result(column{of: plainField(x)}, s))
	}
	all := whole(s)
	if null {
		all = append(all, nullDatum())
	}
	return all, true
}

// fieldOf is EXTRACT of a date after Christ, for the fields where that is plain.
func fieldOf(name string, at time.Time) (datum, bool) {
	isoYear, week := at.ISOWeek()
	values := map[string]int{"year": at.Year(), "month": int(at.Month()), "day": at.Day(), "dow": int(at.Weekday()), "doy": at.YearDay(),
		"isodow": (int(at.Weekday())+6)%7 + 1, "quarter": (int(at.Month())-1)/3 + 1, "week": week, "isoyear": isoYear}
	value, ok := values[name]
	return numberDatum(number(int64(value))), ok && at.Year() > 0
}

// truncations are the starts of all units between the bounds.
func (v evaluator) truncations(e call) ([]datum, bool) {
	unit, x := e.args[0].(constant).text, e.args[1]
	s, null, ok := v.times(x)
	if !ok {
		return nil, false
	}
	from := x.typ()
	if d, known := v.row[plainField(x)]; known { // a date
		if d.null {
			return only(d)
		}
		s, null = exactly(d.value), false
	}
	var all []datum
	last := atTime(s.hi, from)
	for at := truncated(atTime(s.lo, from), unit); !at.After(last); at = nextUnit(at, unit) {
		if all = append(all, numberDatum(inUnit(at, e.t))); !v.spend(1) {
			return nil, false
		}
	}
	if null {
		all = append(all, nullDatum())
	}
	return all, true
}

// nextUnit is the start of the next unit after the start of one.
func nextUnit(at time.Time, unit string) time.Time {
	switch unit {
	case "second":
		return at.Add(time.Second)
	case "minute":
		return at.Add(time.Minute)
	case "hour":
		return at.Add(time.Hour)
	case "day":
		return at.AddDate(0, 0, 1)
	case "week":
		return at.AddDate(0, 0, 7)
	case "month":
		return at.AddDate(0, 1, 0)
	case "quarter":
		return at.AddDate(0, 3, 0)
	default:
		return at.AddDate(1, 0, 0)
	}
}

// inOrder are values as keys of type t, in the order of keys.
func inOrder(found map[string]datum, t catalog.Type) ([]catalog.Key, bool) {
	all := listed(found)
	slices.SortFunc(all, func(a, b datum) int {
		switch {
		case a.null || b.null:
			return boolOrder(a.null, b.null)
		case a.value != nil && b.value != nil:
			return a.value.Cmp(b.value)
		default:
			return cmp.Compare(a.text, b.text)
		}
	})
	keys := make([]catalog.Key, 0, len(all))
	for _, d := range all {
		k := catalog.Key{Null: d.null}
		if !d.null {
			if k.Text = valueText(d, t); k.Text == "" && t != catalog.Text {
				return nil, false
			}
		}
		keys = append(keys, k)
	}
	return keys, true
}

// valueText is the text that a key of type t has: PostgreSQL's, numbers without zeros at their end. "" when that is not known here.
func valueText(d datum, t catalog.Type) string {
	switch {
	case t == catalog.Bool:
		return strconv.FormatBool(d.isTrue())
	case d.value == nil:
		return d.text
	case t.IsTime():
		return timeOf(d.value, t)
	case isFloat(t):
		f, _ := d.value.Float64()
		// Beyond these PostgreSQL writes an exponent.
		if size := new(big.Rat).Abs(d.value); size.Sign() != 0 && (size.Cmp(number(1_000_000_000_000_000)) >= 0 || size.Cmp(big.NewRat(1, 10_000)) < 0) {
			return ""
		}
		return strconv.FormatFloat(f, 'f', -1, 64)
	default:
		return decimalText(d.value)
	}
}

// mayCompute reports whether a computed key may be selected: each of its columns may be grouped by.
func mayCompute(x expr) (missing *field) {
	for _, f := range columnsOf(x) {
		if f.unit || !f.PrivateKeys && f.Domain == nil && f.Type != catalog.Bool {
			return f
		}
	}
	return nil
}
