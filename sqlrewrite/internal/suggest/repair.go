package suggest

import (
	"slices"
	"strings"

	"noisegate/internal/fault"
	"noisegate/sqlrewrite/internal/parse"
)

// repair changes the text around the token that a refusal points at; empty where it knows nothing to change.
type repair func(q *parse.QueryText, i int, refusal *fault.Error) string

// repairs are tried in this order.
func (s *suggester) repairs() []repair {
	return []repair{
		repairName, s.repairQuotes, repairFunction, repairNumber, repairAlias, repairUnitJoin, repairPartition, repairUnitCount,
		repairBoolAggregate,
		repairWhereAggregate, repairHaving, repairGroupBy, repairStar, repairUnion, repairClause, repairCollate, repairBackticks,
	}
}

// repairName writes the name that was meant.
func repairName(q *parse.QueryText, i int, refusal *fault.Error) string {
	if refusal.Part == "" || !strings.HasPrefix(string(refusal.Code), "sql/unknown-") {
		return ""
	}
	if q.Word(i+1) == "." && refusal.Code == fault.CodeUnknownColumn {
		i += 2
	}
	return q.Replaced(i, i+1, refusal.Part)
}

// repairQuotes makes a string of what is no column: Male or "Male" in a comparison; the nearest value of the column's domain, if it has
// one.
func (s *suggester) repairQuotes(q *parse.QueryText, i int, refusal *fault.Error) string {
	if refusal.Code != fault.CodeUnknownColumn || strings.Trim(q.Word(i-1), "=<>!,(") != "" {
		return ""
	}
	text := strings.Trim(q.Slice(i, i+1), `"`)
	if near, ok := fault.Nearest(text, s.domainBefore(q, i)); ok {
		text = near
	}
	return q.Replaced(i, i+1, asString(text))
}

// domainBefore are the public values of the column that a token is compared with.
func (s *suggester) domainBefore(q *parse.QueryText, i int) []string {
	at := i - 1
	for at >= 0 && strings.Trim(q.Word(at), "=<>!") == "" {
		at--
	}
	if at < 0 || at == i-1 {
		return nil
	}
	for _, t := range s.snapshot.Tables {
		if c, ok := t.Column(strings.ToLower(q.Slice(at, at+1))); ok && c.Exposed && len(c.Domain) > 0 {
			var values []string
			for _, k := range c.Domain {
				if !k.Null {
					values = append(values, k.Text)
				}
			}
			return values
		}
	}
	return nil
}

// quotesHint says that a text is written in single quotes, and which texts there are.
func (s *suggester) quotesHint(q *parse.QueryText, i int) string {
	hint := "text is written in single quotes"
	if values := s.domainBefore(q, i); len(values) > 0 && len(values) <= maxListed {
		for k, v := range values {
			values[k] = asString(v)
		}
		hint += ": " + strings.Join(values, ", ")
	}
	return hint
}

// maxListed is how many values of a domain a hint lists.
const maxListed = 20

