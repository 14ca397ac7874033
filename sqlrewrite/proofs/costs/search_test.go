package costs

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/internal/algebra"
)

// subject is an operation within a form, whose worst operands are searched for.
type subject struct {
	form  form
	first []string // constants with which the rewriter takes the form
	at    int      // of what [within] lists
	shape string
	price func(algebra.Expr) int64 // nil: the rewriter's
}

// operand is what a search changes: constants of the form, and a row.
type candidate struct {
	constants []string
	values    row
}

func (c candidate) String() string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(c.values)) {
		parts = append(parts, k+"="+brief(c.values[k]))
	}
	for _, k := range c.constants {
		parts = append(parts, brief(k))
	}
	return strings.Join(parts, " ")
}

// shrunk is a candidate with operands of a smaller size that are alike: the beginnings and ends of texts, the first digits of numbers.
func (c candidate) shrunk(z size) candidate {
	out := candidate{nil, row{}}
	shorter := func(v string, most int) string {
		r := []rune(v)
		end := min(6, most/2)
		if len(r) <= most {
			return v
		}
		return string(r[:most-end]) + string(r[len(r)-end:])
	}
	for _, k := range c.constants {
		out.constants = append(out.constants, shorter(k, z.characters))
	}
	for name, v := range c.values {
		switch name {
		case "t", "u":
			v = shorter(v, z.characters)
		case "k", "l":
			v = shorter(v, 5*z.characters)
		case "n", "m", "q", "r":
			v = v[:min(len(v), z.digits)]
		}
		out.values[name] = v
	}
	return out
}

// brief shows a value by how it repeats.
func brief(v string) string {
	letters := []rune(v)
	if len(letters) <= 24 {
		return v
	}
	return fmt.Sprintf("%s…(%d)…%s", string(letters[:10]), len(letters), string(letters[len(letters)-6:]))
}

// operation is a subject with constants, for operands of a size; nil where the rewriter takes something else.
func (s subject) operation(snapshot *catalog.Snapshot, constants []string) algebra.Expr {
	e, err := bound(s.form.written(constants), snapshot)
	if err != nil {
		return nil
	}
	all := within(e)
	if s.at >= len(all) || shape(all[s.at]) != s.shape {
		return nil
	}
	return all[s.at]
}

// total is the price of an operation and of all that it is computed of.
func (s subject) total(e algebra.Expr) int64 {
	n := s.priceOf(e)
	for _, x := range operands(e) {
		n += priceOf(x)
	}
	return n
}

// search finds operands of a subject on which PostgreSQL takes long beside the price.
type search struct {
	meter    *meter
	r        *rand.Rand
	each     time.Duration
	snapshot *catalog.Snapshot
	subject  subject
	size     size
	reads    []string // the columns of the operation

	constants []string // of the operation that was bound last
	operation algebra.Expr
}

// found is a candidate with what was measured.
type found struct {
	candidate
	e     algebra.Expr
	ns    float64 // of the operation and what it is computed of
	price int64   // the same
}

func (f found) ratio() float64 { return f.ns / float64(max(f.price, 1)) }

// measured is a candidate with its time; ok is false where it is none.
func (s *search) measured(ctx context.Context, c candidate, tries int) (f found, ok bool, err error) {
	if s.operation == nil || !slices.Equal(s.constants, c.constants) {
		s.constants, s.operation = c.constants, s.subject.operation(s.snapshot, c.constants)
	}
	e := s.operation
	if e == nil {
		return f, false, nil
	}
	ns, err := s.meter.expression(ctx, e, c.values, tries, s.each)
	return found{candidate: c, e: e, ns: ns, price: s.subject.total(e)}, err == nil, err
}

// worst climbs from the best of the starts, and of those of smaller operands.
func (s *search) worst(ctx context.Context, mutations int, also ...candidate) (best found, err error) {
	all := also
	for i := range 11 {
		values := row{}
		for _, name := range s.reads {
			list := columnStarts(name, s.size)
			values[name] = list[i%len(list)]
		}
		constants := slices.Clone(s.subject.first)
		if len(constants) == 0 {
			all = append(all, candidate{nil, values})
		}
		for at, h := range s.subject.form.holes {
			list := starts(h, s.size)
			for k, text := range list {
				if k%3 == i%3 || i < len(s.subject.form.holes) { // each with some rows
					changed := slices.Clone(constants)
					changed[at] = text
					all = append(all, candidate{changed, values})
				}
			}
		}
	}
	seen := map[string]bool{}
	for _, c := range all {
		if id := fmt.Sprint(c.constants, c.values); seen[id] {
			continue
		} else {
			seen[id] = true
		}
		f, ok, err := s.measured(ctx, c, 1)
		if err != nil {
			return best, err
		}
		if ok && (best.e == nil || f.ratio() > best.ratio()) {
			best = f
		}
	}
	if best.e == nil {
		return best, errNoStart
	}
	idle := 0
	for range mutations {
		f, ok, err := s.measured(ctx, s.mutated(best.candidate), 1)
		if err != nil {
			return best, err
		}
		if idle++; ok && f.ratio() > 1.01*best.ratio() {
			again, _, err := s.measured(ctx, f.candidate, 2) // what seems better may be others' load
			if err != nil {
				return best, err
			}
			if again.ratio() > best.ratio() {
				best, idle = again, 0
			}
		}
		if idle > 60 {
			break
		}
	}
	best, _, err = s.measured(ctx, best.candidate, 3)
	return best, err
}

