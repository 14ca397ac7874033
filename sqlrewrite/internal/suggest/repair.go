package sqlrewrite

import (
	"slices"
	"strings"

	"noisegate/internal/fault"
)

// repair changes the text around the token that a refusal points at; empty where it knows nothing to change.
type repair func(q *queryText, i int, refusal *fault.Error) string

// repairs are tried in this order.
func (s *suggester) repairs() []repair {
	return []repair{
		repairName, s.repairQuotes, repairFunction, repairNumber, repairAlias, repairUnitJoin, repairPartition, repairUnitCount, repairBoolAggregate,
		repairWhereAggregate, repairHaving, repairGroupBy, repairStar, repairUnion, repairClause, repairCollate, repairBackticks,
	}
}

// repairName writes the name that was meant.
func repairName(q *queryText, i int, refusal *fault.Error) string {
	if refusal.Part == "" || !strings.HasPrefix(string(refusal.Code), "sql/unknown-") {
		return ""
	}
	if q.word(i+1) == "." && refusal.Code == fault.CodeUnknownColumn {
		i += 2
	}
	return q.replaced(i, i+1, refusal.Part)
}

// repairQuotes makes a string of what is no column: Male or "Male" in a comparison; the nearest value of the column's domain, if it has one.
func (s *suggester) repairQuotes(q *queryText, i int, refusal *fault.Error) string {
	if refusal.Code != fault.CodeUnknownColumn || strings.Trim(q.word(i-1), "=<>!,(") != "" {
		return ""
	}
	text := strings.Trim(q.slice(i, i+1), `"`)
	if near, ok := fault.Nearest(text, s.domainBefore(q, i)); ok {
		text = near
	}
	return q.replaced(i, i+1, asString(text))
}

