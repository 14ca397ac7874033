package parse

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	pg "github.com/pganalyze/pg_query_go/v6"

	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/syntax"
)

// What the clock says becomes a constant of the text: current_date, now() and their like, and what is computed of them with constants.
// So a question of today is the question of that day's date. A value that changes within the day is refused: each refresh of a
// dashboard would be another question, and another charge. to_date and to_timestamp of constants become constants too.

// moment is a time that is known here.
type moment struct {
	at   time.Time
	kind string     // date, timestamp or timestamptz
	fine bool       // it changes within a day
	from syntax.Pos // where the text names the clock
}

// known gives an expression that is a moment the text of a constant.
func (c *converter) known(at syntax.Pos, m moment) syntax.Expr {
	layout := "2006-01-02"
	if m.kind != "date" {
		layout += " 15:04:05.999999"
	}
	if m.kind == "timestamptz" {
		layout += "+00"
	}
	e := &syntax.Cast{Pos: at, Type: m.kind, X: &syntax.Literal{Pos: at, Kind: syntax.StringLiteral, Text: m.at.Format(layout)}}
	if c.moments == nil {
		c.moments = make(map[syntax.Expr]moment)
	}
	c.moments[e] = m
	return e
}

// becomes replaces a moment, which an expression of it has taken in.
func (c *converter) becomes(x syntax.Expr, at syntax.Pos, m moment) syntax.Expr {
	delete(c.moments, x)
	return c.known(at, m)
}

// writtenName is what PostgreSQL calls an output that is written like this: what becomes a constant keeps its name.
func writtenName(n *pg.Node) string {
	switch {
	case n.GetSqlvalueFunction() != nil:
		op := n.GetSqlvalueFunction().Op.String()
		return strings.ToLower(strings.TrimSuffix(strings.TrimPrefix(op, "SVFOP_"), "_N"))
	case n.GetFuncCall() != nil:
		names := n.GetFuncCall().Funcname
		return names[len(names)-1].GetString_().GetSval()
	case n.GetTypeCast() != nil:
		if name := writtenName(n.GetTypeCast().Arg); name != "" {
			return name
		}
		names := n.GetTypeCast().TypeName.Names
		return names[len(names)-1].GetString_().GetSval()
	default:
		return ""
	}
}

// refuseFine refuses what is left of moments that change within a day.
func (c *converter) refuseFine() {
	first := syntax.Pos(-1)
	for _, m := range c.moments {
		if m.fine && (first < 0 || m.from < first) {
			first = m.from
		}
	}
	if first >= 0 {
		c.refuse(first, "a time that changes within the day",
			"write current_date, or cast or truncate the time to a day or more: each refresh would be another question, and cost again")
	}
}

// sessionValue converts CURRENT_DATE, CURRENT_TIMESTAMP and LOCALTIMESTAMP.
func (c *converter) sessionValue(n *pg.SQLValueFunction) syntax.Expr {
	at, op := syntax.Pos(take(&n.Location)), take(&n.Op)
	n.Typmod = 0 // -1, where no precision is written
	c.spent(n, at)
	var kind string
	switch op {
	case pg.SQLValueFunctionOp_SVFOP_CURRENT_DATE:
		kind = "date"
	case pg.SQLValueFunctionOp_SVFOP_CURRENT_TIMESTAMP:
		kind = "timestamptz"
	case pg.SQLValueFunctionOp_SVFOP_LOCALTIMESTAMP:
		kind = "timestamp"
	default:
		return c.refuse(at, "a value of the session (CURRENT_USER, CURRENT_TIME ...)", "write a literal")
	}
	return c.clock(at, kind)
}

// clock is the time of the request.
func (c *converter) clock(at syntax.Pos, kind string) syntax.Expr {
	if c.Now.IsZero() {
		return c.refuse(at, "a value of the clock", "write a literal: DATE '2024-01-31'")
	}
	if c.ofZone(at, "the time of the question") {
		return nil
	}
	now := c.Now.UTC().Truncate(time.Microsecond)
	if kind == "date" {
		return c.known(at, moment{at: scalar.Truncated(now, "day"), kind: kind})
	}
	return c.known(at, moment{at: now, kind: kind, fine: true, from: at})
}

