package verify

import (
	"math/big"
	"strings"
	"unicode/utf8"

	pgquery "github.com/pganalyze/pg_query_go/v6"
)

// Texts. Functions of texts raise an error where a result would be too long: they are taken for texts of at most 10,000 characters. LIKE
// raises one for a pattern that ends in its escape character; regular expressions for what PostgreSQL cannot compile. Both patterns are
// constants whose text is read here, not computed of such; those of regular expressions are of a grammar on which PostgreSQL's and this reader
// agree (regex).

const maxChars = 10_000

func (d *derivation) textual(name string, args []*value) *value {
	x := args[0]
	whole := func(i int) (int64, bool) { // a constant whole number
		n := args[i].number()
		if n == nil || !n.IsInt() || !n.Num().IsInt64() || !isInteger(args[i].kind) {
			return 0, false
		}
		return n.Num().Int64(), true
	}
	if name == "octet_length" && len(args) == 1 && isText(x.kind) {
		v := d.apply(int4, name, x)
		v.within = spanOf(0, 1<<30)
		return v
	}
	if x.kind != text {
		return nil
	}
	if name == "left" && len(args) == 2 {
		n, ok := whole(1)
		if !ok || n < -maxChars || n > maxChars {
			refuse("left of a number of characters that is no constant")
		}
		v := d.apply(text, name, args...)
		if v.chars = int(n); n < 0 { // all but the last
			v.chars = x.chars
		}
		return v
	}
	for _, a := range args {
		if a.kind == text && (a.chars < 0 || a.chars > maxChars) {
			refuse("%s of a text that may be long", name)
		}
	}
	longest := func(i int) *big.Rat { return big.NewRat(int64(args[i].chars), 1) }
	switch {
	case name == "length" && len(args) == 1, name == "strpos" && len(args) == 2 && args[1].kind == text:
		v := d.apply(int4, name, args...)
		v.within = span{zero, new(big.Rat).Add(longest(0), one)}
		if name == "length" {
			v.within.hi = longest(0)
		}
		return v
	case (name == "upper" || name == "lower" || name == "initcap") && len(args) == 1:
		v := d.apply(text, name, args...)
		v.chars = 3 * x.chars // a letter has at most three in its other case
		return v
	case name == "right" && len(args) == 2:
		if n, ok := whole(1); ok && n >= -maxChars && n <= maxChars {
			v := d.apply(text, name, args...)
			v.chars = x.chars
			return v
		}
	case name == "substr" && (len(args) == 2 || len(args) == 3):
		start, ok := whole(1)
		length := int64(0)
		if ok && len(args) == 3 {
			length, ok = whole(2)
		}
		if !ok || length < 0 || start < -1<<30 || start > 1<<30 || length > 1<<30 { // a negative length is an error, and so is a sum beyond integer
			refuse("substr with places that may raise an error")
		}
		v := d.apply(text, name, args...)
		v.chars = x.chars
		return v
	case (name == "btrim" || name == "ltrim" || name == "rtrim") && (len(args) == 1 || len(args) == 2 && args[1].kind == text):
		v := d.apply(text, name, args...)
		v.chars = x.chars
		return v
	case name == "starts_with" && len(args) == 2 && args[1].kind == text:
		return d.apply(boolean, name, args...)
	case name == "concat":
		v := d.always(text, name, args...) // leaves NULLs out
		v.chars = 0
		for _, a := range args {
			switch {
			case a.kind == text:
				v.chars += a.chars
			case isInteger(a.kind), a.kind == boolean, a.kind == date, a.kind == uuid:
				v.chars += 40
			default:
				return nil
			}
		}
		return v
	}
	return nil
}

// join is l || r.
func (d *derivation) join(l, r *value) *value {
	if l.kind != text || r.kind != text || l.chars < 0 || r.chars < 0 || l.chars+r.chars > maxChars {
		refuse("|| of texts that may be long")
	}
	v := d.apply(text, "||", l, r)
	v.chars = l.chars + r.chars
	return v
}

// like is [NOT] LIKE and ILIKE.
func (d *derivation) like(k pgquery.A_Expr_Kind, op string, l, r *value) *value {
	if !isText(l.kind) || l.ident != "" || r.kind != text || !r.read() {
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
		return d.apply(boolean, op, l, r)
	}
	refuse("LIKE with another operator")
	return nil
}

// match is ~ ~* !~ !~*.
func (d *derivation) match(op string, l, r *value) *value {
	if l.kind != text || l.ident != "" || l.chars < 0 || l.chars > maxChars || r.kind != text || !r.read() {
		refuse("a regular expression over a text that may be long, or that is no constant")
	}
	if !r.null {
		p := &regex{rest: r.text}
		if len(r.text) > 1000 || !p.alternatives() || p.rest != "" {
			refuse("a regular expression that PostgreSQL may not compile")
		}
	}
	return d.apply(boolean, op, l, r)
}

