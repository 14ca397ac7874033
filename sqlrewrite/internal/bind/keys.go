package bind

import (
	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/domain"
	"noisegate.example/sqlrewrite/internal/keys"
	"noisegate.example/sqlrewrite/internal/scalar"
)

// keysInside finds the keys of columns of queries in FROM as if their expressions stood in GROUP BY, and the conditions of these queries in
// WHERE. Names and printed texts stay: only which keys appear follows from it.
type keysInside struct {
	*algebra.Binder
	from  *keys.Inlining
	where algebra.Expr // all conditions, over what the queries read
	work  int          // what is left of domain.MaxWork (A44)
	waits bool         // for a list of keys
	wider *keysInside  // reads queries with groups and windows, too: for keys that are refused without
}

func newKeysInside(b *algebra.Binder) *keysInside {
	k := keysFrom(b, false)
	k.wider = keysFrom(b, true)
	return k
}

func keysFrom(b *algebra.Binder, all bool) *keysInside {
	k := &keysInside{Binder: b, from: keys.Inline(b.Bound, all), work: domain.MaxWork}
	k.where = algebra.All(append(k.from.Conditions(b.Bound.Where), k.from.Where...))
	return k
}

// find is [keysInside.key], and what the wider queries say where that is a refusal. What is answered without them keeps its keys.
func (k *keysInside) find(key algebra.GroupKey, refused error) (algebra.GroupKey, error) {
	found, err := k.key(key, refused)
	if err == nil || !k.wider.from.Reads(key.X) {
		return found, err
	}
	found, err = k.wider.key(key, refused)
	k.waits = k.waits || k.wider.waits
	return found, err
}

// key takes a key as it is outside of the queries, and why it is refused there; nil: it is not.
//
// A key that is answered as it is keeps its keys but for those that the conditions rule out. What was released over all of them answers the
// question, as where lists leave out keys (decision 85).
func (k *keysInside) key(key algebra.GroupKey, refused error) (algebra.GroupKey, error) {
	if key.X == nil || refused == nil && key.Private() {
		return key, refused
	}
	if !k.from.Reads(key.X) {
		return k.listed(key, key.X, refused)
	}
	column := algebra.PlainField(algebra.WrittenAs(key.X)) // else it is computed of columns
	x := k.from.Of(key.X)
	if column != nil {
		x = k.from.Of(algebra.Column{Of: column})
	}
	if x.Typ() == scalar.IntervalType {
		return key, refused
	}
	if refused != nil && column != nil && !algebra.OneText(algebra.Column{Of: column}) {
		value, ok := x.(algebra.Computed)
		if !ok {
			return key, refused
		}
		key.X = algebra.Computed{Written: key.X, ErrorFree: key.X, Within: value.Within, Printed: value.Printed} // printed as such keys are
	}
	public, ok := k.public(key, column, x)
	switch {
	case ok && refused == nil:
		left := make(map[catalog.Key]bool, len(public.Domain))
		for _, d := range public.Domain {
			left[d] = true
		}
		key.Leave(func(d catalog.Key) bool { return left[d] })
	case ok:
		return public, nil
	case refused != nil && domain.MayCompute(x) == nil: // its keys are private
	default:
		return k.listed(key, x, refused)
	}
	return key, nil
}

// listed gives a key that is refused for its keys alone those that its expression x has in PostgreSQL.
func (k *keysInside) listed(key algebra.GroupKey, x algebra.Expr, refused error) (algebra.GroupKey, error) {
	if refused == nil || algebra.PlainField(x) != nil {
		return key, refused
	}
	all, known, ok := keys.Computed(k.Bound.Shared().List, x, k.where)
	if !ok {
		return key, refused
	}
	k.waits = k.waits || !known
	key.Domain, key.Declared = all, len(all)
	return key, nil
}

// public gives a key the keys that its expression x can have; ok is false where they are not known.
func (k *keysInside) public(key algebra.GroupKey, column *algebra.Field, x algebra.Expr) (public algebra.GroupKey, ok bool) {
	switch stem := algebra.PlainField(x); {
	case stem == nil:
		if key.Domain, ok = domain.KeyDomainIn(x, k.where, &k.work); ok {
			key.Declared = len(key.Domain)
		}
	case stem.Domain() != nil:
		key.Domain, key.Declared, ok = domain.Narrow(stem.Domain(), stem, k.where), len(stem.Domain()), true
	case domain.IsGrid(stem):
		var err error
		key, err = domain.BoundedKey(key, column, stem, k.where, &k.work)
		ok = err == nil
	}
	return key, ok
}