// ofZone refuses what the session's time zone decides; false where that is UTC.
func (c *converter) ofZone(at syntax.Pos, what string) bool {
	if c.Zone != "" && c.refusal == nil {
		c.refusal = fault.TimeZone(scalar.Position(c.text, at), what, c.Zone)
	}
	return c.Zone != ""
}

// castMoment is a cast of a moment to a date or time; other casts stay.
func (c *converter) castMoment(e *syntax.Cast) syntax.Expr {
	m, ok := c.moments[e.X]
	switch {
	case !ok || len(e.Mods) > 0:
	case e.Type == "date":
		return c.becomes(e.X, e.Pos, moment{at: scalar.Truncated(m.at, "day"), kind: e.Type})
	case e.Type == "timestamp" || e.Type == "timestamptz":
		return c.becomes(e.X, e.Pos, moment{at: m.at, kind: e.Type, fine: m.fine, from: m.from})
	}
	return e
}

// callOfMoment is a call whose value is a moment, or that reads no more of one than its day; other calls stay.
func (c *converter) callOfMoment(e *syntax.Call) syntax.Expr {
	if e.Schema != "" && e.Schema != "pg_catalog" || e.Star || e.Distinct || e.Filter != nil || e.Over != nil ||
		len(e.OrderBy)+len(e.Within) > 0 {
		return e
	}
	switch e.Name {
	case "now", "transaction_timestamp", "statement_timestamp", "clock_timestamp":
		if len(e.Args) == 0 && !c.Now.IsZero() {
			return c.clock(e.Pos, "timestamptz")
		}
	case "date":
		if len(e.Args) == 1 {
			if m, ok := c.moments[e.Args[0]]; ok {
				return c.becomes(e.Args[0], e.Pos, moment{at: scalar.Truncated(m.at, "day"), kind: "date"})
			}
		}
	case "age": // of one argument it is the age of today
		if len(e.Args) == 1 {
			e.Args = []syntax.Expr{c.clock(e.Pos, "date"), e.Args[0]}
		}
	case "date_trunc":
		return c.truncatedMoment(e)
	case "extract", "date_part":
		return c.fieldOfMoment(e)
	case "to_date", "to_timestamp":
		if m, ok := constantTime(e); ok {
			if m.kind == "timestamptz" && len(e.Args) == 2 && c.ofZone(e.Pos, "to_timestamp of a text") {
				return nil
			}
			return c.known(e.Pos, m)
		}
		return c.refuse(e.Pos, strings.ToUpper(e.Name)+" of these arguments",
			"it takes constants, and templates of YYYY, MM, DD, HH24, MI, SS, .MS and .US: write DATE '2024-01-31', or x::date of a time")
	}
	return e
}

// days are the units of date_trunc, and the fields of extract, that are of a day or more.
func days(name string) bool {
	return slices.Contains([]string{"day", "week", "month", "quarter", "year", "isoyear", "decade", "century", "millennium", "dow", "isodow",
		"doy"}, name)
}

// fieldText is the first argument of date_trunc and extract.
func fieldText(e *syntax.Call) string {
	if len(e.Args) != 2 {
		return ""
	}
	l, ok := e.Args[0].(*syntax.Literal)
	if !ok || l.Kind != syntax.StringLiteral {
		return ""
	}
	return strings.ToLower(l.Text)
}

func (c *converter) truncatedMoment(e *syntax.Call) syntax.Expr {
	unit := fieldText(e)
	if unit == "" || !days(unit) || !slices.Contains(scalar.Truncations(), unit) {
		return e
	}
	m, ok := c.moments[e.Args[1]]
	if !ok {
		return e
	}
	kind := m.kind
	if kind == "date" {
		kind = "timestamptz" // as in PostgreSQL
	}
	return c.becomes(e.Args[1], e.Pos, moment{at: scalar.Truncated(m.at, unit), kind: kind})
}

