package fault

import (
	"fmt"
	"strings"
)

// The codes of queries that are allowed but cannot be planned with the options of the request. They depend on query text,
// policy and options alone, and cost nothing.
const (
	CodeMissingDelta  Code = "plan/missing-delta"
	CodeLooserBound   Code = "plan/looser-bound"
	CodePriceTooSmall Code = "plan/price-too-small"
	CodeMechanism     Code = "plan/mechanism"
	CodeTooManyKeys   Code = "plan/too-many-keys"
	CodeTooManyScans  Code = "plan/too-many-scans"
	CodeStep          Code = "plan/step"
	CodePlanUnknown   Code = "plan/unknown"
	CodePlanExhausted Code = "plan/exhausted"
	CodeSlotMismatch  Code = "plan/slot-mismatch"
	CodeDryRun        Code = "plan/dry-run"
	CodeFanOut        Code = "plan/fan-out"
	CodeFit           Code = "plan/fit"
	CodeUseless       Code = "plan/useless"
)

// MissingDelta says that group keys of the query must be selected privately, which needs δ > 0; column is one of them.
func MissingDelta(pos Position, column string) *Error {
	return &Error{
		Code: CodeMissingDelta, Pos: pos,
		Msg:  fmt.Sprintf("the keys of column %s are private: which of them are shown costs a δ", Quote(column)),
		Hint: `add "delta", for example "1e-9"`,
	}
}

// LooserBound refuses an option that asks for more than the policy allows; option is max_rows or max_groups.
func LooserBound(option string, asked, allowed int64) *Error {
	return &Error{
		Code: CodeLooserBound,
		Msg:  fmt.Sprintf("%s %d is looser than the policy's %d", option, asked, allowed),
		Hint: fmt.Sprintf("%s can only tighten the policy's bound: ask for at most %d", option, allowed),
	}
}

// DryRun says that the dataset's server refused a question's statement over made-up rows; state is PostgreSQL's code of the error, which no
// protected row had a part in.
func DryRun(state string) *Error {
	return &Error{
		Code: CodeDryRun,
		Msg:  fmt.Sprintf("the dataset's server cannot compute this query: over made-up rows it fails with SQLSTATE %s", state),
		Hint: "leave out, or write in another way, what this version of PostgreSQL does not have; nothing was charged",
	}
}

// Distributed says that the servers on which a dataset's tables lie cannot compute a question's statement: they were asked to plan it.
func Distributed() *Error {
	return &Error{
		Code: CodeDryRun,
		Msg:  "the servers that hold the dataset's tables cannot compute this query: they were asked to plan it, and could not",
		Hint: "write it in another way, or leave out what joins and groups by other values than the unit's id; nothing was charged",
	}
}

// PriceTooSmall says that the price, split over the query's releases, leaves nothing for each.
func PriceTooSmall(releases int) *Error {
	return &Error{
		Code: CodePriceTooSmall,
		Msg:  fmt.Sprintf("the price is too small to be split over %d releases", releases),
		Hint: "ask for fewer aggregates, or offer a larger epsilon or rho",
	}
}

// MechanismChoice says that the mechanism asked for does not fit the account or the price; message says why.
func MechanismChoice(message, hint string) *Error {
	return &Error{Code: CodeMechanism, Msg: message, Hint: hint}
}

// TooManyKeys refuses a product of public domains beyond the limit.
func TooManyKeys(pos Position, limit int) *Error {
	return &Error{
		Code: CodeTooManyKeys, Pos: pos,
		Msg:  fmt.Sprintf("the group keys have more than %d combinations, each of which would be shown", limit),
		Hint: "group by fewer columns, or narrow their values with WHERE key IN (...)",
	}
}

// TooManyScans refuses a query for which the tables would be read more often than the limit.
func TooManyScans(needed, limit int) *Error {
	return &Error{
		Code:    CodeTooManyScans,
		Msg:     fmt.Sprintf("the query reads its tables %d times, and one query may read them %d times", needed, limit),
		Hint:    "each expression with quantiles, different values or a mode is a reading of its own; divide them over several queries",
		Details: []Detail{{Name: "needed", Value: fmt.Sprint(needed)}, {Name: "limit", Value: fmt.Sprint(limit)}},
	}
}

// BadStep says that the policy's bounds and step for a column cannot be summed exactly; message says what does not fit.
func BadStep(pos Position, column, message string) *Error {
	return &Error{
		Code: CodeStep, Pos: pos,
		Msg:  fmt.Sprintf("values of column %s cannot be summed exactly: %s", Quote(column), message),
		Hint: fmt.Sprintf("ask the data's steward for another step or narrower bounds of %s", column),
	}
}

// PlanUnknown answers both for registered plans that do not exist and for those of others.
func PlanUnknown() *Error {
	return &Error{Code: CodePlanUnknown, Msg: "you have no such plan for this dataset"}
}

