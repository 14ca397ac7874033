package sqlprint

import (
	"fmt"
	"maps"
	"strconv"
	"strings"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/scalar"
)

// PrintKeyList prints what asks for a list: its different tuples, each key as the text that a group of it shows, up to so many. Relations
// have names of their own, so that the text does not depend on the query that needs the list; values and conditions are printed as that
// query's statement prints them. ok is false for a condition that names something else than the list's inputs.
func PrintKeyList(l algebra.KeyList, most int) (text string, args []any, ok bool) {
	p := &StatementPrinter{Printer: NewRowPrinter().calling(make(map[*algebra.Field]string))}
	var from []string
	tables := 0
	scan := func(s *algebra.Scan) string {
		named := *s
		named.Alias = "t" + strconv.Itoa(tables)
		tables++
		for _, f := range s.Fields {
			p.called[f] = scalar.QuoteIdent(named.Alias) + "." + scalar.QuoteIdent(f.Name)
		}
		return p.marks.mark(&named)
	}
	for _, s := range l.Scans {
		from = append(from, scan(s))
	}
	for i, side := range l.Sides { // a row with each of its rows, and one without
		var there []string
		for _, s := range side.Scans {
			there = append(there, scan(s))
		}
		name := scalar.QuoteIdent("s" + strconv.Itoa(i))
		on := name + ".x IS NOT NULL"
		if side.On != nil {
			on += " AND " + p.Text(side.On)
		}
		tables := strings.Join(there, " CROSS JOIN ")
		if len(there) > 1 {
			tables = "(" + tables + ")"
		}
		from = append(from, fmt.Sprintf("(pg_catalog.unnest($%d::pg_catalog.text[]) AS %s(x) LEFT JOIN %s ON %s)",
			p.rawArg([]*string{new(""), nil}), name, tables, on))
	}
	for f, of := range l.Stands {
		if name, read := p.called[of]; read {
			p.called[f], p.marks.named[of] = name, true
		}
	}
	values, texts := p.listedValues(l)
	from = append(from, values...)
	outputs := p.listedKeys(l, texts)
	p.write("SELECT ", strings.Join(outputs, ", "), ", NULL::bigint AS ordinal\nFROM ", strings.Join(from, " CROSS JOIN "))
	if l.Where != nil {
		p.clause("\nWHERE ", p.Text(l.Where))
	}
	p.write("\nLIMIT ", strconv.Itoa(most))
	for f := range p.marks.named {
		if _, called := p.called[f]; !called {
			return "", nil, false
		}
	}
	return template{text: p.B.String(), marks: *p.marks}.sql(), p.Args(), true
}

// listedValues are the values of columns as relations; texts are those of declared keys.
func (p *StatementPrinter) listedValues(l algebra.KeyList) (from []string, texts map[*algebra.Field]string) {
	texts = make(map[*algebra.Field]string)
	for i, d := range l.Declared {
		name := scalar.QuoteIdent("d" + strconv.Itoa(i))
		from = append(from, p.declaredKeys(d)+" AS "+name)
		p.called[d.Of], texts[d.Of] = name+".x", name+".k"
	}
	for i, r := range l.Ranges {
		name := scalar.QuoteIdent("r" + strconv.Itoa(i))
		from = append(from, p.keyRange(r)+" AS "+name)
		p.called[r.Of] = name + ".x"
	}
	for i, g := range l.Granules {
		name := scalar.QuoteIdent("g" + strconv.Itoa(i))
		from = append(from, p.granules(g)+" AS "+name)
		p.called[g.Of] = name + ".x"
	}
	return from, texts
}

// listedKeys are the outputs of a list.
func (p *StatementPrinter) listedKeys(l algebra.KeyList, texts map[*algebra.Field]string) (outputs []string) {
	if l.Ends {
		x := p.Text(l.Keys[0])
		return []string{asTextSQL("pg_catalog.min("+x+")") + " AS k0", asTextSQL("pg_catalog.max("+x+")") + " AS k1"}
	}
	for i, k := range l.Keys {
		output, declared := texts[algebra.PlainField(k)]
		if !declared {
			output = asTextSQL(p.Key(k))
		}
		outputs = append(outputs, fmt.Sprintf("%s AS k%d", output, i))
	}
	outputs[0] = "DISTINCT " + outputs[0]
	return outputs
}

