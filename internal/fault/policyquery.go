package fault

import "fmt"

// The codes of queries that are good SQL but that the dataset's policy does not allow. They depend on query text and policy
// alone, and cost nothing.
const (
	CodeNotAggregate  Code = "policy/not-aggregate"
	CodeMissingBounds Code = "policy/missing-bounds"
	CodeMissingKeys   Code = "policy/missing-keys"
	CodeUnitColumn    Code = "policy/unit-column"
	CodeUnitJoin      Code = "policy/unit-join"
)

// NotAggregate refuses an output that would show single rows; what names it ("column age", "*").
func NotAggregate(pos Position, what string) *Error {
	return &Error{
		Code: CodeNotAggregate, Pos: pos,
		Msg:  clean(what) + " would show rows of single people; only aggregates and group keys can be released",
		Hint: "use count(*), sum(x) or avg(x), and GROUP BY every other column of the select list",
	}
}

// NotGrouped refuses a column of the select list, HAVING or ORDER BY that is no group key.
func NotGrouped(pos Position, column string) *Error {
	return NotAggregate(pos, "column "+Quote(column)).WithHint("add it to GROUP BY, or put an aggregate around it")
}

// GroupByUnit refuses a group for each privacy unit.
func GroupByUnit(pos Position, column string) *Error {
	return &Error{
		Code: CodeNotAggregate, Pos: pos,
		Msg:  fmt.Sprintf("grouping by %s, the privacy unit, would make one group for each person", Quote(column)),
		Hint: fmt.Sprintf("group by something else; count(DISTINCT %s) counts people", column),
	}
}

// GroupByIdentity refuses groups by a column that identifies one privacy unit. This is a reference to a unit's row, or a unique column.
func GroupByIdentity(pos Position, column string) *Error {
	return &Error{
		Code: CodeNotAggregate, Pos: pos,
		Msg: fmt.Sprintf("grouping by %s, whose values tell single people, would make groups of single people", Quote(column)),
		Hint: fmt.Sprintf("group by something else; a query in FROM may group by it: SELECT n, count(*) FROM (SELECT %s, count(*) AS n ... "+
			"GROUP BY 1) t GROUP BY n", column),
	}
}

// UnitColumn refuses what identifies the privacy unit anywhere but where it is counted, tested for NULL, joined or kept within one unit's
// rows.
func UnitColumn(pos Position, column string) *Error {
	return &Error{
		Code: CodeUnitColumn, Pos: pos,
		Msg:  fmt.Sprintf("%s identifies the privacy unit, and is not compared or computed with", Quote(column)),
		Hint: "it is counted, tested for NULL and joined on; a query in FROM may group by it",
	}
}

// UnitKinds refuses to compare what identifies units of one kind with what identifies units of another.
func UnitKinds(pos Position, column, other string) *Error {
	return &Error{
		Code: CodeUnitJoin, Pos: pos,
		Msg:  fmt.Sprintf("%s and %s identify privacy units of different kinds", Quote(column), Quote(other)),
		Hint: "join tables whose units are of one kind; if these are, the data's steward writes the same of: (of: person) for both units",
	}
}

// MissingBounds refuses to sum a column whose values the policy does not bound.
func MissingBounds(pos Position, column string) *Error {
	return &Error{
		Code: CodeMissingBounds, Pos: pos,
		Msg:     fmt.Sprintf("the policy gives no bounds for column %s", Quote(column)),
		Hint:    fmt.Sprintf("ask the data's steward to declare bounds: [lo, hi] for %s", column),
		Details: []Detail{{Name: "column", Value: column}},
	}
}

// UnboundedExpression refuses to sum a computed value for which nothing is known that bounds it.
func UnboundedExpression(pos Position, expression string) *Error {
	return &Error{
		Code: CodeMissingBounds, Pos: pos,
		Msg:  fmt.Sprintf("nothing bounds the values of %s", Quote(expression)),
		Hint: "keep divisors away from zero with greatest(x, 1), or bound the result with least and greatest",
	}
}

// MissingContribution refuses a table whose policy does not say how much one unit may contribute; setting is max_rows
// or max_groups.
func MissingContribution(pos Position, table, setting string) *Error {
	return &Error{
		Code: CodeMissingBounds, Pos: pos,
		Msg:  fmt.Sprintf("the policy gives no %s for table %s", setting, Quote(table)),
		Hint: fmt.Sprintf("ask the data's steward to declare %s", setting),
	}
}

// MissingKeys refuses to group by a column if the policy does not say how its values may be shown.
func MissingKeys(pos Position, column string) *Error {
	return &Error{
		Code: CodeMissingKeys, Pos: pos,
		Msg:     fmt.Sprintf("the policy does not say which values of column %s may be shown as group keys", Quote(column)),
		Hint:    fmt.Sprintf("ask the data's steward to declare a domain, or keys: private, for %s", column),
		Details: []Detail{{Name: "column", Value: column}},
	}
}

// MissingSteps refuses to group by a value of a bounded column that has too many values, or none that are told apart; form is one of $1
// that has fewer.
func MissingSteps(pos Position, column, form string) *Error {
	return MissingKeys(pos, column).WithPart(form).WithHint(fmt.Sprintf(
		"group by larger whole steps of it, or ask the data's steward to declare a domain, or keys: private, for %s", column))
}

// UnitJoin refuses a join that would pair rows of different privacy units; condition is the one to add, empty where it has no names.
func UnitJoin(pos Position, condition string) *Error {
	e := &Error{Code: CodeUnitJoin, Pos: pos, Msg: "this join pairs rows of different people", Hint: "join on the privacy unit"}
	if condition != "" {
		e.Hint, e.Part = e.Hint+": add "+condition, condition
	}
	return e
}