// PlanExhausted refuses a query that needs more slots than its registered plan has left.
func PlanExhausted(needed, left int) *Error {
	return &Error{
		Code:    CodePlanExhausted,
		Msg:     fmt.Sprintf("the query needs %d slots and the plan has %d left", needed, left),
		Hint:    "each aggregate takes one slot, avg takes two; answers that you have already are free",
		Details: []Detail{{Name: "needed", Value: fmt.Sprint(needed)}, {Name: "left", Value: fmt.Sprint(left)}},
	}
}

// SlotMismatch refuses a query that the next slots of its registered plan cannot answer; message says why.
func SlotMismatch(message, hint string) *Error {
	return &Error{Code: CodeSlotMismatch, Msg: message, Hint: hint}
}

// RowByRow refuses a query that PostgreSQL would evaluate again for each row that conditions leave: whether it reads a table at all would
// then be told by one unit's rows.
func RowByRow() *Error {
	return &Error{
		Code: CodeUnsupported,
		Msg: "EXISTS or IN that compares without an equality of two columns, or more than 3 columns that may be NULL, is not supported over " +
			"rows of people or a public " +
			"table of many rows",
		Hint: "add an equality of two columns, compare with (SELECT max(x) FROM ...) or (SELECT min(x) FROM ...), or write coalesce(x, " +
			"value) for columns that may be NULL",
	}
}

// FanOut refuses a query in which the rows of one unit could take longer than an answer may show: rows are theirs,
// factors what each of them meets (none: what is computed of a row takes long), micros what they cost at most with all
// that (one of them, where nothing bounds their number), and limit what they may cost.
func FanOut(pos Position, rows string, factors []string, micros string, limit int64, remedy string) *Error {
	hint := "release groups in a query in FROM and join public tables to those, take SELECT DISTINCT of the public side first, join " +
		"on a key, or compute less for each pair of rows"
	if len(factors) == 0 {
		hint = "compute less for each row: with shorter texts, as left(x, 100), or fewer functions"
	}
	if remedy != "" {
		hint = remedy + "; or " + hint
	}
	product := strings.Join(append([]string{rows}, factors...), " x ")
	return &Error{
		Code: CodeFanOut, Pos: pos,
		Msg: fmt.Sprintf("one unit could make this query slower by more than an answer may show: %s, which takes %s µs, where %d µs "+
			"are allowed", product, micros, limit),
		Hint:    hint,
		Details: []Detail{{Name: "product", Value: product}, {Name: "microseconds", Value: micros}, {Name: "limit", Value: fmt.Sprint(limit)}},
	}
}

// Useless refuses a question: fewer of its rows can be useful than the request wants. In a useful row the output is needs or more; where
// counts is "rows" or "people", it is computed from so many of them.
func Useless(possible, of int64, output, needs, counts string) *Error {
	has := "a useful row has " + clean(output) + " of at least " + needs
	if counts != "" {
		has = "in a useful row " + clean(output) + " is computed from about " + needs + " " + counts + " or more"
	}
	return &Error{Code: CodeUseless,
		Msg:     fmt.Sprintf("at most %d of %d rows can be useful, which is less than require_useful: %s", possible, of, has),
		Hint:    "group by less, offer a larger price, tighten max_rows or max_groups, or leave require_useful out; nothing was charged",
		Details: []Detail{{Name: "possible", Value: fmt.Sprint(possible)}, {Name: "of", Value: fmt.Sprint(of)}, {Name: "needs", Value: needs}}}
}

// FitInvalid refuses a part of a regression or of a clustering; want says what it must be.
func FitInvalid(field, want string) *Error {
	return &Error{Code: CodeFit, Msg: clean(field + " must be " + want), Hint: "the gateway's pages /docs/fit and /docs/cluster have examples"}
}

// FitStatement refuses a statement that asks for a model and for more, or with other arguments; form is how one is written.
func FitStatement(function, wrong, form string) *Error {
	return &Error{Code: CodeFit, Msg: function + " " + wrong, Hint: "write " + form + "; the gateway's page /docs/fit has more"}
}

// FitTooMany refuses a regression that is too large; what names what there is too much of.
func FitTooMany(what string, asked, most int64) *Error {
	return &Error{Code: CodeFit, Msg: fmt.Sprintf("the fit has %d %s, of %d at most", asked, what, most), Hint: "leave features out"}
}

// FitOutputs refuses a regression with more sums than a result has columns; columns is how many numeric features fit.
func FitOutputs(asked, most, columns int) *Error {
	return &Error{Code: CodeFit, Msg: fmt.Sprintf("the fit has %d sums of products, of %d at most", asked, most),
		Hint: fmt.Sprintf("leave features out: %d numeric columns fit, and columns of one one-hot feature have fewer products", columns)}
}

// FitTimed refuses several passes over the rows where the policy puts time into the guarantee: the delay is made for one. hint says what
// has one pass.
func FitTimed(hint string) *Error {
	return &Error{Code: CodeFit, Msg: "the policy covers time by a delay that is made for one pass over the rows, and the fit has several",
		Hint: hint}
}

// FitDistributed refuses regressions and clusterings of a dataset whose tables may lie on several servers.
func FitDistributed() *Error {
	return &Error{Code: CodeFit, Msg: "the dataset's tables may lie on several servers, and a fit is computed on one",
		Hint: "ask for sums and averages of products in a query"}
}
