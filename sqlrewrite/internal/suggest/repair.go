package suggest

import (
	"fmt"
	"slices"
	"strings"

	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/parse"
	"noisegate.example/sqlrewrite/internal/scalar"
)

// repair changes the text around the token that a refusal points at; empty where it knows nothing to change.
type repair struct {
	change  func(q *parse.QueryText, i int, refusal *fault.Error) string
	differs string // how the answer differs; empty: where PostgreSQL answers both texts, it gives the same
}

// repairs are tried in this order.
func (s *suggester) repairs() []repair {
	const counted = "rows are counted, and not listed"
	return []repair{
		{change: repairName}, {change: s.repairQuotes}, {change: repairFunction},
		{change: repairClock, differs: "times become days"},
		{change: repairTop}, {change: repairGroupAll}, {change: repairQualify}, {change: repairNumber}, {change: repairAlias},
		{change: repairUnitJoin, differs: "rows of different people are not paired"},
		{change: repairPartition, differs: "each person's rows are a window of their own"},
		{change: repairSharedKey, differs: "a group with rows of several people is divided among them"},
		{change: repairMode, differs: "over no rows there is no row, where there was NULL"},
		{change: repairSeconds}, {change: repairKeyParts, differs: "several groups may show one key"},
		{change: repairKeyCast, differs: "keys are of another type"}, {change: repairKey, differs: "a group is a whole step of values"},
		{change: repairBoolAggregate, differs: "over no values it is true or false, where it was NULL"},
		{change: repairWhereAggregate}, {change: repairHaving}, {change: repairGroupBy}, {change: repairListed, differs: counted},
		{change: repairStar, differs: counted}, {change: repairUnion, differs: "equal rows are kept"}, {change: repairClause},
		{change: repairCollate, differs: "texts are compared as their columns are declared"}, {change: repairBackticks},
	}
}

