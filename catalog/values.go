package catalog

import (
	"cmp"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"noisegate.example/internal/fault"
)

// maxDomain is how many keys a public domain may have: every one appears in every answer that groups by it.
const maxDomain = 100_000

// maxLoaded is how many values a column of a public table may have for queries to group by it publicly without a declared domain.
const maxLoaded = 10_000

// maxMaxLength is the largest max_length of a column, in bytes.
const maxMaxLength = 65_536

// loadable reports whether the values of a public table's column can be public keys as they are.
func loadable(c *ColumnInfo) bool {
	return groupable(c) && c.Type != Timestamp && c.Type != Timestamptz
}

// maxSteps bounds lo/step and hi/step, so that a value counted in steps fits bigint with room for its noise-free sum's sign.
var maxSteps = new(big.Rat).SetInt64(1 << 62)

// bounds reads a column's bounds in the unit of its type; nil when something is wrong.
func (c *checker) bounds(b *BoundsPolicy, p *ColumnPolicy, live *ColumnInfo) *Bounds {
	if !live.Type.IsNumber() && !live.Type.IsTime() {
		c.problem(p.pos, "leave out the bounds", "column %s has the type %s, which has no bounds", p.Name, live.TypeName)
		return nil
	}
	lo, hi := c.bound(b.Lo, live), c.bound(b.Hi, live)
	step := c.step(b.Step, live)
	switch {
	case lo == nil || hi == nil || b.Step.Text != "" && step == nil:
		return nil
	case lo.Cmp(hi) >= 0:
		c.problem(b.Lo.pos, "write bounds: [lo, hi] with lo < hi", "the lower bound %s is not below the upper bound %s", b.Lo.Text, b.Hi.Text)
		return nil
	}
	if step != nil {
		for _, end := range []*big.Rat{lo, hi} {
			if steps := new(big.Rat).Quo(end, step); steps.Abs(steps).Cmp(maxSteps) > 0 {
				c.problem(b.Lo.pos, "take a larger step", "the bounds are more than 2^62 steps from zero")
				return nil
			}
		}
	}
	return &Bounds{Lo: lo, Hi: hi, Step: step, Line: b.Lo.pos.Line}
}

// bound reads one bound: a number, a date as days, or a time as microseconds.
func (c *checker) bound(s scalar, live *ColumnInfo) *big.Rat {
	switch live.Type {
	case Date:
		if day, err := time.Parse(time.DateOnly, s.Text); err == nil {
			return new(big.Rat).SetInt64(day.Unix() / 86400)
		}
		c.problem(s.pos, "", "%s is not a date such as 2024-02-29", fault.Quote(s.Text))
	case Timestamp, Timestamptz:
		if at, ok := parseTime(s.Text, live.Type == Timestamptz); ok {
			return new(big.Rat).SetInt64(at.UnixMicro())
		}
		c.problem(s.pos, "", "%s is not a time such as 2024-02-29 or 2024-02-29T12:30:00", fault.Quote(s.Text))
	case Int2, Int4, Int8:
		if v, ok := parseDecimal(s.Text); ok && v.IsInt() && fitsInteger(v.Num(), live.Type) {
			return v
		}
		c.problem(s.pos, "", "%s is not a value of the type %s", fault.Quote(s.Text), live.TypeName)
	case Numeric, Float4, Float8:
		if v, ok := parseDecimal(s.Text); ok {
			return v
		}
		c.problem(s.pos, "", "%s is not a decimal number", fault.Quote(s.Text))
	case Text, Char, Bool, UUID, Enum:
		fallthrough
	default:
		c.problem(s.pos, "", "values of the type %s have no bounds", live.TypeName)
	}
	return nil
}

func fitsInteger(v *big.Int, t Type) bool {
	bits := map[Type]int{Int2: 15, Int4: 31, Int8: 63}[t]
	if v.Sign() < 0 {
		v = new(big.Int).Not(v) // -2^n has n bits in its complement
	}
	return v.BitLen() <= bits
}

// parseTime reads an ISO date or time; without an offset it is in UTC. An offset means nothing to a column without time zone.
func parseTime(text string, zoned bool) (time.Time, bool) {
	layouts := []string{time.DateOnly, "2006-01-02T15:04:05", time.DateTime}
	if zoned {
		layouts = append(layouts, time.RFC3339)
	}
	for _, layout := range layouts {
		if at, err := time.Parse(layout, text); err == nil {
			return at, at.Nanosecond()%1000 == 0
		}
	}
	return time.Time{}, false
}