// domainBefore are the public values of the column that a token is compared with.
func (s *suggester) domainBefore(q *queryText, i int) []string {
	at := i - 1
	for at >= 0 && strings.Trim(q.word(at), "=<>!") == "" {
		at--
	}
	if at < 0 || at == i-1 {
		return nil
	}
	for _, t := range s.snapshot.Tables {
		if c, ok := t.Column(strings.ToLower(q.slice(at, at+1))); ok && c.Exposed && len(c.Domain) > 0 {
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
func (s *suggester) quotesHint(q *queryText, i int) string {
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
func repairFunction(q *queryText, i int, refusal *fault.Error) string {
	if refusal.Code != fault.CodeUnknownFunction {
		return ""
	}
	names := map[string]string{
		"IFNULL": "coalesce", "NVL": "coalesce", "LEN": "length", "UCASE": "upper", "LCASE": "lower", "SUBSTR": "substring", "POW": "power",
		"MEAN": "avg", "AVERAGE": "avg", "STD": "stddev_pop", "STDEV": "stddev", "VAR": "variance", "CHAR_LENGTH": "length", "TRUNCATE": "trunc",
	}
	if name := names[q.word(i)]; name != "" {
		return q.replaced(i, i+1, name)
	}
	if part := q.word(i); slices.Contains([]string{"YEAR", "QUARTER", "MONTH", "DAY", "HOUR", "MINUTE"}, part) && q.word(i+1) == "(" {
		return q.replaced(i, i+2, "extract("+strings.ToLower(part)+" FROM ")
	}
	return ""
}

// repairNumber makes a string of a number that is compared with text.
func repairNumber(q *queryText, i int, refusal *fault.Error) string {
	if refusal.Code != fault.CodeTypeMismatch || !strings.Contains(refusal.Msg, "operator text") {
		return ""
	}
	if word := q.word(i + 1); word == "" || strings.Trim(word, "0123456789.") != "" {
		return ""
	}
	return q.replaced(i+1, i+2, asString(q.slice(i+1, i+2)))
}

// repairAlias writes out in HAVING or WHERE what the select list gives a name to.
func repairAlias(q *queryText, i int, refusal *fault.Error) string {
	if refusal.Code != fault.CodeUnknownColumn {
		return ""
	}
	from, to := q.selectAround(i)
	_, end := q.clause("SELECT", from, to)
	for k := from + 1; k < end; {
		next := q.boundary(k, append(clauses(), ",")...)
		if q.word(next-1) == q.word(i) && next-1 > k {
			last := next - 1
			if q.word(last-1) == "AS" {
				last--
			}
			return q.replaced(i, i+1, q.slice(k, last))
		}
		k = next + 1
	}
	return ""
}

// repairUnitJoin adds the condition that makes both rows of a pair one person's, to ON or, for a join without, to WHERE.
func repairUnitJoin(q *queryText, i int, refusal *fault.Error) string {
	if refusal.Code != fault.CodeUnitJoin || refusal.Part == "" {
		return ""
	}
	if q.word(i) == "EXISTS" { // a condition inside the query
		i = min(i+2, len(q.tokens)-1)
	} else {
		joins := append(clauses(), "JOIN", "LEFT", "RIGHT", "INNER", "FULL", "CROSS", "NATURAL", ",")
		end := q.boundary(i, joins...)
		if on := q.boundary(i, append(joins, "ON")...); on < end && q.word(on) == "ON" {
			return q.replaced(on+1, end, q.operand(on+1, end)+" AND "+refusal.Part)
		}
	}
	from, to := q.selectAround(i)
	return q.withCondition("WHERE", from, to, refusal.Part)
}

// withCondition adds a condition to a clause, or the clause.
func (q *queryText) withCondition(clause string, from, to int, condition string) string {
	start, end := q.clause(clause, from, to)
	if start == end {
		return q.replaced(start, start, clause+" "+condition)
	}
	return q.replaced(start+1, end, q.operand(start+1, end)+" AND "+condition)
}

// operand is a condition that AND may follow.
func (q *queryText) operand(from, to int) string {
	if q.boundary(from, "OR") < to {
		return "(" + q.slice(from, to) + ")"
	}
	return q.slice(from, to)
}

// repairPartition divides a window by person, as the hint says.
func repairPartition(q *queryText, i int, refusal *fault.Error) string {
	_, unit, ok := strings.Cut(refusal.Hint, "PARTITION BY ")
	over := q.boundary(i, "OVER")
	if q.word(i) == "(" {
		over = i - 1
	}
	if !ok || q.word(over) != "OVER" || q.word(over+1) != "(" {
		return ""
	}
	if q.word(over+2) == "PARTITION" {
		return q.replaced(over+4, over+4, unit+",")
	}
	return q.replaced(over+2, over+2, "PARTITION BY "+unit)
}

// repairUnitCount counts people where rows with their ids were to be counted.
func repairUnitCount(q *queryText, i int, refusal *fault.Error) string {
	if refusal.Code != fault.CodeUnitColumn || q.word(i-1) != "(" || q.word(i-2) != "COUNT" {
		return ""
	}
	return q.replaced(i, i, "DISTINCT")
}

// repairBoolAggregate counts the rows that decide bool_or, bool_and and every.
func repairBoolAggregate(q *queryText, i int, _ *fault.Error) string {
	if q.word(i+1) != "(" {
		return ""
	}
	end := q.closing(i + 1)
	argument := q.slice(i+2, end-1)
	switch q.word(i) {
	case "BOOL_OR":
		return q.replaced(i, end, "count(*) FILTER (WHERE "+argument+") > 0")
	case "BOOL_AND", "EVERY":
		return q.replaced(i, end, "count(*) FILTER (WHERE NOT ("+argument+")) = 0")
	default:
		return ""
	}
}

// repairWhereAggregate moves a condition on aggregates from WHERE to HAVING.
func repairWhereAggregate(q *queryText, i int, refusal *fault.Error) string {
	if refusal.Code != fault.CodeUnsupported || !strings.Contains(refusal.Msg, "aggregate inside WHERE") {
		return ""
	}
	return q.moved("WHERE", "HAVING", i)
}

// repairHaving moves a condition on rows from HAVING to WHERE.
func repairHaving(q *queryText, i int, refusal *fault.Error) string {
	if refusal.Code != fault.CodeNotAggregate {
		return ""
	}
	return q.moved("HAVING", "WHERE", i)
}

// moved takes a clause that holds token i away, and its condition to another one.
func (q *queryText) moved(clause, to string, i int) string {
	from, end := q.selectAround(i)
	start, stop := q.clause(clause, from, end)
	if i <= start || i >= stop {
		return ""
	}
	condition := q.slice(start+1, stop)
	rest := cutText(q.replaced(start, stop, ""))
	from, end = rest.selectAround(min(from, len(rest.tokens)-1))
	return rest.withCondition(to, from, end, condition)
}

// repairGroupBy groups by a column that is shown as it is, and counts, if nothing else is asked for.
func repairGroupBy(q *queryText, i int, refusal *fault.Error) string {
	grouped := refusal.Code == fault.CodeNotAggregate && refusal.Part != "" || strings.HasSuffix(refusal.Hint, "add it to GROUP BY")
	if !grouped {
		return ""
	}
	from, to := q.selectAround(i)
	end := i + 1
	for q.word(end) == "." {
		end += 2
	}
	column := q.slice(i, end)
	if q.word(i) == "SELECT" { // the refusal points at the query
		column = strings.Trim(refusal.Part, `"`)
	}
	start, stop := q.clause("GROUP", from, to)
	if start < stop {
		return q.replaced(stop-1, stop, q.slice(stop-1, stop)+", "+column)
	}
	text := q.replaced(start, start, "GROUP BY "+column)
	list, endOfList := q.clause("SELECT", from, to)
	if !strings.Contains(q.slice(list, endOfList), "(") {
		q = cutText(text)
		text = q.replaced(endOfList-1, endOfList, q.slice(endOfList-1, endOfList)+", count(*)")
	}
	return text
}

// repairStar counts rows where they were to be listed.
func repairStar(q *queryText, i int, refusal *fault.Error) string {
	if refusal.Code != fault.CodeNotAggregate || q.word(i) != "*" {
		return ""
	}
	return q.replaced(i, i+1, "count(*)")
}

// repairUnion keeps all rows of both sides.
func repairUnion(q *queryText, i int, refusal *fault.Error) string {
	if refusal.Code != fault.CodeUnsupported || !strings.HasPrefix(refusal.Msg, "UNION of rows of people") {
		return ""
	}
	if at := q.boundary(i, "UNION"); q.word(at) == "UNION" {
		return q.replaced(at, at+1, "UNION ALL")
	}
	return ""
}

// repairClause leaves out a clause that changes nothing where it stands.
func repairClause(q *queryText, i int, refusal *fault.Error) string {
	if !strings.HasSuffix(refusal.Hint, "leave it out") {
		return ""
	}
	from, to := q.selectAround(i)
	for _, name := range []string{"ORDER", "LIMIT"} {
		if start, end := q.clause(name, from, to); start < end && start <= i+1 && i < end {
			return q.replaced(start, end, "")
		}
	}
	return ""
}

// repairCollate leaves COLLATE out.
func repairCollate(q *queryText, i int, refusal *fault.Error) string {
	if !strings.HasPrefix(refusal.Msg, "COLLATE ") {
		return ""
	}
	if at := q.boundary(i, "COLLATE"); q.word(at) == "COLLATE" {
		return q.replaced(at, at+2, "")
	}
	return ""
}

// repairBackticks writes MySQL's quoted names without quotes.
func repairBackticks(q *queryText, _ int, refusal *fault.Error) string {
	if refusal.Code != fault.CodeSyntax {
		return ""
	}
	return strings.ReplaceAll(q.text, "`", "")
}
