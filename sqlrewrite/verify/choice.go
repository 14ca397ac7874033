package verify

import "slices"

// always is a value that is never NULL.
func (d *Terms) always(k kind, op string, args ...*value) *value {
	v := d.apply(k, op, args...)
	v.nulls = nil
	return v
}

func clear(v *value) *value {
	if v.vague {
		c := *v
		c.vague = false
		return &c
	}
	return v
}

// typed is a value as others see it: a text without a type is text.
func typed(v *value) *value {
	c := *v
	c.untyped = false
	return &c
}

// resolved are values of which one type is made: what is written without a type is character where no other is text.
func (d *Terms) resolved(all []*value) []*value {
	char := false
	for _, v := range all {
		if !v.untyped && v.kind == text {
			return all
		}
		char = char || v.kind == bpchar
	}
	if !char {
		return all
	}
	all = slices.Clone(all)
	for i, v := range all {
		if v.untyped {
			c := *v
			c.id, c.kind, c.untyped, c.same = d.intern("character", v.id), bpchar, false, false
			all[i] = &c
		}
	}
	return all
}

// pair is resolved, of two.
func (d *Terms) pair(l, r *value) (*value, *value) {
	both := d.resolved([]*value{l, r})
	return both[0], both[1]
}

// choice is one of several values: of CASE, COALESCE, UNION ALL.
func (d *Terms) choice(op string, all, conditions []*value) *value {
	k := noKind
	all = d.resolved(all)
	for _, v := range all {
		if !v.null || v.kind != noKind {
			k = common(k, v.kind)
		}
	}
	v := d.made(k, op, false, append(slices.Clone(conditions), all...)...)
	first := true
	for _, b := range all {
		if b.null {
			continue
		}
		b = d.convert(b, k)
		if first {
			v.ident, v.bounds = b.ident, b.bounds
			first = false
			continue
		}
		if v.ident != b.ident {
			v.ident = "one of several"
		}
		v.within = v.within.Hull(b.within)
		for i := range v.parts {
			v.parts[i] = v.parts[i].Hull(b.parts[i])
		}
		v.digits, v.grain, v.chars = unknownOr(v.digits, b.digits), unknownOr(v.grain, b.grain), unknownOr(v.chars, b.chars)
		if v.bytes = max(v.bytes, b.bytes); b.bytes == 0 {
			v.bytes = 0
		}
		v.longest = v.longest.longer(b.longest)
		v.nonzero = v.nonzero && b.nonzero
		if v.scale != b.scale {
			v.scale = -1
		}
		v.same = v.same && b.same && (alwaysSame(k) || k.isFloat() || v.scale >= 0)
	}
	if first {
		d.like0(v, d.nullOf(k))
		v.null = true
	}
	return v
}

// unknownOr is the larger of two bounds, of which -1 means none.
func unknownOr(a, b int) int {
	if a < 0 || b < 0 {
		return -1
	}
	return max(a, b)
}

// first is the choice of a value that is not NULL: NULL only where all are.
func (d *Terms) first(op string, args []*value) *value {
	v := d.choice(op, args, nil)
	v.nulls = []int{v.id}
	if slices.ContainsFunc(args, func(a *value) bool { return len(a.nulls) == 0 && !a.null }) {
		v.nulls = nil
	}
	return v
}

func (d *Terms) coalesce(args []*value) *value {
	if len(args) == 2 && args[0].terms != nil && args[1].number() != nil && args[1].number().Sign() == 0 &&
		common(args[0].kind, args[1].kind) == args[0].kind {
		return args[0].terms.orZero(d, args[0])
	}
	if len(args) == 2 && args[0].id == args[1].id && args[0].kind == args[1].kind && !args[0].untyped &&
		args[0].collation == args[1].collation {
		return args[0] // COALESCE(x, x) is x
	}
	return d.first("coalesce", args)
}

// like0 gives a value the bounds of another, which it is wherever it is not NULL.
func (d *Terms) like0(v, of *value) {
	v.ident, v.bounds = of.ident, of.bounds
}