// step reads the public grid of a column; integers have the grid 1 without being asked. Steps of times are durations.
func (c *checker) step(s scalar, live *ColumnInfo) *big.Rat {
	if s.Text == "" {
		if live.Type.IsInteger() {
			return big.NewRat(1, 1)
		}
		return nil
	}
	var step *big.Rat
	ok := false
	what, whole := "a whole number or one over a whole number, such as 5, 0.01 or 1/3", false
	switch live.Type {
	case Timestamp, Timestamptz:
		what = "a duration of whole microseconds, such as 1s or 24h"
		if d, err := time.ParseDuration(s.Text); err == nil && d%time.Microsecond == 0 {
			step, ok = new(big.Rat).SetInt64(d.Microseconds()), true
		}
	case Int2, Int4, Int8, Date:
		what, whole = "a whole number", true
		step, ok = parseDecimal(s.Text)
	case Numeric, Float4, Float8:
		over, isFraction := strings.CutPrefix(s.Text, "1/")
		step, ok = parseDecimal(over)
		if ok = ok && step.Sign() > 0 && (step.IsInt() || !isFraction); ok && isFraction {
			step.Inv(step)
		}
	case Text, Char, Bool, UUID, Enum:
		fallthrough
	default:
		return nil // such columns have no bounds at all, which is reported there
	}
	if !ok || step.Sign() <= 0 || whole && !step.IsInt() || !step.IsInt() && step.Num().Cmp(big.NewInt(1)) != 0 {
		c.problem(s.pos, "", "the step of a column of type %s must be %s", live.TypeName, what)
		return nil
	}
	return step
}

// domain gives a column's public keys in canonical order; nil when something is wrong.
func (c *checker) domain(p *ColumnPolicy, live *ColumnInfo) []Key {
	var keys []Key
	if p.Domain.From != (ColumnRef{}) {
		var ok bool
		if keys, ok = c.domainFrom(p.Domain, live); !ok {
			return nil
		}
	} else {
		keys = c.domainListed(p, live)
	}
	if len(keys) > maxDomain {
		c.problem(p.Domain.pos, "use keys: private", "the domain of column %s has more than %d keys", p.Name, maxDomain)
		return nil
	}
	sortKeys(keys, live)
	return keys
}

// domainListed takes the keys that the policy lists itself.
func (c *checker) domainListed(p *ColumnPolicy, live *ColumnInfo) (keys []Key) {
	seen := map[Key]bool{}
	for _, s := range p.Domain.Keys {
		name := fault.Quote(s.Text)
		if s.Null {
			name = "null"
		}
		key, why := canonicalKey(s, live)
		if why == "" && seen[key] {
			why = "it is given twice"
		}
		if why != "" {
			c.problem(s.pos, "", "%s cannot be a key of column %s: %s", name, p.Name, why)
			continue
		}
		seen[key] = true
		keys = append(keys, key)
	}
	return keys
}

// domainFrom takes the keys from a public table's column, as they were read when the schema was.
func (c *checker) domainFrom(d *DomainPolicy, live *ColumnInfo) ([]Key, bool) {
	source, ok := c.policies[d.From.Table]
	if !ok || !source.Public {
		c.problem(d.pos, fmt.Sprintf("add %s: {public: true} to the tables, if its rows are nobody's secret", d.From.Table),
			"a domain is taken from a public table, and %s is none of this policy", d.From.Table)
		return nil, false
	}
	info, ok := c.infos[d.From.Table]
	if !ok {
		return nil, false // reported for the table itself
	}
	column, ok := info.Column(d.From.Column)
	if !ok {
		c.problems = append(c.problems, fault.PolicyUnknown(d.pos, "column", d.From.Column, info.columnNames()))
		return nil, false
	}
	if !comparable(column, live) {
		c.problem(d.pos, "", "%s.%s has the type %s, and cannot hold keys of type %s", d.From.Table, column.Name, column.TypeName, live.TypeName)
		return nil, false
	}
	keys, ok := c.domains[d.From]
	keys = slices.DeleteFunc(slices.Clone(keys), func(k Key) bool { return k.Null })
	if !ok || len(keys) == 0 {
		c.problem(d.pos, "", "%s.%s holds no value, so the domain would be empty", d.From.Table, column.Name)
		return nil, false
	}
	for _, key := range keys {
		if _, why := canonicalKey(scalar{Text: key.Text, Null: key.Null}, live); why != "" {
			c.problem(d.pos, "", "%s.%s holds %s, which cannot be a key of this column: %s", d.From.Table, column.Name, fault.Quote(key.Text), why)
			return nil, false
		}
	}
	return keys, true
}

