package domain

import (
	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/syntax"
)

// Incremental reports whether PostgreSQL computes a value from the one of the row before: the frame's start does not move, or what leaves
// the frame can be taken back. Of numerics without fixed digits it cannot always be.
func Incremental(e algebra.Aggregate) bool {
	w := e.Over
	if BuiltinOf(e.Name).IsRank() || w.Frame == nil || w.Frame.Start.Kind == syntax.UnboundedPreceding ||
		len(w.Order) == 0 && w.Frame.Mode == syntax.Range {
		return true
	}
	switch e.Name {
	case "count", "bool_or", "bool_and", "every":
		return true
	case "sum", "avg":
		_, fixed := algebra.Scale(e.X())
		return e.X().Typ().IsInteger() || algebra.CarrierOf(e.X()) == catalog.Numeric && fixed
	default:
		return false
	}
}

// AggregateForm is how an aggregate's arguments and result are typed.
type AggregateForm int

const (
	NoForm        AggregateForm = iota // it exists only released, or not at all
	CountForm                          // any -> bigint
	SumForm                            // number -> as sum
	MeanForm                           // number -> as avg
	ExtremeForm                        // what has an order -> the same
	SpreadForm                         // number -> numeric or float8
	BooleanForm                        // boolean -> boolean
	PairForm                           // two numbers -> float8
	PairCountForm                      // two numbers -> bigint
	JoinForm                           // two texts -> text
	QuantileForm                       // fraction, WITHIN GROUP (ORDER BY number) -> float8
	OrderedForm                        // fraction, WITHIN GROUP (ORDER BY x) -> as x
	ModeForm                           // WITHIN GROUP (ORDER BY x) -> as x
	MedianForm                         // number -> float8; percentile_cont(0.5) in PostgreSQL's words
)

// Ordered reports whether an aggregate is one of an order of its values.
func (f AggregateForm) Ordered() bool {
	return f == QuantileForm || f == OrderedForm || f == ModeForm || f == MedianForm
}

// Pairs reports whether an aggregate is of pairs of numbers.
func (f AggregateForm) Pairs() bool { return f == PairForm || f == PairCountForm }

// Arguments is how many a form takes, and how many after WITHIN GROUP.
func (f AggregateForm) Arguments(star bool) (plain, within int) {
	switch f {
	case PairForm, PairCountForm, JoinForm:
		return 2, 0
	case QuantileForm, OrderedForm:
		return 1, 1
	case ModeForm:
		return 0, 1
	case NoForm, CountForm, SumForm, MeanForm, ExtremeForm, SpreadForm, BooleanForm, MedianForm:
	}
	if star {
		return 0, 0
	}
	return 1, 0
}

// Result is the type that PostgreSQL gives to an aggregate of values of these types; ok is false where it does not exist.
func (f AggregateForm) Result(of ...catalog.Type) (t catalog.Type, ok bool) {
	switch f {
	case NoForm:
		return scalar.UnknownType, false
	case CountForm:
		return catalog.Int8, true
	case SumForm:
		return sumType(of[0]), of[0].IsNumber()
	case MeanForm, SpreadForm:
		if scalar.IsFloat(of[0]) {
			return catalog.Float8, true
		}
		return catalog.Numeric, of[0].IsNumber()
	case QuantileForm, MedianForm:
		return catalog.Float8, of[0].IsNumber()
	case ExtremeForm:
		return of[0], scalar.FamilyOf(of[0]) != scalar.BoolFamily && scalar.FamilyOf(of[0]) != scalar.UuidFamily
	case OrderedForm, ModeForm:
		return of[0], true
	case BooleanForm:
		return catalog.Bool, of[0] == catalog.Bool
	case PairForm:
		return catalog.Float8, of[0].IsNumber() && of[1].IsNumber()
	case PairCountForm:
		return catalog.Int8, of[0].IsNumber() && of[1].IsNumber()
	case JoinForm:
		return catalog.Text, scalar.FamilyOf(of[0]) == scalar.TextFamily && scalar.FamilyOf(of[1]) == scalar.TextFamily
	default:
		panic("sqlrewrite: form of aggregates without a type")
	}
}

func sumType(t catalog.Type) catalog.Type {
	switch t {
	case catalog.Int2, catalog.Int4:
		return catalog.Int8
	case catalog.Int8:
		return catalog.Numeric
	default:
		return t
	}
}

// Constants is the type of a string constant among the arguments.
func (f AggregateForm) Constants() catalog.Type {
	switch f {
	case CountForm, ExtremeForm, JoinForm:
		return catalog.Text
	case BooleanForm:
		return catalog.Bool
	case NoForm, SumForm, MeanForm, SpreadForm, PairForm, PairCountForm, QuantileForm, OrderedForm, ModeForm, MedianForm:
	}
	return catalog.Float8
}

// Scope says what the names inside an expression mean.
type Scope interface {
	Column(*syntax.Column) (algebra.Expr, error)
	Call(*syntax.Call) (algebra.Expr, error)
	// Computes is false below the aggregates, where every operation is printed in its error-free form: nothing may fail on a row's values.
	Computes() bool
}

// windowForm is what a function that exists only with OVER takes and gives.
type windowForm struct {
	Least, Most int          // arguments
	Count       int          // which of them counts rows; -1: none
	Result      catalog.Type // "": that of the first argument
}