// declaredKeys are the keys of a column as rows: k the texts, x the values that they are of.
func (p *Printer) declaredKeys(d algebra.DeclaredKeys) string {
	all := make([]*string, len(d.Keys))
	for i, k := range d.Keys {
		all[i] = scalar.KeyText(k)
	}
	t := d.Of.Type
	if t == catalog.Char { // as leaves give it
		t = catalog.Text
	}
	return fmt.Sprintf("(SELECT u.k AS k, u.k::%s AS x FROM pg_catalog.unnest($%d::pg_catalog.text[]) AS u(k))", sqlType(t), p.rawArg(all))
}

// keyRange are the values of a range as rows.
func (p *Printer) keyRange(r algebra.KeyRange) string {
	first, last, value := r.First, r.Last, "g.x::"+sqlType(r.Of.Type)
	if r.Of.Type == catalog.Date {
		value = p.arg(scalar.TimeOf(scalar.Number(first), catalog.Date), sqlType(catalog.Date)) + " + g.x::integer"
		first, last = 0, last-first
	}
	null := ""
	if r.Null {
		null = " UNION ALL SELECT NULL::" + sqlType(r.Of.Type)
	}
	bound := func(n int64) string { return p.arg(strconv.FormatInt(n, 10), sqlType(catalog.Int8)) }
	return fmt.Sprintf("(SELECT %s AS x FROM pg_catalog.generate_series(%s, %s) AS g(x)%s)", value, bound(first), bound(last), null)
}

// mostHalved caps the granules of a column, those that are halved included: with more the list raises an error, and is unavailable.
const mostHalved = 400_000

// granules are times as rows, one of each granule. One at whose ends, which both belong to it, a part differs is divided into what comes
// before an instant, the instant, and what comes after it. That is where the longest unit begins that its middle has: parts change most
// often there, or after it. One microsecond has two equal ends.
func (p *Printer) granules(g algebra.KeyGranules) string {
	t := sqlType(g.Of.Type)
	equal := []string{"true"}
	for _, part := range g.Parts {
		at := func(end string) string {
			names := maps.Clone(p.called)
			names[g.Of] = end
			return p.calling(names).Text(part)
		}
		equal = append(equal, "("+at("v.a")+" IS NOT DISTINCT FROM "+at("v.b")+")")
	}
	middle := "CASE"
	for _, unit := range []string{"year", "month", "day", "hour", "minute", "second"} {
		middle += fmt.Sprintf(" WHEN pg_catalog.date_trunc('%[1]s', c.h) > c.a THEN pg_catalog.date_trunc('%[1]s', c.h)", unit)
	}
	const micro = "'1 microsecond'::interval"
	same := strings.Join(equal, " AND ")
	null := ""
	if g.Null {
		null = " UNION ALL SELECT NULL::" + t
	}
	return fmt.Sprintf(`(WITH RECURSIVE g(a, b, same) AS (
  SELECT v.a, v.b, %[1]s FROM (SELECT %[2]s AS a, %[3]s AS b) AS v
  UNION ALL SELECT v.a, v.b, %[1]s FROM (
    SELECT CASE s.x WHEN 0 THEN h.a WHEN 1 THEN h.m ELSE h.m + %[4]s END AS a,
      CASE s.x WHEN 0 THEN h.m - %[4]s WHEN 1 THEN h.m ELSE h.b END AS b
    FROM (SELECT c.a, c.b, %[5]s ELSE c.h + %[4]s END AS m
      FROM (SELECT g.a, g.b, g.a + (g.b - g.a) / 2 AS h FROM g WHERE NOT g.same) AS c) AS h
    CROSS JOIN pg_catalog.generate_series(0, 2) AS s(x)) AS v
  WHERE v.a <= v.b)
SELECT r.a AS x FROM (SELECT l.a, l.same, pg_catalog.count(*) OVER () AS n FROM (SELECT g.a, g.same FROM g LIMIT %[6]d) AS l) AS r
WHERE CASE WHEN r.same THEN 1 / (%[6]d - r.n) >= 0 END%[7]s)`, same, p.arg(g.First, t), p.arg(g.Last, t), micro, middle, mostHalved, null)
}
