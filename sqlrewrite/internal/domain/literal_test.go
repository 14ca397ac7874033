package domain

import (
	"testing"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/syntax"
)

// Constants are read as PostgreSQL reads them and spelled in one way; what PostgreSQL would refuse is refused here first.
func TestTypedConstants(t *testing.T) {
	b := &algebra.Binder{}
	for _, c := range []struct {
		t          catalog.Type
		text, want string // "": refused
	}{
		{catalog.Int4, "42", "42"}, {catalog.Int4, " +007 ", "7"}, {catalog.Int4, "-0", "0"}, {catalog.Int4, "4.0", ""}, {catalog.Int4, "", ""},
		{catalog.Int4, "1e3", ""}, {catalog.Int4, "0x10", ""}, {catalog.Int4, "1_000", ""},
		{catalog.Int8, "99999999999999999999", "99999999999999999999"},
		{catalog.Numeric, "1.50", "1.5"}, {catalog.Numeric, ".5", "0.5"}, {catalog.Numeric, "5.", "5"}, {catalog.Numeric, "1e-3", "0.001"},
		{catalog.Numeric, ".", ""}, {catalog.Numeric, "1e", ""}, {catalog.Numeric, "1/2", ""}, {catalog.Numeric, "1e321", ""},
		{catalog.Numeric, "--1", ""},
		{catalog.Float8, "0.1", "0.1"}, {catalog.Float8, "1e308", "1e+308"}, {catalog.Float8, "1e309", ""}, {catalog.Float8, "1e-320", "1e-320"},
		{catalog.Float8, "-inf", "-Infinity"}, {catalog.Float8, "nan", "NaN"}, {catalog.Float8, "0x1p-2", ""},
		{catalog.Bool, "Yes", "true"}, {catalog.Bool, "off", "false"}, {catalog.Bool, "2", ""},
		{catalog.Date, "2024-02-29", "2024-02-29"}, {catalog.Date, "2023-02-29", ""}, {catalog.Date, "29.02.2024", ""},
		{catalog.Date, "infinity", ""},
		{catalog.Date, "2024-02-29 23:00:00", "2024-02-29"}, {catalog.Timestamp, "2024-02-29", "2024-02-29 00:00:00"},
		{catalog.Timestamptz, "2024-02-29T23:59:00.25+02:00", "2024-02-29 21:59:00.25+00"},
		{catalog.Timestamptz, "2024-02-29", "2024-02-29 00:00:00+00"},
		{catalog.UUID, "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"}, {catalog.UUID, "a0eebc999c0b", ""},
		{catalog.Char, "ab  ", "ab"}, {catalog.Text, "ab  ", "ab  "}, {catalog.Enum, "sad", "sad"},
	} {
		got, err := Typed(b, &syntax.Literal{}, c.text, c.t)
		if (err == nil) != (c.want != "") || err == nil && got.Text != c.want {
			t.Errorf("%s %q: %q, %v; want %q", c.t, c.text, got.Text, err, c.want)
		}
	}
}