// comparable reports whether equal values of two columns have one text.
func comparable(a, b *ColumnInfo) bool {
	switch {
	case a.Type == Enum || b.Type == Enum:
		return a.Enum == b.Enum || a.Type == Text && b.Type == Enum
	case a.Type == Numeric && b.Type == Numeric:
		return a.Scale == b.Scale
	default:
		return a.Type == b.Type || a.Type.IsInteger() && b.Type.IsInteger() || a.Type.IsText() && b.Type.IsText()
	}
}

var uuidPattern = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)

// canonicalKey turns a key as written into the text that PostgreSQL gives for an equal value of the column; why is set
// when there is no such value.
func canonicalKey(s scalar, c *ColumnInfo) (key Key, why string) {
	if s.Null {
		if c.NotNull {
			return Key{}, "the column is never null"
		}
		return Key{Null: true}, ""
	}
	switch c.Type {
	case Int2, Int4, Int8:
		if v, ok := parseDecimal(s.Text); ok && v.IsInt() && fitsInteger(v.Num(), c.Type) {
			return Key{Text: v.Num().String()}, ""
		}
		return Key{}, "it is not a value of the type " + c.TypeName
	case Numeric:
		if v, ok := parseDecimal(s.Text); ok && c.Scale >= 0 {
			if text := v.FloatString(c.Scale); decimalEqual(text, v) {
				return Key{Text: text}, ""
			}
		}
		return Key{}, fmt.Sprintf("it is not a number with at most %d digits after the point", c.Scale)
	case Text, Char:
		text := s.Text
		if c.Type == Char {
			text = strings.TrimRight(text, " ") // as the cast to text does
		}
		if c.MaxLength > 0 && utf8.RuneCountInString(text) > c.MaxLength {
			return Key{}, fmt.Sprintf("it is longer than %d characters", c.MaxLength)
		}
		return Key{Text: text}, ""
	case Bool:
		if s.Text == "true" || s.Text == "false" {
			return Key{Text: s.Text}, ""
		}
		return Key{}, "it is neither true nor false"
	case Date:
		if _, err := time.Parse(time.DateOnly, s.Text); err == nil {
			return Key{Text: s.Text}, ""
		}
		return Key{}, "it is not a date such as 2024-02-29"
	case UUID:
		if text := strings.ToLower(s.Text); uuidPattern.MatchString(text) {
			return Key{Text: text}, ""
		}
		return Key{}, "it is not a UUID"
	case Enum:
		if slices.Contains(c.EnumValues, s.Text) {
			return Key{Text: s.Text}, ""
		}
		return Key{}, "the type " + c.TypeName + " has no such value"
	case Float4, Float8, Timestamp, Timestamptz:
		fallthrough
	default:
		return Key{}, "values of the type " + c.TypeName + " cannot be public keys"
	}
}

func decimalEqual(text string, v *big.Rat) bool {
	w, ok := new(big.Rat).SetString(text)
	return ok && w.Cmp(v) == 0
}

// sortKeys puts keys in the order that ORDER BY gives values of the column's type: nulls last. A column of a public table can hold NaN, and
// numbers of more digits than are read: they come after all others, by their texts.
func sortKeys(keys []Key, c *ColumnInfo) {
	var numbers map[string]*big.Rat // parsed once
	if c.Type.IsNumber() {
		numbers = make(map[string]*big.Rat, len(keys))
		for _, k := range keys {
			if !k.Null {
				if v, ok := parseDecimal(k.Text); ok {
					numbers[k.Text] = v
				}
			}
		}
	}
	slices.SortFunc(keys, func(a, b Key) int {
		switch {
		case a.Null != b.Null && a.Null:
			return 1
		case a.Null != b.Null:
			return -1
		case c.Type.IsNumber():
			x, y := numbers[a.Text], numbers[b.Text]
			switch {
			case x != nil && y != nil:
				return x.Cmp(y)
			case x != nil:
				return -1
			case y != nil:
				return 1
			}
			return strings.Compare(a.Text, b.Text)
		case c.Type == Enum:
			return cmp.Compare(slices.Index(c.EnumValues, a.Text), slices.Index(c.EnumValues, b.Text))
		default:
			return strings.Compare(a.Text, b.Text)
		}
	})
}