func (c *converter) fieldOfMoment(e *syntax.Call) syntax.Expr {
	if field := fieldText(e); field != "" && days(field) {
		if m, ok := c.moments[e.Args[1]]; ok && m.fine {
			e.Args[1] = c.becomes(e.Args[1], e.Args[1].At(), moment{at: scalar.Truncated(m.at, "day"), kind: m.kind})
		}
	}
	return e
}

// movedMoment is a moment plus or minus a constant; other operations stay.
func (c *converter) movedMoment(e *syntax.Binary) syntax.Expr {
	x, by, sign := e.L, e.R, int64(1)
	switch _, left := c.moments[x]; {
	case e.Op == syntax.Subtract:
		sign = -1
	case e.Op != syntax.Add:
		return e
	case !left:
		x, by = e.R, e.L
	}
	m, ok := c.moments[x]
	if !ok {
		return e
	}
	switch by := by.(type) {
	case *syntax.Literal: // days
		n, err := strconv.ParseInt(by.Text, 10, 32)
		if by.Kind != syntax.IntegerLiteral || err != nil || m.kind != "date" {
			return e
		}
		m.at = m.at.AddDate(0, 0, int(sign*n))
	case *syntax.Cast:
		text, isLiteral := by.X.(*syntax.Literal)
		if !isLiteral || by.Type != "interval" || text.Kind != syntax.StringLiteral {
			return e
		}
		months, n, micros, ok := scalar.ParseInterval(text.Text)
		if !ok {
			return e
		}
		n += micros / scalar.DayUnit
		m.at = plusMonths(m.at, sign*months).AddDate(0, 0, int(sign*n)).Add(time.Duration(sign*(micros%scalar.DayUnit)) * time.Microsecond)
		if m.kind == "date" {
			m.kind = "timestamp"
		}
	default:
		return e
	}
	if y := m.at.Year(); y < 1 || y > 9999 {
		c.refuse(e.Pos, "a time this far from now", "stay within the years 1 to 9999")
		return e
	}
	return c.becomes(x, e.Pos, m)
}

// plusMonths adds months as PostgreSQL does: in a shorter month a day is its last one.
func plusMonths(at time.Time, months int64) time.Time {
	y, m, d := at.Date()
	first := time.Date(y, m+time.Month(months), 1, 0, 0, 0, 0, time.UTC)
	last := first.AddDate(0, 1, -1).Day()
	return first.AddDate(0, 0, min(d, last)-1).Add(at.Sub(time.Date(y, m, d, 0, 0, 0, 0, time.UTC)))
}

// constantTime is to_date or to_timestamp of constants: a text and a template of digits and signs, or seconds since 1970.
func constantTime(e *syntax.Call) (m moment, ok bool) {
	var texts []string
	for _, arg := range e.Args {
		l, isLiteral := arg.(*syntax.Literal)
		if isLiteral && len(e.Args) == 1 && l.Kind == syntax.IntegerLiteral && e.Name == "to_timestamp" {
			seconds, isNumber := new(big.Int).SetString(l.Text, 10)
			if !isNumber || !seconds.IsInt64() || seconds.Int64() > time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC).Unix() {
				return m, false
			}
			return moment{at: time.Unix(seconds.Int64(), 0).UTC(), kind: "timestamptz"}, true
		}
		if !isLiteral || l.Kind != syntax.StringLiteral {
			return m, false
		}
		texts = append(texts, l.Text)
	}
	if len(texts) != 2 {
		return m, false
	}
	at, ok := readByTemplate(texts[0], texts[1])
	if e.Name == "to_date" {
		return moment{at: scalar.Truncated(at, "day"), kind: "date"}, ok
	}
	return moment{at: at, kind: "timestamptz"}, ok
}

