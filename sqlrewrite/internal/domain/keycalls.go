package domain

import (
	"cmp"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/scalar"
)

// call evaluates the functions whose values are the same here and in PostgreSQL.
func (v evaluator) call(e algebra.Call) ([]datum, bool) {
	if f := v.builtin(e.Name); f != nil && f.Keys != nil {
		return f.Keys(v, e)
	}
	return nil, false
}

func roundings(v evaluator, e algebra.Call) ([]datum, bool) {
	if len(e.Args) != 1 {
		return nil, false
	}
	return v.each(e.Args[0], func(d datum) (datum, bool) { return roundDatum(e, d) })
}

func lengths(v evaluator, e algebra.Call) ([]datum, bool) {
	return v.each(e.Args[0], func(d datum) (datum, bool) {
		return numberDatum(scalar.Number(int64(len([]rune(d.text))))), len(d.text) < maxText
	})
}

// nullifs gives the first where the second is NULL, unlike other functions.
func nullifs(v evaluator, e algebra.Call) ([]datum, bool) {
	as, okA := v.values(e.Args[0])
	bs, okB := v.values(e.Args[1])
	if !okA || !okB || !v.spend(len(as)*len(bs)) {
		return nil, false
	}
	found := make(map[string]datum)
	for _, a := range as {
		for _, b := range bs {
			d := a
			if !a.null && !b.null {
				order, ok := compareData(a, b, e.Args[0].Typ(), e.Args[1].Typ())
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

func firstOf(v evaluator, e algebra.Call) ([]datum, bool) {
	args := e.Args
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
func roundDatum(e algebra.Call, d datum) (datum, bool) {
	x := new(big.Rat).Set(d.Value)
	if scalar.IsFloat(e.T) {
		x = scalar.AsFloat(x)
	}
	if d.fuzzy {
		twice := new(big.Rat).Mul(x, scalar.Number(2))
		near := new(big.Rat).SetInt(scalar.Floor(new(big.Rat).Add(twice, big.NewRat(1, 2))))
		if order, ok := compareData(datum{Value: twice, fuzzy: true}, numberDatum(near), catalog.Numeric, catalog.Numeric); !ok && order != 0 {
			return datum{}, false
		}
	}
	switch e.Name {
	case "abs":
		return datum{Value: x.Abs(x), fuzzy: d.fuzzy}, true
	case "sign":
		return numberDatum(scalar.Number(int64(x.Sign()))), true
	case "floor":
		return numberDatum(x.SetInt(scalar.Floor(x))), true
	case "ceil", "ceiling":
		return numberDatum(x.SetInt(scalar.Ceil(x))), true
	case "trunc":
		return numberDatum(x.SetInt(scalar.TowardZero(x))), true
	}
	rounded := scalar.RoundTo(x, 0)
	if scalar.IsFloat(e.T) && !x.IsInt() && x.Denom().Cmp(big.NewInt(2)) == 0 { // half goes to the even neighbour
		half := scalar.Floor(x)
		if half.Bit(0) == 1 {
			half.Add(half, big.NewInt(1))
		}
		rounded = new(big.Rat).SetInt(half)
	}
	return numberDatum(rounded), true
}

// parts is left(x, n) and substr(x, from, count) of short texts.
func parts(v evaluator, e algebra.Call) ([]datum, bool) {
	from, okFrom := 1, true
	count, okCount := WholeConstant(e.Args[len(e.Args)-1])
	if e.Name == "substr" {
		from, okFrom = WholeConstant(e.Args[1])
		if len(e.Args) == 2 {
			count, okCount = maxText, true
		}
	}
	if !okFrom || !okCount || count < 0 {
		return nil, false
	}
	return v.each(e.Args[0], func(d datum) (datum, bool) {
		letters := []rune(d.text)
		first := min(max(from-1, 0), len(letters))
		last := min(max(from-1+count, first), len(letters))
		return textDatum(string(letters[first:last])), len(d.text) < maxText
	})
}

// splits is split_part(x, delimiter, n): without a delimiter x is its only part, and a negative n counts from the last.
func splits(v evaluator, e algebra.Call) ([]datum, bool) {
	delimiter := e.Args[1].(algebra.Constant).Text
	n, known := WholeConstant(e.Args[2])
	if !known {
		return nil, false
	}
	return v.each(e.Args[0], func(d datum) (datum, bool) {
		all := []string{d.text}
		if delimiter != "" {
			all = strings.Split(d.text, delimiter)
		}
		place := n - 1
		if n < 0 {
			place = len(all) + n
		}
		part := ""
		if place >= 0 && place < len(all) {
			part = all[place]
		}
		return textDatum(part), len(d.text) < maxText
	})
}

// replacements is replace(x, from, to), which for an empty from is x.
func replacements(v evaluator, e algebra.Call) ([]datum, bool) {
	from, to := e.Args[1].(algebra.Constant).Text, e.Args[2].(algebra.Constant).Text
	return v.each(e.Args[0], func(d datum) (datum, bool) {
		if from == "" {
			return d, true
		}
		return textDatum(strings.ReplaceAll(d.text, from, to)), len(d.text) < maxText
	})
}

// times are the values of a time for a function of them that only sees whole units: one of a column without a value here is given by its
// narrowed bounds.
func (v evaluator) times(x algebra.Expr) (s *scalar.Range, null, ok bool) {
	f := algebra.PlainField(x)
	if f == nil || f.Bounds == nil {
		return nil, false, false
	}
	s, null = v.within(f)
	return s, null, true
}

// fields gives every value of the field, for dates that are known only theirs.
func fields(v evaluator, e algebra.Call) ([]datum, bool) {
	name, x := e.Args[0].(algebra.Constant).Text, e.Args[1]
	if all, ok := v.values(x); ok && x.Typ() == catalog.Date {
		found := make(map[string]datum)
		for _, d := range all {
			if !d.null {
				var known bool
				if d, known = fieldOf(name, scalar.AtTime(d.Value, x.Typ())); !known {
					return nil, false
				}
			}
			found[d.identity()] = d
		}
		return listed(found), true
	}
	i := slices.IndexFunc(scalar.TimeFields(), func(f scalar.TimeField) bool { return f.Name == name })
	f := scalar.TimeFields()[i]
	s, null, ok := v.times(x)
	switch {
	case !ok || f.Scale > 0:
		return nil, false
	case f.Hi > 0:
		s = scalar.Between(f.Lo, f.Hi)
	default:
		s = fieldRange(name, result(algebra.Column{Of: algebra.PlainField(x)}, s))
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
	return numberDatum(scalar.Number(int64(value))), ok && at.Year() > 0
}

// truncations are the starts of all units between the bounds.
func truncations(v evaluator, e algebra.Call) ([]datum, bool) {
	return v.starts(e.Args[0].(algebra.Constant).Text, e.Args[1], e.T)
}

// starts are the starts of the units in which a time can lie, as values of type t.
func (v evaluator) starts(unit string, x algebra.Expr, t catalog.Type) ([]datum, bool) {
	from := x.Typ()
	if algebra.PlainField(x) == nil { // computed, of few values
		return v.each(x, func(d datum) (datum, bool) {
			return numberDatum(scalar.InUnit(scalar.Truncated(scalar.AtTime(d.Value, from), unit), t)), true
		})
	}
	s, null, ok := v.times(x)
	if !ok {
		return nil, false
	}
	if d, known := v.row[algebra.PlainField(x)]; known { // a date
		if d.null {
			return only(d)
		}
		s, null = scalar.Exactly(d.Value), false
	}
	var all []datum
	last := scalar.AtTime(s.Hi, from)
	for at := scalar.Truncated(scalar.AtTime(s.Lo, from), unit); !at.After(last); at = nextUnit(at, unit) {
		if all = append(all, numberDatum(scalar.InUnit(at, t))); !v.spend(1) {
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
	case "decade":
		return at.AddDate(10, 0, 0)
	case "century":
		return at.AddDate(100, 0, 0)
	case "millennium":
		return at.AddDate(1000, 0, 0)
	default:
		return at.AddDate(1, 0, 0)
	}
}

// compare orders keys: NULL comes last.
func (a datum) compare(b datum) int {
	switch {
	case a.null || b.null:
		return scalar.BoolOrder(a.null, b.null)
	case a.Value != nil && b.Value != nil:
		return a.Value.Cmp(b.Value)
	default:
		return cmp.Compare(a.text, b.text)
	}
}

// inOrder are values as keys of type t, in the order of keys.
func inOrder(found map[string]datum, t catalog.Type) ([]catalog.Key, bool) {
	all := listed(found)
	slices.SortFunc(all, datum.compare)
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
	case d.Value == nil:
		return d.text
	case t.IsTime():
		return scalar.TimeOf(d.Value, t)
	case scalar.IsFloat(t):
		f, _ := d.Value.Float64()
		// Beyond these PostgreSQL writes an exponent.
		if size := new(big.Rat).Abs(d.Value); size.Sign() != 0 && (size.Cmp(scalar.Number(1_000_000_000_000_000)) >= 0 ||
			size.Cmp(big.NewRat(1, 10_000)) < 0) {
			return ""
		}
		return strconv.FormatFloat(f, 'f', -1, 64)
	default:
		return scalar.DecimalText(d.Value)
	}
}

// MayCompute reports whether a computed key may be selected: each of its columns may be grouped by. missing is one that may not, without
// bounds if there is such a one.
func MayCompute(x algebra.Expr) (missing *algebra.Field) {
	for _, f := range ColumnsOf(x) {
		if f.Unit || !f.PrivateKeys && f.Domain() == nil && f.Type != catalog.Bool {
			if missing == nil || missing.Bounds != nil {
				missing = f
			}
		}
	}
	return missing
}
