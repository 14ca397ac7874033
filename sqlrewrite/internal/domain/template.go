package domain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/syntax"
)

// Templates of to_char, of a date or time. Those that are taken have the same text here and in PostgreSQL, whatever the locale: table 9.27
// of its documentation, without TM, time zones and suffixes.

// templateField is what a word of a template stands for.
type templateField struct {
	word  string
	unit  string // of date_trunc: no value of the field differs within one
	every string // day, week or year: after it the values repeat; "" where they do not
	text  func(at time.Time) string
	short func(at time.Time) string // with FM; nil: the same
}

// piece is a field of a template, or what stands between two.
type piece struct {
	between string
	text    func(at time.Time) string
}

// template is a template of to_char, read.
type template struct {
	pieces []piece
	unit   string // the text is the same within one
	every  string // day, week or year: after it the texts repeat; "" where they do not
}

// maxTemplate bounds a template, in bytes.
const maxTemplate = 40

// longestWord is how many letters a word becomes at most, for each of its own: Day becomes Wednesday.
const longestWord = 3

// templateFields are the words that are taken, in upper case and in lower case where that is the same.
func templateFields() []templateField {
	number := func(word, unit, every string, width int, of func(time.Time) int) templateField {
		return templateField{word: word, unit: unit, every: every,
			text:  func(at time.Time) string { return fmt.Sprintf("%0*d", width, of(at)) },
			short: func(at time.Time) string { return fmt.Sprint(of(at)) }}
	}
	isoYear := func(at time.Time) int { y, _ := at.ISOWeek(); return y }
	isoWeek := func(at time.Time) int { _, w := at.ISOWeek(); return w }
	twelve := func(at time.Time) int { return (at.Hour()+11)%12 + 1 }
	var all []templateField
	for _, f := range []templateField{
		number("YYYY", "year", "", 4, time.Time.Year), number("YY", "year", "", 2, func(at time.Time) int { return at.Year() % 100 }),
		number("IYYY", "week", "", 4, isoYear), number("IW", "week", "", 2, isoWeek),
		number("Q", "quarter", "year", 1, func(at time.Time) int { return (int(at.Month()) + 2) / 3 }),
		number("MM", "month", "year", 2, func(at time.Time) int { return int(at.Month()) }),
		number("WW", "day", "year", 2, func(at time.Time) int { return (at.YearDay()-1)/7 + 1 }),
		number("W", "day", "year", 1, func(at time.Time) int { return (at.Day()-1)/7 + 1 }),
		number("DDD", "day", "year", 3, time.Time.YearDay), number("DD", "day", "year", 2, time.Time.Day),
		number("D", "day", "week", 1, func(at time.Time) int { return int(at.Weekday()) + 1 }),
		number("ID", "day", "week", 1, func(at time.Time) int { return (int(at.Weekday())+6)%7 + 1 }),
		number("HH24", "hour", "day", 2, time.Time.Hour), number("HH12", "hour", "day", 2, twelve), number("HH", "hour", "day", 2, twelve),
		number("MI", "minute", "day", 2, time.Time.Minute), number("SS", "second", "day", 2, time.Time.Second),
	} {
		all = append(all, f)
		f.word = strings.ToLower(f.word)
		all = append(all, f)
	}
	name := func(words []string, unit, every string, padded int, layout string) {
		cases := []func(string) string{strings.ToUpper, func(s string) string { return s }, strings.ToLower}
		for i, word := range words {
			text := func(at time.Time) string { return cases[i](at.Format(layout)) }
			all = append(all, templateField{word: word, unit: unit, every: every, short: text,
				text: func(at time.Time) string { return fmt.Sprintf("%-*s", padded, text(at)) }})
		}
	}
	name([]string{"MONTH", "Month", "month"}, "month", "year", 9, "January")
	name([]string{"MON", "Mon", "mon"}, "month", "year", 3, "Jan")
	name([]string{"DAY", "Day", "day"}, "day", "week", 9, "Monday")
	name([]string{"DY", "Dy", "dy"}, "day", "week", 3, "Mon")
	for _, word := range []string{"AM", "PM", "am", "pm"} { // either is what the time is
		layout := "PM"
		if word == strings.ToLower(word) {
			layout = "pm"
		}
		text := func(at time.Time) string { return at.Format(layout) }
		all = append(all, templateField{word: word, unit: "hour", every: "day", text: text, short: text})
	}
	for _, word := range []string{"IDDD", "SSSS", "YYY"} { // which begin with words that are taken
		all = append(all, templateField{word: word}, templateField{word: strings.ToLower(word)})
	}
	return all
}

// readTemplate reads a template; ok is false where it is not taken.
func readTemplate(text string) (t template, ok bool) {
	if text == "" || len(text) > maxTemplate {
		return t, false
	}
	t.every = "day"
	fields := templateFields()
	found := false
	for text != "" {
		if text[0] == '"' {
			between, rest, closed := strings.Cut(text[1:], `"`)
			if !closed || strings.ContainsFunc(between, func(r rune) bool { return r < ' ' || r > '~' || r == '\\' }) {
				return t, false
			}
			t.pieces, text = append(t.pieces, piece{between: between}), rest
			continue
		}
		if isPunctuation(text[0]) {
			t.pieces, text = append(t.pieces, piece{between: text[:1]}), text[1:]
			continue
		}
		word := strings.TrimPrefix(strings.TrimPrefix(text, "FM"), "fm")
		if len(text)-len(word) > 2 {
			return t, false
		}
		var best templateField
		for _, f := range fields {
			if strings.HasPrefix(word, f.word) && len(f.word) > len(best.word) {
				best = f
			}
		}
		if best.text == nil {
			return t, false
		}
		p := piece{text: best.text}
		if len(word) < len(text) {
			p.text = best.short
		}
		t.unit, t.every = commonUnit(t.unit, best.unit), commonCycle(t.every, best.every)
		t.pieces, text, found = append(t.pieces, p), word[len(best.word):], true
	}
	return t, found
}

