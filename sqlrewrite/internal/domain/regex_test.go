package domain

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"noisegate.example/internal/pgtest"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/scalar"
)

// The subset by example: what is taken, and what is refused though PostgreSQL takes it, because it can fail or take long there, or means
// something else elsewhere.
func TestRegexSubset(t *testing.T) {
	taken := []string{`abc`, `^a.c$`, `a|b`, `(a|bc)+d`, `(?:ab)*`, `[abc]`, `[^a-z0-9_]`, `[[:alpha:][:digit:]x]`, `\d{3}-\d{4}`, `\.\*\\`, `x{2,}`, `x{0,3}y?`, `[\]\-\\]`, `[a-]`, `.{1,30}`, strings.Repeat("a", 200), `diabetes mellitus type 2|hypertension, not elsewhere classified`, `ü+`, `[\d.]`, `^$`}
	refused := []string{``, `(`, `)`, `a)`, `(a`, `()`, `a||b`, `|a`, `*a`, `+`, `a**`, `a+?`, `a{2}{3}`, `a{`, `a{x}`, `a{3,2}`, `a{31}`, `a{0}`, `{2}`, `a}`, `]`, `[]`, `[]a]`, `[a`, `[z-a]`, `[a-\d]`, `[[.a.]]`, `[[=a=]]`, `[[:nosuch:]]`,
		`[a[b]`, `[\D]`, `\1`, `(a)\1`, `\m`, `\yx`, `\A`, `\x41`, `\u0041`, `\`, `(?=a)`, `(?!a)`, `(?<=a)`, `(?i)a`, `***:a`, `^*`, `$+`, `(.{10}){4}`, `(a|b)*a(a|b){15}`, `[` + "\u0100-\uffff" + `]`,
		strings.Repeat("(", 11) + "a" + strings.Repeat(")", 11), strings.Repeat("[ab]", 31)}
	for _, p := range taken {
		if err := CheckRegex(p); err != nil {
			t.Errorf("%s is refused: %v", p, err)
		}
	}
	for _, p := range refused {
		if CheckRegex(p) == nil {
			t.Errorf("%s is taken", p)
		}
	}
}

// randomRegex writes a pattern of the subset.
func randomRegex(r *rand.Rand, depth int) string {
	var b strings.Builder
	for range 1 + r.IntN(3) {
		atoms := []string{"a", "b", "é", `\.`, ".", "[ab]", "[^a]", "[a-c_]", "[[:alpha:]]", `\d`, `\w`, `\S`, "^", "$"}
		atom := atoms[r.IntN(len(atoms))]
		if depth > 0 && r.IntN(3) == 0 {
			atom = "(" + []string{"", "?:"}[r.IntN(2)] + randomRegex(r, depth-1) + []string{"", "|" + randomRegex(r, depth-1)}[r.IntN(2)] + ")"
		}
		b.WriteString(atom)
		if atom != "^" && atom != "$" {
			b.WriteString([]string{"", "", "*", "+", "?", "{2}", "{1,3}", "{2,}"}[r.IntN(8)])
		}
	}
	return b.String()
}

// regexTexts are short ones on which most patterns differ, and the worst: empty, long, wide.
var regexTexts = []string{"", "a", "b", "ab", "ba.b", "aab1", "a b", "...", "a\nb", "_1", "abcabcabc", strings.Repeat("ab", 150)}

// A18, A29: whatever pattern is taken, PostgreSQL matches every text without an error, and as Go's engine does, which shares nothing with
// its own.
//
// covers: A18 A29
func TestRegexMatchesAsElsewhere(t *testing.T) {
	db := pgtest.New(t)
	conn := db.Conn(t, db.DSN)
	r := rand.New(rand.NewPCG(5, 5))
	for i := range 500 {
		pattern := randomRegex(r, 3)
		if CheckRegex(pattern) != nil {
			continue // too large
		}
		texts := regexTexts
		if i%50 == 0 {
			texts = append(slices.Clone(texts), strings.Repeat("é", 1<<20), "\U0001F600\u0301")
		}
		elsewhere := regexp.MustCompile("(?s)" + pattern)
		rows, err := conn.Query(t.Context(), "SELECT x ~ $1, x !~* $1, x FROM pg_catalog.unnest($2::text[]) AS x", pattern, texts)
		if err != nil {
			t.Fatalf("%s: %v", pattern, err)
		}
		for rows.Next() {
			var matches, fails bool
			var text string
			if err := rows.Scan(&matches, &fails, &text); err != nil {
				t.Fatal(err)
			}
			if len(text) < 1000 && !strings.ContainsRune(text, 0x301) && elsewhere.MatchString(text) != matches {
				t.Errorf("%q ~ %s is %v", text, pattern, matches)
			}
		}
		if rows.Err() != nil {
			t.Fatalf("%s: %v", pattern, rows.Err())
		}
	}
}

// SIMILAR TO is translated here; PostgreSQL's own translation gives the same answers.
func TestSimilarRegex(t *testing.T) {
	db := pgtest.New(t)
	conn := db.Conn(t, db.DSN)
	for _, pattern := range []string{"a%", "%b_", "(a|b)+", "a.b", "^a$", "[ab]%", `\%`, `\_1`, "%(1|c)", `_{2}`, `\..\.`, "[^a]", "%.%", "a_b"} {
		ours := SimilarRegex(pattern)
		if err := CheckRegex(ours); err != nil {
			t.Fatalf("%s: %v", pattern, err)
		}
		var differ []string
		err := conn.QueryRow(t.Context(), fmt.Sprintf(
			"SELECT coalesce(array_agg(x) FILTER (WHERE (x SIMILAR TO %s) <> (x ~ $1)), '{}') FROM pg_catalog.unnest($2::text[]) AS x",
			scalar.QuoteText(pattern)), ours, append(slices.Clone(regexTexts), "%", "_1", "...")).Scan(&differ)
		if err != nil || len(differ) > 0 {
			t.Errorf("%s as %s: differs on %q, %v", pattern, ours, differ, err)
		}
	}
}

// What groups remember changes no match, so that regexp_replace gives the same without it. Its result is no longer than it counts.
func TestReplacingWithoutMemory(t *testing.T) {
	conn := pgtest.New(t)
	db := conn.Conn(t, conn.DSN)
	r := rand.New(rand.NewPCG(7, 7))
	for range 300 {
		pattern := randomRegex(r, 3)
		if CheckRegex(pattern) != nil {
			continue
		}
		printed := withoutMemory(pattern)
		if strings.Contains(strings.NewReplacer("(?:", "", `\(`, "").Replace(printed), "(") {
			t.Fatalf("%s remembers", printed)
		}
		for _, flags := range []string{"", "g", "gi"} {
			call := algebra.Call{Args: []algebra.Expr{nil, nil, algebra.Constant{Text: "xyz"}, algebra.Constant{Text: flags}}}
			for _, text := range regexTexts {
				var wanted, got string
				if err := db.QueryRow(t.Context(), "SELECT regexp_replace($1, $2, 'xyz', $4), regexp_replace($1, $3, 'xyz', $4)", text, pattern,
					printed, flags).Scan(&wanted, &got); err != nil || wanted != got {
					t.Errorf("%q by %s: %q, by %s: %q, %v", text, pattern, wanted, printed, got, err)
				}
				letters := int64(utf8.RuneCountInString(text))
				if most := rewrittenLetters(call, func(algebra.Expr) int64 { return letters }); int64(utf8.RuneCountInString(got)) > most {
					t.Errorf("%q by %s: %q has more than %d characters", text, pattern, got, most)
				}
			}
		}
	}
}
