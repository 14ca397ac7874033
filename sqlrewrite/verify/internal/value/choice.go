package value

import "slices"

// Choices. One of several values lies in one of their ranges, which are joined, and has each property that all of them have.

// Resolved gives values one type: a text without a type becomes character where no other value is text.
func (d *Terms) Resolved(all []*Value) []*Value {
	char := false
	for _, v := range all {
		if !v.untyped && v.Kind == Text {
			return all
		}
		char = char || v.Kind == Char
	}
	if !char {
		return all
	}
	all = slices.Clone(all)
	for i, v := range all {
		if v.untyped {
			c := *v
			c.ID, c.Kind, c.untyped, c.Same = d.Intern("character", v.ID), Char, false, false
			all[i] = &c
		}
	}
	return all
}

// Pair gives two values one type, as Resolved does.
func (d *Terms) Pair(l, r *Value) (*Value, *Value) {
	both := d.Resolved([]*Value{l, r})
	return both[0], both[1]
}

// Choice derives one of several values: of CASE, COALESCE, UNION ALL.
func (d *Terms) Choice(op string, all, conditions []*Value) *Value {
	k := NoKind
	all = d.Resolved(all)
	for _, v := range all {
		if !v.Null || v.Kind != NoKind {
			k = Common(k, v.Kind)
		}
	}
	v := d.Made(k, op, false, append(slices.Clone(conditions), all...)...)
	first := true
	for _, b := range all {
		if b.Null {
			continue
		}
		b = d.Convert(b, k)
		if first {
			v.Ident, v.Bounds = b.Ident, b.Bounds
			first = false
			continue
		}
		if v.Ident != b.Ident {
			v.Ident = "one of several"
		}
		v.Within = v.Within.Hull(b.Within)
		for i := range v.parts {
			v.parts[i] = v.parts[i].Hull(b.parts[i])
		}
		v.Digits, v.Grain, v.Chars = unknownOr(v.Digits, b.Digits), unknownOr(v.Grain, b.Grain), unknownOr(v.Chars, b.Chars)
		if v.Bytes = max(v.Bytes, b.Bytes); b.Bytes == 0 {
			v.Bytes = 0
		}
		v.longest = v.longest.longer(b.longest)
		v.Nonzero = v.Nonzero && b.Nonzero
		if v.Scale != b.Scale {
			v.Scale = -1
		}
		v.Same = v.Same && b.Same && (AlwaysSame(k) || k.IsFloat() || v.Scale >= 0)
	}
	if first {
		d.Bounded(v, d.NullOf(k))
		v.Null = true
	}
	return v
}

// First derives the choice of a value that is not NULL: NULL only where all are.
func (d *Terms) First(op string, args []*Value) *Value {
	v := d.Choice(op, args, nil)
	v.Nulls = []int{v.ID}
	if slices.ContainsFunc(args, func(a *Value) bool { return len(a.Nulls) == 0 && !a.Null }) {
		v.Nulls = nil
	}
	return v
}

// Coalesce derives COALESCE.
func (d *Terms) Coalesce(args []*Value) *Value {
	if len(args) == 2 && args[0].Sum != nil && args[1].Number() != nil && args[1].Number().Sign() == 0 &&
		Common(args[0].Kind, args[1].Kind) == args[0].Kind {
		return args[0].Sum.orZero(d, args[0])
	}
	if len(args) == 2 && args[0].ID == args[1].ID && args[0].Kind == args[1].Kind && !args[0].untyped &&
		args[0].Collation == args[1].Collation {
		return args[0] // COALESCE(x, x) is x
	}
	return d.First("coalesce", args)
}
