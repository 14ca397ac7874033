package sqlprint

import (
	"crypto/sha256"
	wire "encoding/binary"
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/domain"
	"noisegate.example/sqlrewrite/internal/scalar"
)

// DryRun is a statement that names no table: in place of each it reads made-up rows. It is run before the charge, on the server and
// with the rights of the statement itself: where that server cannot compute the text, the question is refused, free, as a function of the
// text alone. A dry run proves nothing, as a condition may hide an operation from the rows that were made up; the forms of
// docs/sql/error-free.md are what proves it.
type DryRun struct {
	For Statement
	// Plain says that there is nothing to try on one server: the statement counts rows and adds up columns, which every server can. Workers of
	// a distributed database are asked other statements, which may be none.
	Plain    bool
	template template
}

// Text is what runs. Its arguments are the statement's own and arrays of made-up values, as PostgreSQL writes them.
func (d DryRun) Text() (sql string, args []any) { return d.template.dryRun(d.For.Args) }

// DryRunOf is the dry run of a part's statement, for which any seed will do.
func DryRunOf(q *algebra.BoundQuery, part *PlanPart) DryRun {
	return DryRun{For: part.Statement.WithSeed(0).AtEnds(), Plain: !mayFail(q, part), template: part.Template}
}

// mayFail reports whether a part's statement computes, or has a constant whose spelling a server could refuse. Counts and sums of columns
// under conditions that compare them with numbers and texts do neither.
func mayFail(q *algebra.BoundQuery, part *PlanPart) bool {
	computes := false
	w := NewPreconditionWalk()
	w.Visit = func(e algebra.Expr) { computes = computes || !plainly(e) }
	asked := *q
	asked.Statistics = part.statistics(q)
	w.Query(&asked)
	return computes
}

// plainly reports whether an expression, its operands apart, is taken by every server and fails on no row.
func plainly(e algebra.Expr) bool {
	switch e := e.(type) {
	case algebra.Column, algebra.Bought, algebra.Not, algebra.In, algebra.Is, algebra.Distinct, algebra.Exists, algebra.InRows:
		return true
	case algebra.Constant:
		return e.T.IsNumber() || e.T.IsText() || e.T == catalog.Bool
	case algebra.Binary:
		return e.T == catalog.Bool
	case algebra.Like:
		return !e.Regex
	default:
		return false
	}
}

// madeRows is how many rows of a table are made up, and madePairs how many pairs of rows of several tables at most.
const (
	madeRows  = 64
	madePairs = 4096
	leastMade = 4
)

// dryRun puts made-up rows into the places of the tables. The arguments come after the statement's own.
func (t template) dryRun(args []any) (string, []any) {
	args = append([]any(nil), args...)
	rows := madeRows
	for rows > leastMade && power(rows, len(t.scans)) > madePairs {
		rows /= 2
	}
	sql := t.with(func(s *algebra.Scan) string {
		var arrays, names []string
		for _, f := range s.Fields {
			if !t.named[f] {
				continue
			}
			args = append(args, arrayText(madeValues(s, f, rows)))
			arrays = append(arrays, fmt.Sprintf("pg_catalog.unnest($%d::%s[])", len(args), madeType(f.Column)))
			names = append(names, scalar.QuoteIdent(f.Name))
		}
		if len(arrays) == 0 {
			return "pg_catalog.generate_series(1, " + strconv.Itoa(rows) + ")" + name1(s)
		}
		source, columns := "ROWS FROM ("+strings.Join(arrays, ", ")+")", "("+strings.Join(names, ", ")+")"
		if leaf := t.leaf(s, source+` AS "made"`+columns); strings.HasPrefix(leaf, "(SELECT ") {
			return leaf
		}
		return source + name1(s) + columns
	})
	return sql, args
}

// power is n^k, or more than can matter.
func power(n, k int) int {
	p := 1
	for range k {
		if p *= n; p > madePairs {
			return p
		}
	}
	return p
}

// madeType is a column's type without its modifiers, which made-up values keep to.
func madeType(c *catalog.Column) string {
	switch c.Type {
	case catalog.Enum:
		return c.Enum
	case catalog.Char:
		return "pg_catalog.bpchar"
	default:
		return sqlType(c.Type)
	}
}

