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

// NotGrouped refuses a column of the select list, HAVING or ORDER BY that is no group key; groupBy is the clause that would make it one.
func NotGrouped(pos Position, column, groupBy string) *Error {
	e := NotAggregate(pos, "column "+Quote(column))
	e.Hint, e.Part = "write "+clean(groupBy)+", or an aggregate: count("+clean(column)+")", column
	return e
}

// GroupByUnit refuses a group for each privacy unit.
func GroupByUnit(pos Position, column string) *Error {
	return &Error{
		Code: CodeNotAggregate, Pos: pos,
		Msg:  fmt.Sprintf("grouping by %s, the privacy unit, would make one group for each person", Quote(column)),
		Hint: fmt.Sprintf("group by something else; count(DISTINCT %s) counts people", column),
	}
}

// UnitColumn refuses the privacy unit's id anywhere but in count(DISTINCT id).
func UnitColumn(pos Position, column string) *Error {
	return &Error{
		Code: CodeUnitColumn, Pos: pos,
		Msg:  fmt.Sprintf("%s identifies the privacy unit and can only be counted", Quote(column)),
		Hint: fmt.Sprintf("write count(DISTINCT %s)", column),
	}
}

// UnitCount refuses count(id) of the privacy unit: rows without one are not used, so that count(*) is the same. It is the part that is
// suggested.
func UnitCount(pos Position, column string) *Error {
	e := UnitColumn(pos, column).WithHint(fmt.Sprintf("write count(*), which counts the same rows: those without %s are never used; "+
		"count(DISTINCT %s) counts people", column, column))
	e.Part = "count(*)"
	return e
}

// UnitIsNull refuses a test of the privacy unit's id; not says that it is IS NOT NULL.
func UnitIsNull(pos Position, column string, not bool) *Error {
	e := UnitColumn(pos, column)
	if not {
		return e.WithHint(fmt.Sprintf("leave the condition out: rows without %s belong to nobody, and are never used", column))
	}
	return e.WithHint(fmt.Sprintf("no row that is used is without %s; after an outer join, test another column of that table, which is never "+
		"NULL there", column))
}

// UnitKinds refuses to compare what identifies units of one kind with what identifies units of another.
func UnitKinds(pos Position, column, other string) *Error {
	return &Error{
		Code: CodeUnitJoin, Pos: pos,
		Msg:  fmt.Sprintf("%s and %s identify privacy units of different kinds", Quote(column), Quote(other)),
		Hint: "join tables whose units are of one kind; if they are, the data's steward says so: of: person beside both units",
	}
}

// MissingBounds refuses to sum a column whose values the policy does not bound.
func MissingBounds(pos Position, column string) *Error {
	return &Error{
		Code: CodeMissingBounds, Pos: pos,
		Msg:     fmt.Sprintf("the policy gives no bounds for column %s", Quote(column)),
		Hint:    fmt.Sprintf("ask the data's steward to declare bounds: [lo, hi] for %s, or use count(%s)", column, column),
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

// MissingKeys refuses to group by a column of which the policy does not say how its values may be shown.
func MissingKeys(pos Position, column string) *Error {
	return &Error{
		Code: CodeMissingKeys, Pos: pos,
		Msg:     fmt.Sprintf("the policy does not say which values of column %s may be shown as group keys", Quote(column)),
		Hint:    fmt.Sprintf("ask the data's steward to declare a domain, or keys: private, for %s", column),
		Details: []Detail{{Name: "column", Value: column}},
	}
}

// UnitJoin refuses a join that would pair rows of different privacy units; condition is the one to add.
func UnitJoin(pos Position, condition string) *Error {
	return &Error{
		Code: CodeUnitJoin, Pos: pos,
		Msg:  "this join pairs rows of different people",
		Hint: "join on the privacy unit: add " + condition,
		Part: condition,
	}
}