// errNoStart says that the rewriter takes no operands of a size: numbers of so many digits would leave its limits.
var errNoStart = errors.New("the rewriter takes none of the starts")

// mutated changes one operand.
func (s *search) mutated(c candidate) candidate {
	out := candidate{slices.Clone(c.constants), maps.Clone(c.values)}
	n := s.r.IntN(len(s.reads) + len(c.constants))
	if n < len(s.reads) {
		name := s.reads[n]
		out.values[name] = s.changedValue(name, c.values[name])
		return out
	}
	n -= len(s.reads)
	out.constants[n] = s.changedConstant(s.subject.form.holes[n], c.constants[n])
	return out
}

func (s *search) changedValue(name, v string) string {
	if s.r.IntN(8) == 0 {
		list := columnStarts(name, s.size)
		return list[s.r.IntN(len(list))]
	}
	switch name {
	case "t", "u":
		return cut(s.changedText(v), s.size.characters, 1<<20)
	case "k", "l":
		return cut(s.changedText(v), 1<<20, 5*s.size.characters)
	case "n", "m", "q", "r":
		return s.changedNumber(v)
	default:
		list := columnStarts(name, s.size)
		return list[s.r.IntN(len(list))]
	}
}

func (s *search) changedConstant(h hole, v string) string {
	list := starts(h, s.size)
	if s.r.IntN(8) == 0 {
		return list[s.r.IntN(len(list))]
	}
	switch h {
	case textHole:
		return cut(s.changedText(v), s.size.characters, 1<<20)
	case patternHole:
		return cut(s.changedText(v, "%", "_", "_", "a_", `\a`), longestPattern, longestPattern)
	case regexHole:
		return cut(s.changedText(v, "(a|b)", "a*", "b+", "[ab]", ".", "{1,3}", "|", "(", ")", "?"), longestPattern, longestPattern)
	case setHole:
		return cut(s.changedText(v), 10, 10)
	case templateHole:
		words := []string{"IW", "Month", "Day", "DDD", "WW", "HH12", "AM", "Q", "YYYY", "FM", "W", "J", "IYYY"}
		return cut(s.changedText(v, words...), s.size.characters, 1000)
	case numberHole:
		return s.changedNumber(v)
	default:
		return list[s.r.IntN(len(list))]
	}
}

// letters are those of mutations: of one byte and of four, and such as grow in their other case.
var letters = []string{"a", "a", "a", "b", "b", "c", "9", " ", "𐐨", "𐐩", "İ", "ΐ", "ß", "A", "é"}

func (s *search) changedText(v string, pieces ...string) string {
	r := []rune(v)
	pick := func() string {
		if len(pieces) > 0 && s.r.IntN(2) == 0 {
			return pieces[s.r.IntN(len(pieces))]
		}
		return letters[s.r.IntN(len(letters))]
	}
	if len(r) == 0 {
		return pick()
	}
	i := s.r.IntN(len(r))
	j := i + 1 + s.r.IntN(len(r)-i)
	switch s.r.IntN(6) {
	case 0: // another letter
		return string(r[:i]) + pick() + string(r[i+1:])
	case 1: // one more
		return string(r[:i]) + pick() + string(r[i:])
	case 2: // without a part
		return string(r[:i]) + string(r[j:])
	case 3: // a part twice
		return string(r[:j]) + string(r[i:j]) + string(r[j:])
	case 4: // a part again and again
		part := string(r[i:min(j, i+4)])
		return strings.Repeat(part, 1+len(r)/len([]rune(part)))
	default: // one letter for another, everywhere
		return strings.ReplaceAll(v, string(r[i]), pick())
	}
}

// changedNumber keeps the point where it is, so that a column still holds it.
func (s *search) changedNumber(v string) string {
	d := []byte(v)
	i := s.r.IntN(len(d))
	j := i + 1 + s.r.IntN(len(d)-i)
	digit := byte('0' + s.r.IntN(10))
	switch s.r.IntN(5) {
	case 0:
		j = i + 1
	case 1: // shorter
		if at := strings.IndexByte(v, '.'); at < 0 {
			return strings.TrimLeft(v[:i]+v[j:], "0") + "7"
		}
		return strings.TrimSuffix(v[:max(i, 2)], ".") + "7"
	case 2:
		digit = '9'
	case 3:
		digit = '0'
	}
	for k := i; k < j; k++ {
		if d[k] >= '0' && d[k] <= '9' {
			d[k] = digit
		}
	}
	return string(d)
}

// cut is a text of at most so many characters and bytes.
func cut(v string, characters, bytes int) string {
	r := []rune(v)
	if len(r) > characters {
		r = r[:characters]
	}
	for len(string(r)) > bytes {
		r = r[:len(r)-1]
	}
	return string(r)
}
