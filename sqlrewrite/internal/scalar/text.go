package scalar

import (
	"slices"
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

// NameText is a name as people write it: in quotes where it needs them. Several are parts of one, with a dot between.
func NameText(names ...string) string {
	written := make([]string, len(names))
	for i, name := range names {
		if written[i] = name; strings.Trim(name, "abcdefghijklmnopqrstuvwxyz_0123456789") != "" || name == "" || name[0] <= '9' ||
			slices.Contains(reserved, name) {
			written[i] = QuoteIdent(name)
		}
	}
	return strings.Join(written, ".")
}

// reserved are the words that PostgreSQL takes for no column, or for no table (pg_get_keywords: catcode R and T).
var reserved = strings.Fields(`all analyse analyze and any array as asc asymmetric authorization binary both case cast check collate collation
	column concurrently constraint create cross current_catalog current_date current_role current_schema current_time current_timestamp
	current_user default deferrable desc distinct do else end except false fetch for foreign freeze from full grant group having ilike in
	initially inner intersect into is isnull join lateral leading left like limit localtime localtimestamp natural not notnull null offset on
	only or order outer overlaps placing primary references returning right select session_user similar some symmetric system_user table
	tablesample then to trailing true union unique user using variadic verbose when where window with`)

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
