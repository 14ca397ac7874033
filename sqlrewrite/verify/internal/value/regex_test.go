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

// What a try reads that finds nothing is counted up to a repetition that ends an alternative; groups that remember are refused.
func TestReplaceable(t *testing.T) {
	for pattern, tried := range map[string]int64{`[^0-9]`: 1, `\s+`: 1, `\d{2,}`: 3, `-.*`: 2, `abc`: 3, `a?b{2,4}`: 5, `(?:ab|cde){2}x`: 7, `^\s+`: 0,
		`^(?:a+)b|^c`: 0, `^a|b`: 1, `\s+$`: anyLength, `a.*b`: anyLength, `(?:a*)`: anyLength, `(?:ab)*`: 2, `(?:^a|^b)`: 1, `x|a.*b`: anyLength, `a|^b`: 1} {
		if got, ok := replaceable(pattern); !ok || got != tried {
			t.Errorf("%s: %d, %v, not %d", pattern, got, ok, tried)
		}
	}
	for _, pattern := range []string{`(a)`, `(?:a(b))`, `a+?`, `a{2}?`} {
		if _, ok := replaceable(pattern); ok {
			t.Errorf("%s is taken", pattern)
		}
	}
}