// repairName writes the name that was meant.
func repairName(q *parse.QueryText, i int, refusal *fault.Error) string {
	if refusal.Part == "" || !strings.HasPrefix(string(refusal.Code), "sql/unknown-") {
		return ""
	}
	part := refusal.Part
	switch refusal.Code {
	case fault.CodeUnknownFunction:
	case fault.CodeUnknownTable: // it may be in a schema
		part = scalar.NameText(strings.SplitN(part, ".", 2)...)
	default:
		part = scalar.NameText(part)
	}
	if q.Word(i+1) == "." {
		switch refusal.Code {
		case fault.CodeUnknownColumn:
			i += 2
		case fault.CodeUnknownTable: // which was written with a schema
			return q.Replaced(i, i+3, part)
		default: // the name comes first
		}
	}
	return q.Replaced(i, i+1, part)
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
		if c, ok := t.Column(nameOf(q.Slice(at, at+1))); ok && c.Exposed && len(c.Domain) > 0 {
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

// nameOf is the name that a word, or a name in quotes, means.
func nameOf(word string) string {
	if inner, quoted := strings.CutPrefix(word, `"`); quoted {
		return strings.ReplaceAll(strings.TrimSuffix(inner, `"`), `""`, `"`)
	}
	return strings.ToLower(word)
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

// repairFunction writes a function of another system as it is written here.
func repairFunction(q *parse.QueryText, i int, refusal *fault.Error) string {
	if refusal.Code != fault.CodeUnknownFunction || q.Word(i+1) != "(" {
		return ""
	}
	arguments := argumentsOf(q, i+1)
	end := q.Closing(i + 1)
	form, ok := fault.FormOf(q.Word(i), len(arguments))
	if !ok {
		form, arguments, ok = daysBetween(q.Word(i), arguments)
	}
	if !ok {
		return ""
	}
	var pairs []string
	for k, text := range arguments {
		pairs = append(pairs, fmt.Sprint("$", k+1), text)
	}
	return q.Replaced(i, end, strings.NewReplacer(pairs...).Replace(form))
}

// argumentsOf are those of the call whose parenthesis opens at a token.
func argumentsOf(q *parse.QueryText, open int) []string {
	var all []string
	end := q.Closing(open) - 1
	for k := open + 1; k < end; {
		next := min(q.Boundary(k, ","), end)
		all = append(all, q.Slice(k, next))
		k = next + 1
	}
	return all
}

// daysBetween is DATEDIFF: of a unit and two times, which counts the midnights from the first to the second, or of two, whose first is the
// later.
func daysBetween(name string, arguments []string) (form string, of []string, ok bool) {
	const form2 = "(($2)::date - ($1)::date)"
	switch {
	case name == "DATEDIFF" && len(arguments) == 3 && isDay(arguments[0]):
		return form2, arguments[1:], true
	case name == "DATEDIFF" && len(arguments) == 2, name == "DATE_DIFF" && len(arguments) == 3 && isDay(arguments[2]):
		return form2, []string{arguments[1], arguments[0]}, true
	default:
		return "", nil, false
	}
}

func isDay(unit string) bool {
	return slices.Contains([]string{"DAY", "DAYS", "DD", "D"}, strings.ToUpper(strings.Trim(unit, "'")))
}

// repairClock writes the date in place of a time that changes within the day.
func repairClock(q *parse.QueryText, i int, refusal *fault.Error) string {
	if refusal.Code != fault.CodeUnsupported {
		return ""
	}
	switch word := q.Word(i); {
	case slices.Contains([]string{"NOW", "TRANSACTION_TIMESTAMP", "STATEMENT_TIMESTAMP", "CLOCK_TIMESTAMP"}, word) && q.Word(i+1) == "(":
		return q.Replaced(i, q.Closing(i+1), "current_date")
	case word == "CURRENT_TIMESTAMP" || word == "LOCALTIMESTAMP":
		return q.Replaced(i, i+1, "current_date")
	default:
		return ""
	}
}

// repairTop writes TOP as LIMIT.
func repairTop(q *parse.QueryText, i int, refusal *fault.Error) string {
	if refusal.Code != fault.CodeSyntax {
		return ""
	}
	from, to := q.SelectAround(i)
	if q.Word(from) != "SELECT" || q.Word(from+1) != "TOP" || strings.Trim(q.Word(from+2), "0123456789") != "" {
		return ""
	}
	count := q.Word(from + 2)
	if start, end := q.Clause("LIMIT", from, to); start < end {
		return ""
	}
	limited := parse.CutText(q.Replaced(to, to, "LIMIT "+count))
	return limited.Replaced(from+1, from+3, "")
}

// repairGroupAll writes GROUP BY ALL as the places of the outputs without aggregates.
func repairGroupAll(q *parse.QueryText, i int, refusal *fault.Error) string {
	if refusal.Code != fault.CodeSyntax {
		return ""
	}
	from, to := q.SelectAround(i)
	start, end := q.Clause("GROUP", from, to)
	if start == end || q.Word(start+1) != "BY" || q.Word(start+2) != "ALL" || end != start+3 {
		return ""
	}
	var places []string
	for k, item := range itemsOf(q, from, to) {
		if !slices.ContainsFunc(item.calls, isAggregate) {
			places = append(places, fmt.Sprint(k+1))
		}
	}
	if len(places) == 0 {
		return ""
	}
	return q.Replaced(start+2, start+3, strings.Join(places, ", "))
}

// isAggregate reports whether a name is one of an aggregate that releases.
func isAggregate(name string) bool {
	return slices.Contains([]string{"COUNT", "SUM", "AVG", "MIN", "MAX", "MEDIAN", "MODE", "VARIANCE", "STDDEV", "CORR"}, name) ||
		slices.ContainsFunc([]string{"VAR_", "STDDEV_", "COVAR_", "REGR_", "PERCENTILE_"},
			func(start string) bool { return strings.HasPrefix(name, start) })
}

// item is one of a select list: its text, its name, and the names of the functions that it calls.
type item struct {
	text, name string
	calls      []string
}

func itemsOf(q *parse.QueryText, from, to int) []item {
	_, end := q.Clause("SELECT", from, to)
	var all []item
	for k := from + 1; k < end; {
		next := min(q.Boundary(k, ","), end)
		one := item{text: q.Slice(k, next)}
		for t := k; t < next; t++ {
			if q.Word(t+1) == "(" && t+1 < next {
				one.calls = append(one.calls, q.Word(t))
			}
		}
		switch {
		case next-k == 1 || next-k > 1 && q.Word(next-2) == "AS" || next-k > 1 && q.Word(next-2) == ".":
			one.name = q.Slice(next-1, next)
		case next-k > 1 && q.Word(next-2) == ")" && isName(q.Word(next-1)):
			one.name = q.Slice(next-1, next) // an alias without AS
		case q.Word(k+1) == "(" && q.Closing(k+1) == next:
			one.name = strings.ToLower(q.Word(k))
		}
		all = append(all, one)
		k = next + 1
	}
	return all
}

// repairQualify writes QUALIFY as a query around the windows, whose rows it keeps.
func repairQualify(q *parse.QueryText, i int, refusal *fault.Error) string {
	if refusal.Code != fault.CodeSyntax {
		return ""
	}
	from, to := q.SelectAround(i)
	at := q.Boundary(from+1, "QUALIFY")
	if at >= to || from > 0 || to < len(q.Tokens) {
		return ""
	}
	end := q.Boundary(at+1, "ORDER", "LIMIT")
	var names []string
	for _, item := range itemsOf(q, from, at) {
		if item.name == "" {
			return ""
		}
		names = append(names, item.name)
	}
	_, list := q.Clause("SELECT", from, to)
	text := "SELECT " + strings.Join(names, ", ") + " FROM (" + q.Slice(from, list) + ", (" + q.Slice(at+1, end) + ") AS qualifies " +
		q.Slice(list, at) + ") t WHERE qualifies"
	if end < to {
		text += " " + q.Slice(end, to)
	}
	return text
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
			return q.Replaced(i, i+1, operand(q, k, last))
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

// repairPartition divides a window by person.
func repairPartition(q *parse.QueryText, i int, refusal *fault.Error) string {
	over := q.Boundary(i, "OVER")
	if q.Word(i) == "(" {
		over = i - 1
	}
	if refusal.Code != fault.CodeUnsupported || refusal.Part == "" || q.Word(over) != "OVER" || q.Word(over+1) != "(" {
		return ""
	}
	if q.Word(over+2) == "PARTITION" {
		return q.Replaced(over+4, over+4, refusal.Part+",")
	}
	return q.Replaced(over+2, over+2, "PARTITION BY "+refusal.Part)
}

// columnEnd is the token after the column that begins at one, with the relations before its name.
func columnEnd(q *parse.QueryText, i int) int {
	end := i + 1
	for q.Word(end) == "." {
		end += 2
	}
	return end
}

// repairSharedKey groups by person too.
func repairSharedKey(q *parse.QueryText, i int, refusal *fault.Error) string {
	inside := refusal.Code == fault.CodeUnsupported && strings.HasPrefix(refusal.Msg, "an aggregate over the rows of many people")
	if refusal.Code != fault.CodeMissingKeys && !inside || strings.Contains(refusal.Part, "$1") {
		return ""
	}
	from, to := q.SelectAround(i)
	start, end := q.Clause("GROUP", from, to)
	if refusal.Part == "" || start == end || q.Word(from-1) != "(" {
		return ""
	}
	return q.Replaced(end-1, end, q.Slice(end-1, end)+", "+refusal.Part)
}

// repairMode takes the first group by count for the mode of private keys, where nothing else is asked for.
func repairMode(q *parse.QueryText, i int, refusal *fault.Error) string {
	from, to := q.SelectAround(i)
	_, list := q.Clause("SELECT", from, to)
	group, _ := q.Clause("GROUP", from, to)
	call, value := from+1, from+9
	if refusal.Code != fault.CodeMissingKeys || !q.Reads(call, "MODE", "(", ")", "WITHIN", "GROUP", "(", "ORDER", "BY") || group < to {
		return ""
	}
	next := q.Closing(value - 3)
	end := next - 1
	order := q.Slice(value, end)
	if q.Word(end-1) == "DESC" || q.Word(end-1) == "ASC" {
		end--
	}
	condition := operand(q, value, end) + " IS NOT NULL"
	if q.Reads(next, "FILTER", "(", "WHERE") {
		stop := q.Closing(next + 1)
		condition, next = q.Operand(next+3, stop-1)+" AND "+condition, stop
	}
	name := "AS mode"
	if next < list {
		name = q.Slice(next, list)
	}
	if next < list && q.Boundary(next, ",") < list {
		return ""
	}
	changed := parse.CutText(q.Replaced(to, to, "GROUP BY "+q.Slice(value, end)+" ORDER BY count(*) DESC, "+order+" LIMIT 1"))
	from, to = changed.SelectAround(from)
	changed = parse.CutText(changed.WithCondition("WHERE", from, to, condition))
	return changed.Replaced(call, list, q.Slice(value, end)+" "+name)
}

// repairSeconds writes the argument of a call in the form that the refusal names.
func repairSeconds(q *parse.QueryText, i int, refusal *fault.Error) string {
	if refusal.Code != fault.CodeTypeMismatch || !strings.Contains(refusal.Part, "$1") || q.Word(i+1) != "(" {
		return ""
	}
	end := q.Closing(i+1) - 1
	return q.Replaced(i+2, end, strings.ReplaceAll(refusal.Part, "$1", q.Slice(i+2, end)))
}

// key is the item of GROUP BY, or of the select list that GROUP BY names, which holds a token of a refused key.
func key(q *parse.QueryText, i int, refusal *fault.Error) (at [2]int, ok bool) {
	from, to := q.SelectAround(i)
	if refusal.Code != fault.CodeMissingKeys && refusal.Code != fault.CodeTooManyKeys && refusal.Code != fault.CodeUnsupported {
		return at, false
	}
	for _, at := range slices.Concat(expressionsOf(q, "SELECT", from, to), expressionsOf(q, "GROUP", from, to)) {
		if at[0] <= i && i < at[1] {
			return at, strings.Contains(refusal.Part, "$1")
		}
	}
	return at, false
}

// repairKeyParts groups by the calls in an expression, which can then be computed from them.
func repairKeyParts(q *parse.QueryText, i int, refusal *fault.Error) string {
	at, ok := key(q, i, refusal)
	if !ok {
		return ""
	}
	var parts []string
	for k := at[0]; k < at[1]; k++ {
		switch end := q.Closing(k + 1); {
		case q.Word(k) == "CAST" || q.Word(k) == "(":
		case q.Word(k+1) == "(" && isName(q.Word(k)) && end <= at[1]:
			if part := q.Slice(k, end); !slices.Contains(parts, part) {
				parts = append(parts, part)
			}
			k = end - 1
		case isName(q.Word(k)) && !q.Reads(k-2, ":", ":") && q.Word(k-1) != "AS" && q.Word(k) != "AS" && q.Word(k) != "INTERVAL":
			return "" // a column, or more than operators
		}
	}
	from, to := q.SelectAround(i)
	groups := expressionsOf(q, "GROUP", from, to)
	selected := slices.Index(expressionsOf(q, "SELECT", from, to), at)
	for _, group := range groups {
		text := q.Slice(group[0], group[1])
		named := selected >= 0 && (text == fmt.Sprint(selected+1) || q.Word(at[1]) == "AS" && text == q.Slice(at[1]+1, at[1]+2))
		if written := q.Slice(at[0], at[1]); len(parts) > 0 && parts[0] != written && (named || text == written) {
			return q.Replaced(group[0], group[1], strings.Join(parts, ", "))
		}
	}
	return ""
}

// isName reports whether a token is a name or a word.
func isName(word string) bool {
	return word != "" && (word[0] == '"' || word[0] == '_' || word[0] >= 'A' && word[0] <= 'Z' || word[0] > 127)
}

// repairKeyCast leaves out the casts of columns in a key.
func repairKeyCast(q *parse.QueryText, i int, refusal *fault.Error) string {
	at, ok := key(q, i, refusal)
	if !ok {
		return ""
	}
	changed, end := q, at[1]
	for k := at[1] - 1; k >= at[0]; k-- { // from the end, so that places stay
		column, stop := k, k
		switch {
		case q.Reads(k, "CAST", "(") && q.Word(columnEnd(q, k+2)) == "AS":
			column, stop = k+2, q.Closing(k+1)
		case isName(q.Word(k)) && q.Word(k-1) != "." && q.Reads(columnEnd(q, k), ":", ":") && q.Word(columnEnd(q, k)+3) != "(":
			stop = columnEnd(q, k) + 3
		}
		if k < stop && stop <= at[1] {
			changed = parse.CutText(changed.Replaced(k, stop, q.Slice(column, columnEnd(q, column))))
			end -= stop - k - (columnEnd(q, column) - column)
		}
	}
	return inAllItems(q, at, i, changed.Slice(at[0], end))
}

// repairKey writes a key in the form that the refusal names.
func repairKey(q *parse.QueryText, i int, refusal *fault.Error) string {
	at, ok := key(q, i, refusal)
	if !ok {
		return ""
	}
	return inAllItems(q, at, i, strings.NewReplacer("$1 ", operand(q, at[0], at[1])+" ", "$1", q.Slice(at[0], at[1])).Replace(refusal.Part))
}

// inAllItems writes a key in another form, in GROUP BY and wherever else it is an item.
func inAllItems(q *parse.QueryText, at [2]int, i int, form string) string {
	from, to := q.SelectAround(i)
	written := q.Slice(at[0], at[1])
	all := slices.Concat(expressionsOf(q, "SELECT", from, to), expressionsOf(q, "GROUP", from, to), expressionsOf(q, "ORDER", from, to))
	for _, e := range slices.Backward(all) { // from the end, so that places stay
		if q.Slice(e[0], e[1]) == written {
			q = parse.CutText(q.Replaced(e[0], e[1], form))
		}
	}
	return q.Text
}

// expressionsOf are the items of a list, from one token up to another, without their names and orders.
func expressionsOf(q *parse.QueryText, clause string, from, to int) (all [][2]int) {
	start, end := q.Clause(clause, from, to)
	k := start + 1
	if q.Word(k) == "BY" {
		k++
	}
	for k < end {
		next := min(q.Boundary(k, ","), end)
		last := next
		switch {
		case q.Word(last-2) == "AS":
			last -= 2
		case q.Word(last-1) == "DESC", q.Word(last-1) == "ASC", clause == "SELECT" && q.Word(last-2) == ")" && isName(q.Word(last-1)):
			last--
		}
		all = append(all, [2]int{k, max(last, k+1)})
		k = next + 1
	}
	return all
}

// operand is an expression that an operator may stand next to.
func operand(q *parse.QueryText, from, to int) string {
	call := from < to-1 && q.Word(from+1) == "(" && q.Closing(from+1) == to
	if columnEnd(q, from) == to || call || q.Word(from) == "(" && q.Closing(from) == to {
		return q.Slice(from, to)
	}
	return "(" + q.Slice(from, to) + ")"
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
		return q.Replaced(i, end, "(count(*) FILTER (WHERE "+argument+") > 0)")
	case "BOOL_AND", "EVERY":
		return q.Replaced(i, end, "(count(*) FILTER (WHERE NOT ("+argument+")) = 0)")
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

// repairGroupBy groups by a column that is shown as it is, where there are aggregates or groups.
func repairGroupBy(q *parse.QueryText, i int, refusal *fault.Error) string {
	grouped := refusal.Code == fault.CodeNotAggregate && refusal.Part != "" || strings.HasSuffix(refusal.Hint, "add it to GROUP BY")
	from, to := q.SelectAround(i)
	start, stop := q.Clause("GROUP", from, to)
	if !grouped || start == stop && !aggregates(q, from, to) {
		return ""
	}
	column := q.Slice(i, columnEnd(q, i))
	if q.Word(i) == "SELECT" { // the refusal points at the query
		column = refusal.Part
	}
	if start < stop {
		return q.Replaced(stop-1, stop, q.Slice(stop-1, stop)+", "+column)
	}
	return q.Replaced(start, start, "GROUP BY "+column)
}

// aggregates reports whether an item of the select list calls an aggregate.
func aggregates(q *parse.QueryText, from, to int) bool {
	return slices.ContainsFunc(itemsOf(q, from, to), func(item item) bool { return slices.ContainsFunc(item.calls, isAggregate) })
}

// repairListed groups by a column of rows that are listed, and counts them.
func repairListed(q *parse.QueryText, i int, refusal *fault.Error) string {
	from, to := q.SelectAround(i)
	start, stop := q.Clause("GROUP", from, to)
	if refusal.Code != fault.CodeNotAggregate || refusal.Part == "" || start < stop || aggregates(q, from, to) {
		return ""
	}
	_, list := q.Clause("SELECT", from, to)
	changed := parse.CutText(q.Replaced(start, start, "GROUP BY "+q.Slice(i, columnEnd(q, i))))
	return changed.Replaced(list-1, list, changed.Slice(list-1, list)+", count(*)")
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