// readByTemplate reads a time whose fields have all their digits, with the signs of the template between them.
func readByTemplate(text, template string) (time.Time, bool) {
	const signs = "-/.:, "
	fields := []string{".US", ".000000", ".MS", ".000", "YYYY", "2006", "MM", "01", "DD", "02", "HH24", "15", "MI", "04", "SS", "05"}
	var gone []string
	for i := 0; i < len(fields); i += 2 {
		gone = append(gone, fields[i], "")
	}
	template = strings.ToUpper(template)
	if strings.Trim(strings.NewReplacer(gone...).Replace(template), signs) != "" || strings.Trim(text, signs+"0123456789") != "" ||
		!strings.Contains(template, "YYYY") {
		return time.Time{}, false
	}
	layout := strings.NewReplacer(fields...).Replace(template)
	at, err := time.Parse(layout, text)
	return at, err == nil && len(layout) == len(text) && at.Year() > 0
}

// Intervals that are computed of constants become one constant: INTERVAL '90' DAY, 30 * INTERVAL '1 day' and (-6 || ' day')::interval are
// '90 day' and their like.

// intervalFields are the units of INTERVAL '90' DAY by the modifier that the grammar writes for them (INTERVAL_MASK in PostgreSQL's
// utils/timestamp.h).
var intervalFields = map[int32]string{1 << 2: "year", 1 << 1: "month", 1 << 3: "day", 1 << 10: "hour", 1 << 11: "minute", 1 << 12: "second"}

// intervalField gives the number in the text of an interval its unit.
func (c *converter) intervalField(at syntax.Pos, cast *syntax.Cast) {
	unit, known := intervalFields[cast.Mods[0]]
	text, isLiteral := cast.X.(*syntax.Literal)
	if known && len(cast.Mods) == 1 && isLiteral && text.Kind == syntax.StringLiteral {
		if n, err := strconv.ParseInt(text.Text, 10, 32); err == nil {
			cast.X = &syntax.Literal{Pos: text.Pos, Kind: syntax.StringLiteral, Text: fmt.Sprintf("%d %s", n, unit)}
			cast.Mods = nil
			return
		}
	}
	c.refuse(at, "these fields or this precision of an interval type", "write the unit in the text: INTERVAL '1 day'")
}

// constantText makes the text of a date, time or interval that is put together of constants one constant.
func (c *converter) constantText(cast *syntax.Cast) {
	if joined, ok := cast.X.(*syntax.Binary); ok && joined.Op == syntax.Concat {
		switch text, known := textOf(joined); {
		case !known:
		case cast.Type == "interval", cast.Type == "date", cast.Type == "timestamp", cast.Type == "timestamptz":
			cast.X = &syntax.Literal{Pos: cast.X.At(), Kind: syntax.StringLiteral, Text: text}
		}
	}
}

// timesInterval is a whole number times a constant interval as one constant; other operations stay.
func timesInterval(e *syntax.Binary) syntax.Expr {
	times, by := e.L, e.R
	if _, first := times.(*syntax.Cast); first {
		times, by = by, times
	}
	cast, ok := by.(*syntax.Cast)
	if !ok || e.Op != syntax.Multiply || cast.Type != "interval" || cast.Mods != nil {
		return e
	}
	text, ok := cast.X.(*syntax.Literal)
	if !ok || text.Kind != syntax.StringLiteral {
		return e
	}
	digits, isText := textOf(times)
	n, isNumber := new(big.Int).SetString(digits, 10)
	months, days, micros, ok := scalar.ParseInterval(text.Text)
	if literal, isLiteral := times.(*syntax.Literal); !ok || !isText || !isNumber || isLiteral && literal.Kind == syntax.StringLiteral {
		return e
	}
	part := func(v int64) *big.Int { return new(big.Int).Mul(big.NewInt(v), n) }
	return &syntax.Cast{Pos: e.Pos, Type: cast.Type, X: &syntax.Literal{Pos: text.Pos, Kind: syntax.StringLiteral,
		Text: fmt.Sprintf("%s months %s days %s microseconds", part(months), part(days), part(micros))}}
}
