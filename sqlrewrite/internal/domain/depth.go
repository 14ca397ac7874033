package domain

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// symbol is one element of a pattern: a byte or a character; where case is ignored, any of a class of them.
type symbol rune

const (
	anySymbol  symbol = -1 // _
	wideSymbol symbol = -2 // without regard to case: any byte above 127
)

// depth is D of a pattern of LIKE: PostgreSQL compares a text of n bytes at most n(1+D) times (docs/sql/work.md, Lemma 17). Of a pattern
// that is not known, the worst of its length.
func depth(pattern Size, folded bool) int64 {
	if pattern.Text == nil {
		return lowered(pattern.Bytes)
	}
	most := int64(0)
	for i, piece := range pieces(*pattern.Text) {
		if i == 0 { // is compared at the start of the text alone
			continue
		}
		most = max(most, pieceDepth(piece, folded))
	}
	return most
}

// needleDepth is D of a text that strpos looks for: PostgreSQL compares from its end.
func needleDepth(needle Size) int64 {
	if needle.Text == nil {
		return max(0, needle.Bytes-1)
	}
	bytes := []byte(*needle.Text)
	slices.Reverse(bytes)
	symbols := make([]symbol, len(bytes))
	for i, b := range bytes {
		symbols[i] = symbol(b)
	}
	return borders(symbols)
}

// patternPiece is the part of a pattern between two %.
type patternPiece struct {
	letters []rune
	any     []bool // whether a letter is _
}

// pieces are the parts of a pattern between its %; the first one stands before all %.
func pieces(pattern string) []patternPiece {
	all := make([]patternPiece, 1)
	escaped := false
	for _, c := range pattern {
		last := &all[len(all)-1]
		switch {
		case !escaped && c == '\\':
			escaped = true
			continue
		case !escaped && c == '%':
			all = append(all, patternPiece{})
		default:
			last.letters, last.any = append(last.letters, c), append(last.any, c == '_' && !escaped)
		}
		escaped = false
	}
	return all
}

// pieceDepth is the most prefixes of a piece that can end at one place of a text. Between % and the first letter that is not _, PostgreSQL
// skips characters without trying.
func pieceDepth(p patternPiece, folded bool) int64 {
	for len(p.any) > 0 && p.any[0] {
		p.letters, p.any = p.letters[1:], p.any[1:]
	}
	text := string(p.letters)
	if folded && strings.ContainsFunc(text, movesBytes) {
		return lowered(int64(len(text)))
	}
	if slices.Contains(p.any, true) {
		symbols := make([]symbol, len(p.letters))
		wide := int64(0)
		for i, c := range p.letters {
			if symbols[i] = symbolOf(c, folded); p.any[i] {
				symbols[i] = anySymbol
			} else if c >= utf8.RuneSelf {
				wide = 1 // letters that are not equal can begin with the same bytes
			}
		}
		return overlaps(symbols) + wide
	}
	symbols := make([]symbol, len(text))
	for i := range symbols {
		symbols[i] = symbolOf(rune(text[i]), folded)
	}
	return borders(symbols)
}

// symbolOf is a byte or a letter as it is compared.
func symbolOf(c rune, folded bool) symbol {
	switch {
	case folded && c >= utf8.RuneSelf:
		return wideSymbol
	case folded:
		return symbol(unicode.ToLower(c))
	default:
		return symbol(c)
	}
}

// movesBytes reports whether a letter in lower case has other bytes than above 127, or another number of them.
func movesBytes(c rune) bool {
	lower := unicode.ToLower(c)
	return c >= utf8.RuneSelf && (lower < utf8.RuneSelf || utf8.RuneLen(lower) != utf8.RuneLen(c))
}

// borders is max d(s) over the prefixes of a piece: d(0) = 0, d(s) = 1 + d(fail(s)), fail by Knuth, Morris and Pratt.
func borders(p []symbol) (most int64) {
	fail, d := make([]int, len(p)+1), make([]int64, len(p)+1)
	k := 0
	for s := 1; s <= len(p); s++ {
		if s > 1 {
			for k > 0 && p[k] != p[s-1] {
				k = fail[k]
			}
			if p[k] == p[s-1] {
				k++
			}
			fail[s] = k
		}
		d[s] = 1 + d[fail[s]]
		most = max(most, d[s])
	}
	return most
}

// overlaps is the same of a piece with _: 1 + the number of shorter prefixes that may equal the end of one.
func overlaps(p []symbol) (most int64) {
	for s := 1; s <= len(p); s++ {
		d := int64(1)
		for k := 1; k < s; k++ {
			if mayEqual(p[:k], p[s-k:s]) {
				d++
			}
		}
		most = max(most, d)
	}
	return most
}

func mayEqual(a, b []symbol) bool {
	for i := range a {
		if a[i] != b[i] && a[i] != anySymbol && b[i] != anySymbol {
			return false
		}
	}
	return true
}