// isPunctuation reports whether a character of a template stands for itself.
func isPunctuation(c byte) bool {
	letter := c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
	return c >= ' ' && c <= '~' && !letter && (c < '0' || c > '9') && c != '"' && c != '\\'
}

// commonUnit is the longest unit of date_trunc that lies within one of each of two; "" is none yet.
func commonUnit(a, b string) string {
	if a == "" {
		return b
	}
	units := scalar.Truncations()
	i, j := slices.Index(units, a), slices.Index(units, b)
	if shorter, longer := units[min(i, j)], units[max(i, j)]; shorter != "week" || longer == "week" {
		return shorter
	}
	return "day" // weeks begin in one month and end in the next
}

// commonCycle is after what two repeat together.
func commonCycle(a, b string) string {
	switch {
	case a == b || b == "day":
		return a
	case a == "day":
		return b
	default:
		return ""
	}
}

func (t template) of(at time.Time) string {
	var b strings.Builder
	for _, p := range t.pieces {
		if p.text == nil {
			b.WriteString(p.between)
		} else {
			b.WriteString(p.text(at))
		}
	}
	return b.String()
}

// templateCall types to_char, whose template is a constant.
func templateCall(b *algebra.Binder, _ *Builtin, n *syntax.Call, args []algebra.Expr) (algebra.Expr, error) {
	x, err := Coerce(b, n.Args[0], args[0], catalog.Timestamp)
	if err != nil {
		return nil, err
	}
	if !x.Typ().IsTime() {
		return nil, b.Unsupported(n, "to_char of "+scalar.TypeName(x.Typ()), "it takes a date or a time; numbers are cast to text: x::text")
	}
	c, isConstant := args[1].(algebra.Constant)
	if _, taken := readTemplate(c.Text); !isConstant || c.Null || !taken || c.T != scalar.UnknownType && c.T != catalog.Text {
		return nil, b.Unsupported(n.Args[1], "this template of to_char", "write a constant of YYYY, YY, IYYY, Q, MM, Month, Mon, IW, WW, W, "+
			"DDD, DD, D, ID, Day, Dy, HH24, HH12, MI, SS, AM, with FM before one that is not to be padded, signs between, and other text in "+
			"double quotes: 'YYYY-MM'")
	}
	return algebra.Call{Name: n.Name, Args: []algebra.Expr{x, algebra.Constant{T: catalog.Text, Text: c.Text}}, T: catalog.Text}, nil
}

// safeTemplate is to_char itself, of a time in the years that are written with four digits.
func safeTemplate(c safeCall) (Operand, error) {
	x, t := c.args[0], c.args[0].X.Typ()
	if t == catalog.Date {
		t = catalog.Timestamp
		x = toTime(x, t)
	}
	x = x.guarded()
	if scalar.AtTime(x.Lo, t).Year() < 1 || scalar.AtTime(x.Hi, t).Year() > 9999 {
		return Operand{}, tooFar(c.Binder, c.at)
	}
	return result(algebra.Call{Name: c.call.Name, Args: []algebra.Expr{x.X, c.call.Args[1]}, T: c.call.T}, nil), nil
}

func templateLetters(e algebra.Call, _ func(algebra.Expr) int64) int64 {
	return longestWord * int64(len(e.Args[1].(algebra.Constant).Text))
}

// templateTexts are the texts of all times between the bounds, or of a whole cycle.
func templateTexts(v evaluator, e algebra.Call) ([]datum, bool) {
	x := e.Args[0]
	t, _ := readTemplate(e.Args[1].(algebra.Constant).Text)
	from := x.Typ()
	text := func(d datum) (datum, bool) { return textDatum(t.of(scalar.AtTime(d.Value, from))), true }
	f := algebra.PlainField(x)
	if _, known := v.row[f]; f == nil || known {
		return v.each(x, text)
	}
	s, null, ok := v.times(x)
	if !ok {
		return nil, false
	}
	first, last := scalar.AtTime(s.Lo, from), scalar.AtTime(s.Hi, from)
	// Of two years one is a leap year: 'MM DDD' has the day 60 in February and in March.
	days := map[string]int{"day": 1, "week": 7, "year": 366 + 365}[t.every]
	if days > 0 && last.Sub(first) > 24*time.Hour*time.Duration(days) {
		first = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC) // a Monday, of a leap year
		last = first.AddDate(0, 0, days).Add(-time.Microsecond)
	}
	found := make(map[string]datum)
	for at := scalar.Truncated(first, t.unit); !at.After(last); at = nextUnit(at, t.unit) {
		d := textDatum(t.of(at))
		if found[d.identity()] = d; !v.spend(1) {
			return nil, false
		}
	}
	if null {
		found[nullDatum().identity()] = nullDatum()
	}
	return listed(found), true
}