// regex reads a subset of PostgreSQL's advanced regular expressions, all of which compile:
//
//	alternatives = branch {"|" branch}
//	branch       = {atom [quantifier] | "^" | "$"}
//	atom         = "(" ["?:"] alternatives ")" | class | "." | "\" (letter of dDwWsS | punctuation) | any other character
//	quantifier   = ("*" | "+" | "?" | "{" m ["," [n]] "}") ["?"]     with m <= n <= 100
//	class        = "[" ["^"] item {item} "]"
//	item         = "[:" name ":]" | "\" (letter of dws | punctuation) | character ["-" character], in order
//
// There are no back references, no constraints beyond ^ and $, and no embedded options. What repetition multiplies out to is at most 2,000
// characters, far below what PostgreSQL refuses as too complex.
type regex struct {
	rest string
	size int // of what was read last, written out
	deep int
}

func (p *regex) next() byte {
	if p.rest == "" {
		return 0
	}
	return p.rest[0]
}

func (p *regex) take(s string) bool {
	rest, ok := strings.CutPrefix(p.rest, s)
	if ok {
		p.rest = rest
	}
	return ok
}

func (p *regex) alternatives() bool {
	if p.deep++; p.deep > 20 {
		return false
	}
	total := 0
	for {
		n, ok := p.branch()
		if total += n + 1; !ok || total > 2000 {
			return false
		}
		if !p.take("|") {
			p.deep--
			p.size = total
			return true
		}
	}
}

func (p *regex) branch() (total int, ok bool) {
	for {
		switch c := p.next(); c {
		case 0, '|', ')':
			return total, true
		case '^', '$':
			p.rest = p.rest[1:]
			if strings.ContainsRune("*+?{", rune(p.next())) && p.next() != 0 {
				return 0, false
			}
		default:
			if !p.atom() {
				return 0, false
			}
			size := p.size
			times, ok := p.quantifier()
			if total += size * times; !ok || total > 2000 {
				return 0, false
			}
		}
	}
}

func punctuation(c byte) bool { return c > ' ' && c < 0x7f && !letter(c) && c != '_' }
func letter(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

func (p *regex) atom() bool {
	p.size = 1
	switch c := p.next(); c {
	case '(':
		p.rest = p.rest[1:]
		if p.next() == '?' && !p.take("?:") {
			return false
		}
		if p.next() == '*' || !p.alternatives() {
			return false
		}
		return p.take(")")
	case '[':
		return p.class()
	case '\\':
		return p.escape("dDwWsS")
	case '*', '+', '?', '{', '}', ']':
		return false
	default:
		r, n := utf8.DecodeRuneInString(p.rest)
		if c < ' ' || r == utf8.RuneError {
			return false
		}
		p.rest = p.rest[n:]
		return true
	}
}

func (p *regex) escape(letters string) bool {
	if len(p.rest) < 2 || !strings.ContainsRune(letters, rune(p.rest[1])) && !punctuation(p.rest[1]) {
		return false
	}
	p.rest = p.rest[2:]
	return true
}

func (p *regex) class() bool {
	p.rest = p.rest[1:]
	p.take("^")
	for items := 0; ; items++ {
		switch c := p.next(); {
		case c == ']' && items > 0:
			p.rest = p.rest[1:]
			return true
		case c == '[':
			name, rest, ok := strings.Cut(strings.TrimPrefix(p.rest, "[:"), ":]")
			if !strings.HasPrefix(p.rest, "[:") || !ok || !strings.Contains(" alpha digit alnum upper lower space blank punct cntrl graph print xdigit ", " "+name+" ") {
				return false
			}
			p.rest = rest
		case c == '\\':
			if !p.escape("dws") {
				return false
			}
		case c < ' ' || c == ']' || c == '-' || c == '^':
			return false
		default:
			_, n := utf8.DecodeRuneInString(p.rest)
			p.rest = p.rest[n:]
			if p.next() != '-' {
				continue
			}
			// Ranges are of ASCII, from a lower character to a higher one.
			if len(p.rest) < 2 || n != 1 || strings.IndexByte(`[]\^-`, p.rest[1]) >= 0 || p.rest[1] < c || p.rest[1] > '~' {
				return false
			}
			p.rest = p.rest[2:]
		}
	}
}

func (p *regex) quantifier() (times int, ok bool) {
	switch p.next() {
	case '*', '+', '?':
		p.rest, times = p.rest[1:], 2
	case '{':
		inner, rest, found := strings.Cut(p.rest[1:], "}")
		low, high, isRange := strings.Cut(inner, ",")
		m, okM := small(low)
		n, okN := m, okM
		if isRange && high != "" {
			n, okN = small(high)
		}
		if !found || !okM || !okN || m > n {
			return 0, false
		}
		p.rest, times = rest, n+1
	default:
		return 1, true
	}
	p.take("?")
	return times, !strings.ContainsRune("*+?{", rune(p.next())) || p.next() == 0
}

// small is a whole number of at most 100.
func small(s string) (int, bool) {
	n := 0
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		if n = 10*n + int(s[i]-'0'); n > 100 {
			return 0, false
		}
	}
	return n, s != ""
}
