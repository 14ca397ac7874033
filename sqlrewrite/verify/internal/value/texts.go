package value

import (
	"strings"
	"unicode/utf8"

	"noisegate.example/sqlrewrite/verify/internal/ranges"
)

// Texts (Lemma 5a):
//
//  1. Functions of texts raise an error where a result would be too long: they are taken for texts of at most 10,000 characters. *Example.*
//     upper(x) of a text column is refused; of CASE WHEN octet_length(x) <= 1024 THEN x END it is taken. replace(x, a, b) has as many
//     characters as x, times those of b over those of a rounded up where that is more: the pieces that are replaced do not overlap.
//  2. LIKE raises one for a pattern that ends in its escape character; regular expressions for what PostgreSQL cannot compile. Both
//     patterns are constants whose text is read here, not computed of such; those of regular expressions are of a grammar on which
//     PostgreSQL's and this reader agree (compilable). *Example.* x LIKE 'a\' is refused, and so is x ~ '('.
//  3. regexp_replace is taken for patterns without groups that remember (replaceable), and for replacements without backslashes. It has as
//     many characters as x, and those of the replacement for each match: with 'g' at most one before each character and one at the end.
//     *Example.* regexp_replace(x, '(a|b)*', '\1') is refused, regexp_replace(x, '(?:a|b)*', '') is taken.

const maxChars = 10_000

// ofText is a function of texts: the length of what it gives is bounded by a multiple of the first one's.
func ofText(k Kind, times, more int) rule {
	return func(d *Terms, name string, args ...*Value) *Value {
		return d.short(k, times*args[0].Chars+more, name, args)
	}
}

// short is a text of at most some characters, or a number of them, of texts that are not long.
func (d *Terms) short(k Kind, most int, name string, args []*Value) *Value {
	for _, a := range args {
		if a.Kind == Text && (a.Chars < 0 || a.Chars > maxChars) {
			refuse("%s of a text that may be long", name)
		}
	}
	return d.upTo(k, most, name, args)
}

func (d *Terms) upTo(k Kind, most int, name string, args []*Value) *Value {
	v := d.Apply(k, name, args...)
	switch k {
	case Text:
		v.Chars = most
	case Int4:
		v.Within = ranges.Of(0, int64(most))
	default: // without a bound
	}
	return v
}

func (d *Terms) octets(name string, args ...*Value) *Value {
	return d.upTo(Int4, 1<<30, name, args)
}

// left is total on any text.
func (d *Terms) left(name string, args ...*Value) *Value {
	most := int(args[1].Number().Num().Int64())
	if max(most, -most) > maxChars {
		refuse("%s of a text that may be long", name)
	}
	if most < 0 { // all but the last
		most = args[0].Chars
	}
	return d.upTo(Text, most, name, args)
}

func (d *Terms) substr(name string, args ...*Value) *Value {
	if len(args) == 3 && args[2].Number().Sign() < 0 {
		refuse("substr of a negative length")
	}
	return d.short(Text, args[0].Chars, name, args)
}

// splitPart raises an error for the place 0; places from the end are taken since PostgreSQL 14.
func (d *Terms) splitPart(name string, args ...*Value) *Value {
	if args[1].Null || args[2].Number().Sign() == 0 {
		refuse("split_part of the place 0, or by NULL")
	}
	return d.short(Text, args[0].Chars, name, args)
}

// replace makes at most times as many characters, where each of the first constant becomes so many of the second.
func (d *Terms) replace(name string, args ...*Value) *Value {
	if args[1].Null || args[2].Null {
		refuse("replace of or by NULL")
	}
	times := growth(utf8.RuneCountInString(args[1].text), utf8.RuneCountInString(args[2].text))
	return d.short(Text, args[0].Chars*times, name, args)
}

// regexReplace is regexp_replace with the flags g, i or both.
func (d *Terms) regexReplace(name string, args ...*Value) *Value {
	for _, a := range args[1:] {
		if a.Null {
			refuse("regexp_replace of or by NULL")
		}
	}
	pattern, by := args[1].text, args[2].text
	if len(pattern) > 200 || !utf8.ValidString(pattern) || !compilable(pattern) {
		refuse("a pattern of regexp_replace that PostgreSQL may not compile, or that is long")
	}
	if _, ok := replaceable(pattern); !ok || strings.Contains(by, `\`) {
		refuse("regexp_replace with groups that remember")
	}
	matches := 1
	if len(args) > 3 {
		if strings.Trim(args[3].text, "gi") != "" {
			refuse("regexp_replace with other flags")
		}
		if strings.Contains(args[3].text, "g") {
			matches = args[0].Chars + 1
		}
	}
	return d.short(Text, args[0].Chars+matches*utf8.RuneCountInString(by), name, args)
}

// growth is how often a text grows by what it has at most when pieces of one length become pieces of another: where nothing is looked for,
// nothing is replaced.
func growth(from, to int) int {
	if from == 0 {
		return 1
	}
	return max(1, (to+from-1)/from)
}

// concat leaves NULLs out.
func (d *Terms) concat(name string, args ...*Value) *Value {
	v := d.Always(Text, name, args...)
	v.Chars = 0
	for _, a := range args {
		switch {
		case a.Kind == Text && a.Chars >= 0 && a.Chars <= maxChars:
			v.Chars += a.Chars
		case a.Kind.IsInteger(), a.Kind == Boolean, a.Kind == Date, a.Kind == UUID:
			v.Chars += 40
		default:
			refuse("concat of a type, or of a text that may be long")
		}
	}
	return v
}

// join is l || r.
func (d *Terms) join(op string, args ...*Value) *Value {
	l, r := args[0], args[1]
	if l.Kind != Text || r.Kind != Text || l.Chars < 0 || r.Chars < 0 || l.Chars+r.Chars > maxChars {
		refuse("|| of texts that may be long")
	}
	v := d.Apply(Text, op, l, r)
	v.Chars = l.Chars + r.Chars
	return v
}

// Like is [NOT] LIKE and ILIKE.
func (d *Terms) Like(op string, l, r *Value) *Value {
	if !l.Kind.IsText() || l.Ident != "" || r.Kind != Text || !r.read() {
		refuse("LIKE with a pattern that is no constant")
	}
	if trailing := len(r.text) - len(strings.TrimRight(r.text, `\`)); trailing%2 == 1 {
		refuse("a pattern that ends in its escape character")
	}
	if len(r.text) > 1000 {
		refuse("a pattern of more than 1,000 bytes")
	}
	switch op {
	case "~~", "!~~", "~~*", "!~~*":
		return d.Apply(Boolean, op, l, r)
	}
	refuse("LIKE with another operator")
	return nil
}

// match is ~ ~* !~ !~*.
func (d *Terms) match(op string, args ...*Value) *Value {
	l, r := args[0], args[1]
	if l.Kind != Text || l.Ident != "" || l.Chars < 0 || l.Chars > maxChars || r.Kind != Text || !r.read() {
		refuse("a regular expression over a text that may be long, or that is no constant")
	}
	if !r.Null {
		if len(r.text) > 1000 || !utf8.ValidString(r.text) || !compilable(r.text) {
			refuse("a regular expression that PostgreSQL may not compile")
		}
	}
	return d.Apply(Boolean, op, l, r)
}
