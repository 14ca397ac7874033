package domain

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"
)

// comparisons counts what MatchText of PostgreSQL (like_match.c) compares, in UTF-8: each byte of a literal with one of the text.
type comparisons struct{ n int64 }

type outcome int

const (
	differs outcome = iota
	matches
	ends // the text ended: no later start can match
)

func (c *comparisons) equal(a, b byte) bool {
	c.n++
	return a == b
}

func nextLetter(t string) string {
	_, size := utf8.DecodeRuneInString(t)
	return t[size:]
}

// match is MatchText.
func (c *comparisons) match(t, p string) outcome {
	if p == "%" {
		return matches
	}
	for len(t) > 0 && len(p) > 0 {
		switch p[0] {
		case '\\':
			if p = p[1:]; !c.equal(p[0], t[0]) {
				return differs
			}
		case '%':
			for p = p[1:]; len(p) > 0 && (p[0] == '%' || p[0] == '_'); p = p[1:] {
				if p[0] == '_' {
					if len(t) == 0 {
						return ends
					}
					t = nextLetter(t)
				}
			}
			if len(p) == 0 {
				return matches
			}
			first := p[0]
			if first == '\\' {
				first = p[1]
			}
			for len(t) > 0 {
				if c.equal(t[0], first) {
					if found := c.match(t, p); found != differs {
						return found
					}
				}
				t = nextLetter(t)
			}
			return ends
		case '_':
			t, p = nextLetter(t), p[1:]
			continue
		default:
			if !c.equal(p[0], t[0]) {
				return differs
			}
		}
		t, p = t[1:], p[1:]
	}
	if len(t) > 0 {
		return differs
	}
	for strings.HasPrefix(p, "%") {
		p = p[1:]
	}
	if p == "" {
		return matches
	}
	return ends
}

// find is text_position_next_internal (varlena.c): Boyer, Moore and Horspool.
func (c *comparisons) find(t, needle string) {
	if needle == "" || len(needle) > len(t) {
		return
	}
	var skip [256]int
	for i := range skip {
		skip[i] = len(needle)
	}
	last := len(needle) - 1
	for i := range last {
		skip[needle[i]] = last - i
	}
	for at := last; at < len(t); at += skip[t[at]] {
		for back := 0; c.equal(t[at-back], needle[last-back]); back++ {
			if back == last {
				return
			}
		}
	}
}

// periodic is a text of a few letters that repeats itself, with mistakes: what makes a search slow.
func periodic(r *rand.Rand, letters []rune, most int) string {
	period := make([]rune, 1+r.IntN(4))
	for i := range period {
		period[i] = letters[r.IntN(len(letters))]
	}
	out := make([]rune, r.IntN(most+1))
	for i := range out {
		if out[i] = period[i%len(period)]; r.IntN(24) == 0 {
			out[i] = letters[r.IntN(len(letters))]
		}
	}
	return string(out)
}

// LIKE compares a text of n bytes at most n(1+D) times with a pattern, where the first letter of a piece that is tried counts twice, for
// MatchText looks at it before it tries; strpos n(1+D) times by D of the needle from its end.
func TestDepthBoundsComparisons(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(60, 1))
	tightest := 0.0
	for range 20_000 {
		letters := [][]rune{{'a'}, {'a', 'b'}, {'a', 'é', 'è'}, {'𐐨', '𐐩'}, {'a', 'b', '_'}, {'a', '%', 'b'}, {'a', '_', 'é'}}[r.IntN(7)]
		pattern := "%" + periodic(r, letters, 24) + []string{"", "%", "b%", "_%"}[r.IntN(4)]
		text := strings.NewReplacer("_", "a", "%", "b").Replace(periodic(r, letters, 80))
		var like, found comparisons
		like.match(text, pattern)
		n, d := int64(len(text)), depth(Size{Text: &pattern}, false)
		if most := n * (2 + d); like.n > most {
			t.Fatalf("%q LIKE %q: %d comparisons, bound %d (depth %d)", text, pattern, like.n, most, d)
		}
		if n > 20 {
			tightest = max(tightest, float64(like.n)/float64(n*(1+d)))
		}
		needle := periodic(r, letters, 24)
		found.find(text, needle)
		if most := n * (1 + needleDepth(Size{Text: &needle})); found.n > most {
			t.Fatalf("strpos(%q, %q): %d comparisons, bound %d", text, needle, found.n, most)
		}
	}
	t.Logf("at most %.2f of n(1+D) comparisons", tightest)
	if tightest < 0.7 {
		t.Errorf("at most %.2f of the bound was seen: the texts are not slow ones", tightest)
	}
}

func TestPatternDepth(t *testing.T) {
	t.Parallel()
	for pattern, want := range map[string]int64{
		"%smith%": 1, "smith%": 0, "smith": 0, "%": 0, "%" + strings.Repeat("a", 190) + "b%": 190, "%aaa": 3, "%abab%": 2,
		`%\%\%\%%`: 3, "%a_a_%": 4, "%__a%": 1, "%ab%aaaa%c%": 4, "aaaa%b%": 1,
	} {
		if got := depth(Size{Text: &pattern}, false); got != want {
			t.Errorf("%s: depth %d, want %d", pattern, got, want)
		}
	}
	for pattern, want := range map[string]int64{"%aAaA%": 4, "%éèê%": 6, "%\u212a%": 4, "%smith%": 1, "%ß%": 2} {
		if got := depth(Size{Text: &pattern}, true); got != want {
			t.Errorf("ILIKE %s: depth %d, want %d", pattern, got, want)
		}
	}
}
