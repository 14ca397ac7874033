package sqlprint

import (
	"fmt"
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
	p := &StatementPrinter{Printer: NewRowPrinter()}
	p.called = make(map[*algebra.Field]string)
	var from, outputs []string
	tables := 0
	scan := func(s *algebra.Scan) string {
		named := *s
		named.Alias = "t" + strconv.Itoa(tables)
		tables++
		for _, f := range s.Fields {
			p.called[f] = scalar.QuoteIdent(named.Alias) + "." + scalar.QuoteIdent(f.Name)
		}
		return p.mark(&named)
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
			p.called[f], p.named[of] = name, true
		}
	}
	texts := make(map[*algebra.Field]string)
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
	for i, k := range l.Keys {
		output, declared := texts[algebra.PlainField(k)]
		if !declared {
			output = asTextSQL(p.Key(k))
		}
		outputs = append(outputs, fmt.Sprintf("%s AS k%d", output, i))
	}
	if l.Ends {
		x := p.Text(l.Keys[0])
		outputs = []string{asTextSQL("pg_catalog.min("+x+")") + " AS k0", asTextSQL("pg_catalog.max("+x+")") + " AS k1"}
	} else {
		outputs[0] = "DISTINCT " + outputs[0]
	}
	p.write("SELECT ", strings.Join(outputs, ", "), ", NULL::bigint AS ordinal\nFROM ", strings.Join(from, " CROSS JOIN "))
	if l.Where != nil {
		p.clause("\nWHERE ", p.Text(l.Where))
	}
	p.write("\nLIMIT ", strconv.Itoa(most))
	for f := range p.named {
		if _, called := p.called[f]; !called {
			return "", nil, false
		}
	}
	return template{text: p.B.String(), scans: p.scans, named: p.named}.sql(), p.Args, true
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
