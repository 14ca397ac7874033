package value

import (
	"maps"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"noisegate.example/sqlrewrite/verify/internal/ranges"
	"noisegate.example/sqlrewrite/verify/internal/tree"
)

// Each rule is monotone: where it takes values of some ranges, it takes values of ranges within those, and what it says of them lies within
// what it said before.
func TestLessIsKnownOfMore(t *testing.T) {
	taken := 0
	for _, table := range []map[string]function{functions, operators, aggregates} {
		for _, name := range slices.Sorted(maps.Keys(table)) {
			for _, o := range table[name].overloads {
				for takes := range strings.FieldsSeq(o.takes) {
					for seed := range uint64(50) {
						wide, narrow := operands(takes, rand.New(rand.NewPCG(35, seed)))
						more, ok := try(o, name, wide)
						if !ok {
							continue
						}
						taken++
						less, ok := try(o, name, narrow)
						if !ok {
							t.Errorf("%s(%s), seed %d: refused of ranges within others", name, takes, seed)
						} else if !within(less.Within, more.Within) || more.Nonzero && !less.Nonzero {
							t.Errorf("%s(%s), seed %d: %v of ranges within others, of which it is %v", name, takes, seed, less.Within, more.Within)
						}
					}
				}
			}
		}
	}
	if taken < 500 {
		t.Errorf("only %d calls were taken", taken)
	}
}

func try(o overload, name string, args func(*Terms) []*Value) (v *Value, ok bool) {
	var err error
	func() {
		defer tree.Caught(&err)
		d := NewTerms(nil, nil)
		v = o.rule(d, name, args(d)...)
	}()
	return v, err == nil && v != nil
}

// operands are values of the letters of an overload, and others whose ranges are within theirs.
func operands(takes string, r *rand.Rand) (wide, narrow func(*Terms) []*Value) {
	if takes == "*" {
		takes = "t4"
	}
	letter := func(l byte) []Kind {
		if l == '.' {
			return letters['N']
		}
		return letters[l]
	}
	type choice struct {
		kind  Kind
		spans [2]ranges.Span
		text  string
	}
	var all []choice
	k := Int4
	for i := range len(takes) {
		of := letter(takes[i])
		if takes[i] != '.' || i == 0 { // operands of any type have one
			k = of[r.IntN(len(of))]
		}
		c := choice{kind: k}
		switch takes[i] {
		case 'K':
			c.text = []string{"0", "1", "2", "-1", "7"}[r.IntN(5)]
		case 'Q':
			c.text = []string{"month", "day", "year", "YYYY-MM", "a%"}[r.IntN(5)]
		}
		lo, size := r.Int64N(200)-100, r.Int64N(100)
		a, b := r.Int64N(size+1), r.Int64N(size+1)
		c.spans = [2]ranges.Span{ranges.Of(lo, lo+size), ranges.Of(lo+min(a, b), lo+max(a, b))}
		all = append(all, c)
	}
	made := func(which int) func(*Terms) []*Value {
		return func(d *Terms) (args []*Value) {
			for _, c := range all {
				if c.text != "" {
					args = append(args, d.Literal(c.kind, c.text))
					continue
				}
				v := d.Make(c.kind, d.Fresh())
				v.Within, v.Nulls = c.spans[which], []int{v.ID}
				v.Nonzero = !v.Within.Has(ranges.Zero)
				for i := range v.parts {
					v.parts[i] = c.spans[which]
				}
				switch {
				case v.Kind == Numeric:
					v.Digits, v.Scale = 2, 2
				case v.Kind.IsFloat():
					v.Grain = 10
				case v.Kind.IsText():
					v.Chars = 200 + int(v.Within.Hi.Num().Int64())
				default: // the type says all
				}
				args = append(args, v)
			}
			return args
		}
	}
	return made(0), made(1)
}

// within reports whether a range lies in another, whose unknown ends admit any number.
func within(s, t ranges.Span) bool {
	below := func(a, b *big.Rat) bool { return a == nil || b != nil && a.Cmp(b) <= 0 }
	above := func(a, b *big.Rat) bool { return a == nil || b != nil && a.Cmp(b) >= 0 }
	return below(t.Lo, s.Lo) && above(t.Hi, s.Hi)
}
