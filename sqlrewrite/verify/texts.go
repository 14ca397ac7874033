package verify

import (
	"math/big"
	"strings"
	"unicode/utf8"

	pgquery "github.com/pganalyze/pg_query_go/v6"

	"noisegate.example/sqlrewrite/verify/internal/ranges"
	"noisegate.example/sqlrewrite/verify/internal/regex"
)

// Texts (Lemma 5a):
//
//  1. Functions of texts raise an error where a result would be too long: they are taken for texts of at most 10,000 characters. *Example.*
//     upper(x) of a text column is refused; of CASE WHEN octet_length(x) <= 1024 THEN x END it is taken.
//  2. LIKE raises one for a pattern that ends in its escape character; regular expressions for what PostgreSQL cannot compile. Both patterns are
//     constants whose text is read here, not computed of such; those of regular expressions are of a grammar on which PostgreSQL's and this
//     reader agree (regex.Compiles). *Example.* x LIKE 'a\' is refused, and so is x ~ '('.

const maxChars = 10_000

// textual are functions of texts, by the shape of their arguments: t text, c character, n a constant whole number of at most 2^30.
func (d *derivation) textual(name string, args []*value) *value {
	if name == "concat" {
		return d.concat(args)
	}
	shape, long := "", false
	for i, a := range args {
		n := a.number()
		switch {
		case a.kind == text:
			shape, long = shape+"t", long || a.chars < 0 || a.chars > maxChars
		case a.kind == bpchar:
			shape += "c"
		case isInteger(a.kind) && n != nil && n.Num().CmpAbs(big.NewInt(1<<30)) <= 0:
			if name == "substr" && i == 2 && n.Sign() < 0 {
				refuse("substr of a negative length")
			}
			shape += "n"
		}
	}
	if len(shape) != len(args) {
		return nil
	}
	x := args[0]
	result := func(k kind, most int64) *value {
		if long {
			refuse("%s of a text that may be long", name)
		}
		v := d.apply(k, name, args...)
		switch k {
		case text:
			v.chars = int(most)
		case int4:
			v.within = ranges.Of(0, most)
		default: // without a bound
		}
		return v
	}
	switch name + " " + shape {
	case "octet_length t", "octet_length c":
		long = false
		return result(int4, 1<<30)
	case "left tn":
		n := args[1].number()
		if long = n.Num().CmpAbs(big.NewInt(maxChars)) > 0; n.Sign() < 0 { // all but the last
			return result(text, int64(x.chars))
		}
		return result(text, n.Num().Int64())
	case "length t":
		return result(int4, int64(x.chars))
	case "strpos tt":
		return result(int4, int64(x.chars)+1)
	case "upper t", "lower t", "initcap t": // a letter has at most three in its other case
		return result(text, 3*int64(x.chars))
	case "right tn", "substr tn", "substr tnn", "btrim t", "btrim tt", "ltrim t", "ltrim tt", "rtrim t", "rtrim tt":
		return result(text, int64(x.chars))
	case "starts_with tt":
		return result(boolean, 0)
	}
	return nil
}

// concat leaves NULLs out.
func (d *derivation) concat(args []*value) *value {
	v := d.always(text, "concat", args...)
	v.chars = 0
	for _, a := range args {
		switch {
		case a.kind == text && a.chars >= 0 && a.chars <= maxChars:
			v.chars += a.chars
		case isInteger(a.kind), a.kind == boolean, a.kind == date, a.kind == uuid:
			v.chars += 40
		default:
			refuse("concat of a type, or of a text that may be long")
		}
	}
	return v
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
		if len(r.text) > 1000 || !utf8.ValidString(r.text) || !regex.Compiles(r.text) {
			refuse("a regular expression that PostgreSQL may not compile")
		}
	}
	return d.apply(boolean, op, l, r)
}