func asString(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// repairFunction writes the name that a function has here for the one that it has elsewhere.
func repairFunction(q *parse.QueryText, i int, refusal *fault.Error) string {
	if refusal.Code != fault.CodeUnknownFunction {
		return ""
	}
	names := map[string]string{
		"IFNULL": "coalesce", "NVL": "coalesce", "LEN": "length", "UCASE": "upper", "LCASE": "lower", "SUBSTR": "substring", "POW": "power",
		"MEAN": "avg", "AVERAGE": "avg", "STD": "stddev_pop", "STDEV": "stddev", "VAR": "variance", "CHAR_LENGTH": "length", "TRUNCATE": "trunc",
	}
	if name := names[q.Word(i)]; name != "" {
		return q.Replaced(i, i+1, name)
	}
	if part := q.Word(i); slices.Contains([]string{"YEAR", "QUARTER", "MONTH", "DAY", "HOUR", "MINUTE"}, part) && q.Word(i+1) == "(" {
		return q.Replaced(i, i+2, "extract("+strings.ToLower(part)+" FROM ")
	}
	return ""
}

// repairNumber makes a string of a number that is compared with text.
func repairNumber(q *parse.QueryText, i int, refusal *fault.Error) string {
	if refusal.Code != fault.CodeTypeMismatch || !strings.Contains(refusal.Msg, "operator text") {
		return ""
	}
	if word := q.Word(i + 1); word == "" || strings.Trim(word, "0123456789.") != "" {
		return ""
	}
	return q.Replaced(i+1, i+2, asString(q.Slice(i+1, i+2)))
}

// repairAlias writes out in HAVING or WHERE what the select list gives a name to.
func repairAlias(q *parse.QueryText, i int, refusal *fault.Error) string {
	if refusal.Code != fault.CodeUnknownColumn {
		return ""
	}
	from, to := q.SelectAround(i)
	_, end := q.Clause("SELECT", from, to)
	for k := from + 1; k < end; {
		next := q.Boundary(k, append(parse.Clauses(), ",")...)
		if q.Word(next-1) == q.Word(i) && next-1 > k {
			last := next - 1
			if q.Word(last-1) == "AS" {
				last--
			}
			return q.Replaced(i, i+1, q.Slice(k, last))
		}
		k = next + 1
	}
	return ""
}

// repairUnitJoin adds the condition that makes both rows of a pair one person's, to ON or, for a join without, to WHERE.
func repairUnitJoin(q *parse.QueryText, i int, refusal *fault.Error) string {
	if refusal.Code != fault.CodeUnitJoin || refusal.Part == "" {
		return ""
	}
	if q.Word(i) == "EXISTS" { // a condition inside the query
		i = min(i+2, len(q.Tokens)-1)
	} else {
		joins := append(parse.Clauses(), "JOIN", "LEFT", "RIGHT", "INNER", "FULL", "CROSS", "NATURAL", ",")
		end := q.Boundary(i, joins...)
		if on := q.Boundary(i, append(joins, "ON")...); on < end && q.Word(on) == "ON" {
			return q.Replaced(on+1, end, q.Operand(on+1, end)+" AND "+refusal.Part)
		}
	}
	from, to := q.SelectAround(i)
	return q.WithCondition("WHERE", from, to, refusal.Part)
}

// repairPartition divides a window by person, as the hint says.
func repairPartition(q *parse.QueryText, i int, refusal *fault.Error) string {
	_, unit, ok := strings.Cut(refusal.Hint, "PARTITION BY ")
	over := q.Boundary(i, "OVER")
	if q.Word(i) == "(" {
		over = i - 1
	}
	if !ok || q.Word(over) != "OVER" || q.Word(over+1) != "(" {
		return ""
	}
	if q.Word(over+2) == "PARTITION" {
		return q.Replaced(over+4, over+4, unit+",")
	}
	return q.Replaced(over+2, over+2, "PARTITION BY "+unit)
}

// repairUnitCount counts people where rows with their ids were to be counted.
func repairUnitCount(q *parse.QueryText, i int, refusal *fault.Error) string {
	if refusal.Code != fault.CodeUnitColumn || q.Word(i-1) != "(" || q.Word(i-2) != "COUNT" {
		return ""
	}
	return q.Replaced(i, i, "DISTINCT")
}

// repairBoolAggregate counts the rows that decide bool_or, bool_and and every.
func repairBoolAggregate(q *parse.QueryText, i int, _ *fault.Error) string {
	if q.Word(i+1) != "(" {
		return ""
	}
	end := q.Closing(i + 1)
	argument := q.Slice(i+2, end-1)
	switch q.Word(i) {
	case "BOOL_OR":
		return q.Replaced(i, end, "count(*) FILTER (WHERE "+argument+") > 0")
	case "BOOL_AND", "EVERY":
		return q.Replaced(i, end, "count(*) FILTER (WHERE NOT ("+argument+")) = 0")
	default:
		return ""
	}
}

// repairWhereAggregate moves a condition on aggregates from WHERE to HAVING.
func repairWhereAggregate(q *parse.QueryText, i int, refusal *fault.Error) string {
	if refusal.Code != fault.CodeUnsupported || !strings.Contains(refusal.Msg, "aggregate inside WHERE") {
		return ""
	}
	return q.Moved("WHERE", "HAVING", i)
}

// repairHaving moves a condition on rows from HAVING to WHERE.
func repairHaving(q *parse.QueryText, i int, refusal *fault.Error) string {
	if refusal.Code != fault.CodeNotAggregate {
		return ""
	}
	return q.Moved("HAVING", "WHERE", i)
}

// repairGroupBy groups by a column that is shown as it is, and counts, if nothing else is asked for.
func repairGroupBy(q *parse.QueryText, i int, refusal *fault.Error) string {
	grouped := refusal.Code == fault.CodeNotAggregate && refusal.Part != "" || strings.HasSuffix(refusal.Hint, "add it to GROUP BY")
	if !grouped {
		return ""
	}
	from, to := q.SelectAround(i)
	end := i + 1
	for q.Word(end) == "." {
		end += 2
	}
	column := q.Slice(i, end)
	if q.Word(i) == "SELECT" { // the refusal points at the query
		column = strings.Trim(refusal.Part, `"`)
	}
	start, stop := q.Clause("GROUP", from, to)
	if start < stop {
		return q.Replaced(stop-1, stop, q.Slice(stop-1, stop)+", "+column)
	}
	text := q.Replaced(start, start, "GROUP BY "+column)
	list, endOfList := q.Clause("SELECT", from, to)
	if !strings.Contains(q.Slice(list, endOfList), "(") {
		q = parse.CutText(text)
		text = q.Replaced(endOfList-1, endOfList, q.Slice(endOfList-1, endOfList)+", count(*)")
	}
	return text
}

// repairStar counts rows where they were to be listed.
func repairStar(q *parse.QueryText, i int, refusal *fault.Error) string {
	if refusal.Code != fault.CodeNotAggregate || q.Word(i) != "*" {
		return ""
	}
	return q.Replaced(i, i+1, "count(*)")
}

// repairUnion keeps all rows of both sides.
func repairUnion(q *parse.QueryText, i int, refusal *fault.Error) string {
	if refusal.Code != fault.CodeUnsupported || !strings.HasPrefix(refusal.Msg, "UNION of rows of people") {
		return ""
	}
	if at := q.Boundary(i, "UNION"); q.Word(at) == "UNION" {
		return q.Replaced(at, at+1, "UNION ALL")
	}
	return ""
}

// repairClause leaves out a clause that changes nothing where it stands.
func repairClause(q *parse.QueryText, i int, refusal *fault.Error) string {
	if !strings.HasSuffix(refusal.Hint, "leave it out") {
		return ""
	}
	from, to := q.SelectAround(i)
	for _, name := range []string{"ORDER", "LIMIT"} {
		if start, end := q.Clause(name, from, to); start < end && start <= i+1 && i < end {
			return q.Replaced(start, end, "")
		}
	}
	return ""
}

// repairCollate leaves COLLATE out.
func repairCollate(q *parse.QueryText, i int, refusal *fault.Error) string {
	if !strings.HasPrefix(refusal.Msg, "COLLATE ") {
		return ""
	}
	if at := q.Boundary(i, "COLLATE"); q.Word(at) == "COLLATE" {
		return q.Replaced(at, at+2, "")
	}
	return ""
}

// repairBackticks writes MySQL's quoted names without quotes.
func repairBackticks(q *parse.QueryText, _ int, refusal *fault.Error) string {
	if refusal.Code != fault.CodeSyntax {
		return ""
	}
	return strings.ReplaceAll(q.Text, "`", "")
}