// madeValues are the values of a column in the made-up rows: NULL, the ends of its bounds and of its type, what is special in it, and
// random ones from a fixed seed. What joins rows, the unit's id and what refers to it, has few values, so that rows meet.
func madeValues(s *algebra.Scan, f *algebra.Field, rows int) []*string {
	r := &points{of: s.Table.Name + "\x00" + f.Name}
	joins := tellsUnit(s, f) || f.Anchor.Table != nil
	m := maker{c: f.Known(), r: r}
	var all []*string
	if !joins {
		all = append(all, nil)
		for _, text := range m.special() {
			all = append(all, &text)
		}
		for i := len(all) - 1; i > 0; i-- {
			j := r.below(int64(i + 1))
			all[i], all[j] = all[j], all[i]
		}
	}
	for len(all) < rows {
		text, ok := m.random(joins)
		if !ok {
			all = append(all, nil)
			continue
		}
		all = append(all, &text)
	}
	return all[:rows]
}

// maker makes up values of a column.
type maker struct {
	c *catalog.Column
	r *points
}

// points are numbers that look random and are always the same: made-up rows are a function of the columns' names and types.
type points struct {
	of string
	n  uint64
}

// below is the next one, from 0 to n-1.
func (p *points) below(n int64) int64 {
	p.n++
	sum := sha256.Sum256(wire.BigEndian.AppendUint64([]byte(p.of), p.n))
	return int64(wire.BigEndian.Uint64(sum[:8]) % uint64(n))
}

// special are the values at which operations fail first.
func (m maker) special() []string {
	c := m.c
	var all []string
	if b := c.Bounds; b != nil {
		step := scalar.One()
		if b.Step != nil {
			step = b.Step
		}
		for _, v := range []*big.Rat{b.Lo, b.Hi, new(big.Rat).Sub(b.Lo, step), new(big.Rat).Add(b.Hi, step),
			new(big.Rat).Quo(new(big.Rat).Add(b.Lo, b.Hi), scalar.Number(2))} {
			if text, ok := m.text(v); ok {
				all = append(all, text)
			}
		}
	}
	for _, k := range c.Domain[:min(len(c.Domain), 8)] {
		if !k.Null {
			all = append(all, k.Text)
		}
	}
	switch c.Type {
	case catalog.Int2, catalog.Int4, catalog.Int8:
		lo, hi := scalar.IntegerRange(c.Type)
		all = append(all, "0", "1", "-1", lo.Num().String(), hi.Num().String())
	case catalog.Numeric:
		all = append(all, "0", "NaN")
		if digits, fixed := algebra.Scale(algebra.Column{Of: &algebra.Field{Column: c}}); fixed {
			top := strings.Repeat("9", max(int(c.TypMod-4)>>16-digits, 0))
			if digits > 0 {
				top += "." + strings.Repeat("9", digits)
			}
			all = append(all, top, "-"+top)
			break
		}
		all = append(all, "1", "-1", "1.00", "Infinity", "-Infinity", "1e1000", "-1e1000", "1e-1000", "1e131071", "1e-16383",
			strings.Repeat("9", 40)+"."+strings.Repeat("9", 40))
	case catalog.Float4:
		all = append(all, "0", "-0", "1", "-1", "NaN", "Infinity", "-Infinity", "3.4028235e38", "-3.4028235e38", "1e-45")
	case catalog.Float8:
		all = append(all, "0", "-0", "1", "-1", "NaN", "Infinity", "-Infinity", "1.7976931348623157e308", "-1.7976931348623157e308", "5e-324",
			"2.2250738585072014e-308")
	case catalog.Text, catalog.Char:
		longest := int(c.LongestText())
		if characters := int(c.TypMod) - 4; characters > 0 {
			longest = min(longest, characters)
		}
		for _, text := range []string{"", " ", "a", "a ", "Z", "0", "%_\\", "ß", "İ", strings.Repeat("x", longest),
			strings.Repeat("x", longest+1)} {
			if n := len([]rune(text)); c.TypMod < 5 || n <= int(c.TypMod)-4 {
				all = append(all, text)
			}
		}
	case catalog.Bool:
		all = append(all, "true", "false")
	case catalog.Date:
		all = append(all, "4714-11-24 BC", "5874897-12-31", "infinity", "-infinity", "1970-01-01", "2000-02-29", "0001-01-01")
	case catalog.Timestamp, catalog.Timestamptz:
		zone := ""
		if c.Type == catalog.Timestamptz {
			zone = "+00"
		}
		all = append(all, "4714-11-24 00:00:00"+zone+" BC", "294276-12-31 23:59:59.999999"+zone, "infinity", "-infinity",
			"1970-01-01 00:00:00"+zone, "2000-02-29 12:00:00"+zone)
	case catalog.UUID:
		all = append(all, strings.Repeat("0", 8)+"-0000-0000-0000-"+strings.Repeat("0", 12),
			strings.Repeat("f", 8)+"-ffff-ffff-ffff-"+strings.Repeat("f", 12))
	case catalog.Enum: // of whose labels only those that are a domain are known
	}
	return all
}

