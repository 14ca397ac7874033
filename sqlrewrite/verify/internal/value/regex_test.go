package value

import "testing"

// Patterns that PostgreSQL compiles are taken, and others are not: each breaks one rule of the grammar.
func TestCompilable(t *testing.T) {
	for _, pattern := range []string{``, `^a|b$`, `(?:a(b)c)+?`, `[^[:alpha:]\d\-a-f_]`, `.{0,100}`, `\d\.\)x{2}`, `é[é]`, `((((a))))`,
		`(a{36}){50}`} {
		if !compilable(pattern) {
			t.Errorf("%q is refused", pattern)
		}
	}
	for _, pattern := range []string{`(`, `)`, `a)(b`, `[`, `[]`, `[b-a]`, `[[:word:]]`, `*a`, `a**`, `a{2,1}`, `a{101}`, `a{`, `\`, `\1`,
		`\y`, `(?=a)`, `(?i)a`, `***:a`, `(a{45}){50}`, `((a{50}){50}){50}`, "\n"} {
		if compilable(pattern) {
			t.Errorf("%q is taken", pattern)
		}
	}
}
