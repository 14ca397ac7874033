package parse

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	pg "github.com/pganalyze/pg_query_go/v6"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/syntax"
)

// Rows of constants are written out: VALUES inside a query, and generate_series of constants in FROM or as the only output of a query
// without FROM, are SELECTs of constants with UNION ALL between them. So a calendar is joined with released groups, which may lack some of
// its days.

// maxRows is how many rows of constants a text may stand for: a year has 366 days.
const maxRows = 400

// unionOf joins queries by UNION ALL, so that n of them are log n deep.
func unionOf(at syntax.Pos, rows []*syntax.Query) *syntax.Query {
	if len(rows) == 1 {
		return rows[0]
	}
	half := (len(rows) + 1) / 2
	return &syntax.Query{Pos: at, Set: &syntax.SetOperation{Pos: at, Kind: syntax.Union, All: true,
		Left: unionOf(at, rows[:half]), Right: unionOf(at, rows[half:])}}
}

// countRows refuses a text with too many rows of constants.
func (c *converter) countRows(at syntax.Pos, more int) bool {
	if c.rows += more; c.rows > maxRows {
		c.tooComplex(at, fmt.Sprintf("the query makes more than %d rows of constants", maxRows))
	}
	return c.refusal == nil
}

// values converts VALUES; its clauses other than ORDER BY, LIMIT and OFFSET are left to the caller.
func (c *converter) values(nodes []*pg.Node, at syntax.Pos) *syntax.Query {
	if !c.countRows(at, len(nodes)) {
		return &syntax.Query{}
	}
	var rows []*syntax.Query
	for _, node := range nodes {
		row := &syntax.Query{Pos: at}
		for i, x := range c.exprs(take(&node.GetList().Items)) {
			row.Items = append(row.Items, syntax.Item{Pos: x.At(), Expr: x, Alias: "column" + strconv.Itoa(i+1)})
		}
		if rows = append(rows, row); len(row.Items) != len(rows[0].Items) {
			c.refuse(at, "VALUES of rows of different lengths", "give all rows as many values")
		}
		if c.refusal != nil {
			return &syntax.Query{}
		}
	}
	return unionOf(at, rows)
}

// rangeFunction converts generate_series in FROM; other functions are refused there.
func (c *converter) rangeFunction(node *pg.Node, n *pg.RangeFunction) syntax.Relation {
	var items []*pg.Node
	if len(n.Functions) == 1 {
		items = n.Functions[0].GetList().GetItems()
	}
	names := []*pg.Node(nil)
	if len(items) > 0 && items[0].GetFuncCall() != nil && (len(items) == 1 || items[1].GetNode() == nil) {
		names = items[0].GetFuncCall().GetFuncname()
	}
	if len(names) == 0 || names[len(names)-1].GetString_().GetSval() != "generate_series" {
		c.unknown(node)
		return nil
	}
	n.Functions, n.Lateral = nil, false // constants name no other item of FROM
	call, isCall := c.expr(items[0]).(*syntax.Call)
	if !isCall || !isSeries(call) {
		c.refuse(locate(node), "generate_series with these clauses", "")
		return nil
	}
	s := &syntax.Subquery{Pos: call.Pos, Alias: call.Name}
	s.Columns = []string{call.Name}
	if alias := take(&n.Alias); alias != nil {
		s.Alias = take(&alias.Aliasname)
		s.Columns = []string{s.Alias}
		if names := c.names(take(&alias.Colnames)); len(names) > 0 {
			s.Columns = names
		}
		c.spent(alias, call.Pos)
	}
	c.spent(n, call.Pos)
	s.Query = c.series(call, s.Columns[0], func(x syntax.Expr) syntax.Expr { return x })
	return s
}

// seriesOutput is a query whose only output is generate_series, cast or not, as rows; other queries stay.
func (c *converter) seriesOutput(q *syntax.Query) {
	if c.refusal != nil || q.Set != nil || len(q.Items) != 1 || len(q.From) > 0 || q.Where != nil || q.Groups() || q.Having != nil ||
		q.Distinct || q.DistinctOn != nil || q.Windows != nil {
		return
	}
	item := q.Items[0]
	of := func(x syntax.Expr) syntax.Expr { return x }
	x := item.Expr
	for cast, isCast := x.(*syntax.Cast); isCast; cast, isCast = x.(*syntax.Cast) {
		inner := of
		of = func(x syntax.Expr) syntax.Expr {
			return inner(&syntax.Cast{Pos: cast.Pos, X: x, Type: cast.Type, Mods: cast.Mods})
		}
		x = cast.X
	}
	call, isCall := x.(*syntax.Call)
	if !isCall || !isSeries(call) {
		return
	}
	name := item.Alias
	if name == "" {
		name = call.Name
	}
	rows := c.series(call, name, of)
	if c.refusal != nil {
		return
	}
	if rows.Set == nil {
		q.Items = rows.Items
		return
	}
	q.Items, q.Set = nil, rows.Set
}