// fewIDs is how many values those columns have by which rows meet.
const fewIDs = 7

// random is a value of no special kind; ok is false where only NULL is known.
func (m maker) random(id bool) (string, bool) {
	n := m.r.below(fewIDs)
	if !id {
		n = m.r.below(20_000) - 10_000
	}
	if b := m.c.Bounds; b != nil && !id {
		part := big.NewRat(m.r.below(1000), 1000)
		v := part.Mul(part, new(big.Rat).Sub(b.Hi, b.Lo))
		return m.text(v.Add(v, b.Lo))
	}
	if d := m.c.Domain; len(d) > 0 && !id {
		k := d[m.r.below(int64(len(d)))]
		return k.Text, !k.Null
	}
	switch m.c.Type {
	case catalog.Bool:
		return strconv.FormatBool(n%2 == 0), true
	case catalog.Text, catalog.Char:
		return strings.Repeat(string(rune('a'+((n%26)+26)%26)), 1+algebra.BoolIndex(!id && (m.c.TypMod < 5 || m.c.TypMod > 8))), true
	case catalog.UUID:
		return fmt.Sprintf("00000000-0000-0000-0000-%012x", uint64(n)&0xffffffffffff), true
	case catalog.Enum:
		return "", false
	default:
		return m.text(scalar.Number(n))
	}
}

// text writes a number in the unit of bounds as a value of the column's type; ok is false where it is none.
func (m maker) text(v *big.Rat) (string, bool) {
	switch t := m.c.Type; {
	case t.IsInteger():
		v = new(big.Rat).SetInt(scalar.Floor(v))
		return v.Num().String(), scalar.Exactly(v).Fits(t)
	case t == catalog.Numeric:
		digits, fixed := algebra.Scale(algebra.Column{Of: &algebra.Field{Column: m.c}})
		if !fixed {
			digits = domain.FreeScale
		} else if new(big.Rat).Abs(v).Cmp(new(big.Rat).SetInt(scalar.Power10(max(int(m.c.TypMod-4)>>16-digits, 0)))) >= 0 {
			return "", false
		}
		whole := scalar.Floor(new(big.Rat).Mul(v, new(big.Rat).SetInt(scalar.Power10(digits))))
		return scalar.DecimalText(new(big.Rat).SetFrac(whole, scalar.Power10(digits))), true
	case scalar.IsFloat(t):
		f, _ := v.Float64()
		return scalar.FormatFloat(f, integerWidth(t)), scalar.IsOf(v, t)
	case t.IsTime():
		return scalar.TimeOf(new(big.Rat).SetInt(scalar.Floor(v)), t), true
	default:
		return "", false
	}
}

// integerWidth is the number of bits of a float type.
func integerWidth(t catalog.Type) int {
	if t == catalog.Float4 {
		return 32
	}
	return 64
}

// arrayText writes values as PostgreSQL reads an array.
func arrayText(values []*string) string {
	var b strings.Builder
	b.WriteByte('{')
	for i, v := range values {
		if i > 0 {
			b.WriteByte(',')
		}
		if v == nil {
			b.WriteString("NULL")
			continue
		}
		b.WriteByte('"')
		b.WriteString(strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(*v))
		b.WriteByte('"')
	}
	b.WriteByte('}')
	return b.String()
}
