package domain

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/scalar"
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
		{catalog.Timestamptz, "2024-02-29Z", "2024-02-29 00:00:00+00"}, {catalog.Timestamptz, "2024-02-29 12:00z", "2024-02-29 12:00:00+00"},
		{catalog.Timestamptz, "2024-02-29 12:00:30.5 UTC", "2024-02-29 12:00:30.5+00"}, {catalog.Date, "2024-02-29 23:00 utc", "2024-02-29"},
		{catalog.Timestamptz, "2024-02-29 12:00+02", "2024-02-29 10:00:00+00"}, {catalog.Timestamp, "2024-02-29T12:00Z", "2024-02-29 12:00:00"},
		{catalog.Timestamptz, "2024-02-29 12:00 CET", ""}, {catalog.Timestamptz, "2024-02-29 12:00:00+02Z", ""},
		{catalog.UUID, "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"}, {catalog.UUID, "a0eebc999c0b", ""},
		{catalog.Char, "ab  ", "ab"}, {catalog.Text, "ab  ", "ab  "}, {catalog.Enum, "sad", "sad"},
	} {
		got, err := Typed(b, &syntax.Literal{}, c.text, c.t)
		if (err == nil) != (c.want != "") || err == nil && got.Text != c.want {
			t.Errorf("%s %q: %q, %v; want %q", c.t, c.text, got.Text, err, c.want)
		}
	}
}

// A literal that PostgreSQL reads as a value of a type is never said to be none: one that is too far out is out of range, and the hint says
// what the range is.
func TestLiteralsOutOfRange(t *testing.T) {
	b := &algebra.Binder{}
	r := rand.New(rand.NewPCG(34, 4))
	digits := func(n int) string {
		return string(rune('1'+r.IntN(9))) + strings.Repeat(string(rune('0'+r.IntN(10))), n-1)
	}
	pick := func(all ...string) string { return all[r.IntN(len(all))] }
	day := func() string { return fmt.Sprintf("%02d-%02d", 1+r.IntN(12), 1+r.IntN(28)) }
	date := func() string {
		return pick(digits(5+r.IntN(2))+"-"+day(), fmt.Sprintf("%04d-%s BC", 1+r.IntN(4000), day()), "infinity", "-infinity")
	}
	number := func() string { return pick("", "-") + pick("1e"+digits(3+r.IntN(4)), digits(700), "0.5e-"+digits(4)) }
	far := map[catalog.Type]func() string{
		catalog.Int2: func() string { return digits(641) }, catalog.Int4: func() string { return "-" + digits(700) },
		catalog.Int8: func() string { return digits(641 + r.IntN(1000)) }, catalog.Numeric: number, catalog.Float4: number,
		catalog.Float8: number,
		catalog.Date:   date, catalog.Timestamp: func() string { return strings.TrimSpace(date()) },
		catalog.Timestamptz: func() string { return digits(5) + "-" + day() + pick(" 10:00:00+00", "T23:59:59+02:00") },
		scalar.IntervalType: func() string {
			return pick("", "-") + pick(digits(6)+" years", digits(5)+" years 3 days", digits(7)+" days", digits(30)+" hours",
				digits(10)+" minutes", digits(40)+" weeks", digits(6)+" mons")
		},
	}
	for kind, literal := range far {
		for range 100 {
			text := literal()
			_, err := Typed(b, &syntax.Literal{}, text, kind)
			if err == nil && (kind == catalog.Numeric || scalar.IsFloat(kind)) {
				continue // 1e250 is within
			}
			if err == nil || !strings.Contains(err.Error(), "out of range") {
				t.Errorf("%s %.60q: %v", kind, text, err)
			}
			if _, err := Typed(b, &syntax.Literal{}, text+"x", kind); err == nil || strings.Contains(err.Error(), "out of range") {
				t.Errorf("%s %.60q: %v", kind, text+"x", err)
			}
		}
	}
}