func isSeries(e *syntax.Call) bool {
	return e.Name == "generate_series" && (e.Schema == "" || e.Schema == "pg_catalog") && !e.Star && !e.Distinct && e.Filter == nil &&
		e.Over == nil && len(e.OrderBy)+len(e.Within) == 0
}

// series gives the rows of generate_series: each value, of which the output is made.
func (c *converter) series(e *syntax.Call, name string, output func(syntax.Expr) syntax.Expr) *syntax.Query {
	values := c.wholeSeries(e)
	if values == nil && c.refusal == nil {
		values = c.timeSeries(e)
	}
	if c.refusal == nil && values == nil {
		c.refuse(e.Pos, "generate_series of these arguments, or without rows",
			"it takes whole numbers, or dates and times with an interval: generate_series(DATE '2024-01-01', DATE '2024-01-31', INTERVAL '1 day')")
	}
	if !c.countRows(e.Pos, len(values)) {
		return &syntax.Query{}
	}
	var rows []*syntax.Query
	for _, x := range values {
		rows = append(rows, &syntax.Query{Pos: e.Pos, Items: []syntax.Item{{Pos: e.Pos, Expr: output(x), Alias: name}}})
	}
	return unionOf(e.Pos, rows)
}

// wholeSeries are whole numbers; nil where the arguments are none.
func (c *converter) wholeSeries(e *syntax.Call) (values []syntax.Expr) {
	ends := []int64{0, 0, 1}
	if len(e.Args) < 2 || len(e.Args) > len(ends) {
		return nil
	}
	for i, arg := range e.Args {
		literal, isLiteral := arg.(*syntax.Literal)
		text, known := textOf(arg)
		if _, isCast := arg.(*syntax.Cast); !known || isCast || isLiteral && literal.Kind != syntax.IntegerLiteral {
			return nil
		}
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil {
			return nil
		}
		ends[i] = n
	}
	step := ends[2]
	if step == 0 {
		return nil
	}
	for n := ends[0]; (n-ends[1])*step <= 0 && len(values) <= maxRows; n += step {
		values = append(values, c.number(e.Pos, strconv.FormatInt(n, 10)))
	}
	return values
}

// timeSeries are times, from each to the next one by the same interval, as PostgreSQL counts them. Dates are midnights with time zone.
func (c *converter) timeSeries(e *syntax.Call) (values []syntax.Expr) {
	if len(e.Args) != 3 {
		return nil
	}
	first, kind, ok1 := c.constantMoment(e.Args[0])
	last, other, ok2 := c.constantMoment(e.Args[1])
	months, days, micros, ok3 := constantInterval(e.Args[2])
	length := (months*30+days)*scalar.DayUnit + micros
	if !ok1 || !ok2 || !ok3 || length == 0 {
		return nil
	}
	if kinds := []string{kind, other}; !slices.Contains(kinds, "timestamp") || slices.Contains(kinds, "timestamptz") {
		if kind = "timestamptz"; c.ofZone(e.Pos, "generate_series of times with time zone") {
			return nil
		}
	} else {
		kind = "timestamp"
	}
	for at := first; !(length > 0 && at.After(last)) && !(length < 0 && at.Before(last)) && len(values) <= maxRows; {
		values = append(values, c.known(e.Pos, moment{at: at, kind: kind}))
		at = plusMonths(at, months).AddDate(0, 0, int(days)).Add(time.Duration(micros) * time.Microsecond)
	}
	return values
}

// constantMoment reads a date or time that the text has, or the clock gave; its kind is "" where the text names no type.
func (c *converter) constantMoment(e syntax.Expr) (at time.Time, kind string, ok bool) {
	if m, known := c.moments[e]; known {
		return m.at, m.kind, true
	}
	if cast, isCast := e.(*syntax.Cast); isCast && cast.Mods == nil && slices.Contains([]string{"date", "timestamp", "timestamptz"}, cast.Type) {
		e, kind = cast.X, cast.Type
		if m, known := c.moments[e]; known {
			return m.at, kind, true
		}
	}
	literal, isLiteral := e.(*syntax.Literal)
	if !isLiteral || literal.Kind != syntax.StringLiteral {
		return at, kind, false
	}
	t := map[string]catalog.Type{"date": catalog.Date, "timestamp": catalog.Timestamp, "": catalog.Timestamptz, "timestamptz": catalog.Timestamptz}[kind]
	text, _, ok := scalar.TimeText(literal.Text, t)
	if !ok {
		return at, kind, false
	}
	at, ok = scalar.Instant(text)
	return at.UTC(), kind, ok
}

// constantInterval reads an interval that the text has.
func constantInterval(e syntax.Expr) (months, days, micros int64, ok bool) {
	if cast, isCast := e.(*syntax.Cast); isCast && cast.Type == "interval" && cast.Mods == nil {
		e = cast.X
	}
	literal, isLiteral := e.(*syntax.Literal)
	if !isLiteral || literal.Kind != syntax.StringLiteral {
		return 0, 0, 0, false
	}
	return scalar.ParseInterval(literal.Text)
}
