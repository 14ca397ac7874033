package scalar

import (
	"strings"
	"unicode/utf8"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/syntax"
)

// Position turns a byte offset into line and column, both from 1, columns in characters. Unknown stays unknown.
func Position(text string, at syntax.Pos) fault.Position {
	if at < 0 || int(at) > len(text) {
		return fault.Position{}
	}
	before := text[:at]
	lineStart := strings.LastIndexByte(before, '\n') + 1
	return fault.Position{
		Line:   1 + strings.Count(before, "\n"),
		Column: 1 + utf8.RuneCountInString(before[lineStart:]),
	}
}

// ByteOffset turns a count of characters, from 0, into a byte offset.
func ByteOffset(text string, characters int) syntax.Pos {
	for at := range text {
		if characters <= 0 {
			return syntax.Pos(at)
		}
		characters--
	}
	return syntax.Pos(len(text))
}

func KeyText(k catalog.Key) *string {
	if k.Null {
		return nil
	}
	return &k.Text
}

// QuoteIdent quotes a name so that it means exactly itself.
func QuoteIdent(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// QuoteText quotes a string for people; it is never run.
func QuoteText(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// Indented shifts lines one level to the right.
func Indented(lines []string) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = "  " + l
	}
	return out
}
