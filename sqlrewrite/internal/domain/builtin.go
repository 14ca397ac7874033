package domain

import (
	"cmp"
	"math/big"
	"slices"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/syntax"
)

// Kind is what Noisegate does with a function name.
type Kind int

const (
	RowFunction      Kind = iota // of the values of one row, or of released values and keys
	Aggregate                    // released with noise
	RefusedAggregate             // an aggregate of PostgreSQL that has no private form here
	WindowFunction               // exists only with OVER
)

// Builtin is all that is known of a function, but for the second derivation of package verify, which shares nothing with it.
type Builtin struct {
	Name   string
	Kind   Kind
	Prints string // its name in statements; "": Name
	// Grammar is set where SQL has a syntax of its own for the call, in which texts are compared.
	Grammar bool

	// Of a row: how many arguments it takes, and its typed call. Types are PostgreSQL's, so that no error comes after the charge.
	Args   arity
	Type   func(*algebra.Binder, *Builtin, *syntax.Call, []algebra.Expr) (algebra.Expr, error)
	Params [4]textParameter // of functions of texts: what textCall checks
	Result catalog.Type     // the same: their type
	// Safe is the error-free form; docs/sql/error-free.md has the proofs.
	Safe func(safeCall) (Operand, error)
	// Keys evaluates it over all that is possible, where its values are the same here and in PostgreSQL; nil: nowhere.
	Keys func(evaluator, algebra.Call) ([]datum, bool)
	// Letters is the largest number of characters of its text, by those of an expression; nil: of its first argument's.
	Letters func(e algebra.Call, of func(algebra.Expr) int64) int64
	Whole   bool // of one argument it gives whole numbers

	// Interval is where the value lies if the arguments lie in these spans; nil: no interval is known.
	Interval func(all []scalar.Span, digits int) scalar.Span
	Moves    Movement
	First    FirstArgument
	Cost     Costs

	Form AggregateForm   // of aggregates: how it is typed
	How  algebra.Formula // of aggregates that are computed from several releases
	// OfUnit is set for aggregates that a query for each unit may compute: functions of the set of values, in whatever order PostgreSQL
	// meets them.
	OfUnit bool
	Window windowForm
	Hint   string // RefusedAggregate: what to write instead
}

// arity is how many arguments a function takes.
type arity struct {
	least, most int
	text        string
}

// Takes reports whether there may be n arguments.
func (a arity) Takes(n int) bool { return a.least <= n && n <= a.most }

// anyNumber of arguments.
const anyNumber = 1 << 20

var (
	oneArg       = arity{1, 1, "one argument"}
	twoArgs      = arity{2, 2, "two arguments"}
	threeArgs    = arity{3, 3, "three arguments"}
	threeOrFour  = arity{3, 4, "three or four arguments"}
	oneOrTwoArgs = arity{1, 2, "one or two arguments"}
	upToTwoArgs  = arity{1, 2, "two arguments"}
	someArgs     = arity{1, anyNumber, "at least one argument"}
)

// safeCall is a call whose error-free form is to be found.
type safeCall struct {
	*algebra.Binder
	at      syntax.Expr
	call    algebra.Call
	args    []Operand
	letters int64 // of its first argument, at most
}

// Movement is how far a value moves at most when an argument does.
type Movement int

const (
	AnyWay  Movement = iota // nothing is known
	NoMore                  // no farther than the argument
	InSteps                 // the same, rounded to decimal places
)

// FirstArgument says where a value is that of the first argument.
type FirstArgument int

const (
	Computed        FirstArgument = iota // nowhere
	FirstOrNull                          // wherever it is not NULL
	FirstUnlessNull                      // wherever the first argument is not NULL
)

// Costs are the prices by the kind of the operands, as TestCosts measured them, rounded up to 1, 2 or 5 in their first digit.
type Costs struct{ Integer, Float, Numeric, Text, Time, Other Price }

// Of is the price for a kind of operands; ok is false where it was not measured.
func (c Costs) Of(kind string) (p Price, ok bool) {
	switch kind {
	case "integer":
		p = c.Integer
	case "float":
		p = c.Float
	case "numeric":
		p = c.Numeric
	case "text":
		p = c.Text
	case "time":
		p = c.Time
	case "other":
		p = c.Other
	}
	return p, p != Price{}
}

func (f *Builtin) printed() string { return cmp.Or(f.Prints, f.Name) }

// BuiltinOf finds a function by the name that an analyst or a statement calls it by; nil for names that do not exist.
func BuiltinOf(name string) *Builtin { return builtinsByName[name] }

// builtinsByName is made of the table once: a plan looks for hundreds of names.
var builtinsByName = func() map[string]*Builtin {
	index := make(map[string]*Builtin, 2*len(Builtins))
	for i := range Builtins {
		if index[Builtins[i].Name] == nil {
			index[Builtins[i].Name] = &Builtins[i]
		}
	}
	for i, f := range Builtins { // a name that analysts write comes before one that is printed
		if index[f.Prints] == nil && f.Prints != "" {
			index[f.Prints] = &Builtins[i]
		}
	}
	return index
}()

// What a name is; a name that does not exist is none of these.

// IsAggregate reports whether it is an aggregate, released or refused.
func (f *Builtin) IsAggregate() bool {
	return f != nil && (f.Kind == Aggregate || f.Kind == RefusedAggregate)
}

// IsExact reports whether it is an aggregate of rows of which each is a release or public.
func (f *Builtin) IsExact() bool { return f != nil && f.Form != NoForm }

// IsOfUnit reports whether a query for each unit may compute it.
func (f *Builtin) IsOfUnit() bool { return f != nil && f.OfUnit }

// IsRank reports whether it exists only with OVER.
func (f *Builtin) IsRank() bool { return f != nil && f.Kind == WindowFunction }

// FunctionNames are the names that a call without OVER can have.
func FunctionNames() []string {
	return namesOf(func(f Builtin) bool { return f.Kind != WindowFunction })
}

// WindowNames are the names that a call with OVER can have, over rows of which each is a release or public.
func WindowNames() []string {
	return namesOf(func(f Builtin) bool { return f.Kind == WindowFunction || f.Form != NoForm })
}

// UnitWindowNames are the names that a call with OVER can have, over rows of one unit: those of ranks first.
func UnitWindowNames() []string {
	ranks := namesOf(func(f Builtin) bool { return f.Kind == WindowFunction })
	slices.Sort(ranks)
	return append(ranks, namesOf(func(f Builtin) bool { return f.OfUnit })...)
}

func namesOf(is func(Builtin) bool) []string {
	var names []string
	for _, f := range Builtins {
		if is(f) {
			names = append(names, f.Name)
		}
	}
	return names
}

// Function looks a call's name up. Only names without a schema, or in pg_catalog, can be found.
func Function(b *algebra.Binder, n *syntax.Call) (*Builtin, error) {
	if n.Over != nil {
		return nil, b.Unsupported(n, "a window function (OVER) here",
			"compute ranks and shares from the released answer, or those of one person's rows in a query in FROM")
	}
	f := BuiltinOf(n.Name)
	switch known := f != nil && f.Name == n.Name && f.Kind != WindowFunction; {
	case known && InCatalog(n):
		return f, nil
	case n.Schema != "":
		return nil, fault.UnknownFunction(b.At(n), n.Schema+"."+n.Name, nil)
	default:
		return nil, fault.UnknownFunction(b.At(n), n.Name, FunctionNames())
	}
}

// InCatalog reports whether a call can mean one of PostgreSQL's own functions.
func InCatalog(n *syntax.Call) bool { return n.Schema == "" || n.Schema == "pg_catalog" }

// CallOf gives a call the types that PostgreSQL gives it.
func CallOf(b *algebra.Binder, n *syntax.Call, args []algebra.Expr) (algebra.Expr, error) {
	f := BuiltinOf(n.Name)
	switch {
	case f.Type == nil:
		return nil, b.Unsupported(n, "function "+n.Name+" over the columns of a row", "")
	case !f.Args.Takes(len(args)):
		return nil, b.Mismatch(n, n.Name+" needs "+f.Args.text, "")
	}
	if err := callZone(b, n, args); err != nil {
		return nil, err
	}
	return f.Type(b, f, n, args)
}

// safeFormOf is the error-free form of a function.
func safeFormOf(b *algebra.Binder, n syntax.Expr, e algebra.Call) (Operand, error) {
	c := safeCall{Binder: b, at: n, call: e, args: make([]Operand, len(e.Args)), letters: MaxLetters(e.Args[0])}
	for i, arg := range e.Args {
		o, err := OperandOf(b, n, arg)
		if err != nil {
			return Operand{}, err
		}
		c.args[i] = o
	}
	return BuiltinOf(e.Name).Safe(c)
}

// lettersOfCall is the largest number of characters of a function's text.
func lettersOfCall(e algebra.Call) int64 {
	if f := BuiltinOf(e.Name); f != nil && f.Letters != nil {
		return f.Letters(e, MaxLetters)
	}
	return MaxLetters(e.Args[0])
}

// Spans of functions that rise or fall with each argument.

func floorSpan(all []scalar.Span, _ int) scalar.Span {
	return scalar.Span{Lo: wholeBelow(all[0].Lo), Hi: wholeBelow(all[0].Hi)}
}

func ceilSpan(all []scalar.Span, _ int) scalar.Span {
	return scalar.Span{Lo: wholeAbove(all[0].Lo), Hi: wholeAbove(all[0].Hi)}
}

func wholeBelow(v *big.Rat) *big.Rat { return new(big.Rat).SetInt(scalar.Floor(v)) }

func wholeAbove(v *big.Rat) *big.Rat { return new(big.Rat).SetInt(scalar.Ceil(v)) }

// RoundSpan is where the numbers of a span lie after rounding to decimal places. PostgreSQL rounds halves of numeric away from zero and of
// floats to even: the ends are those of either.
func RoundSpan(all []scalar.Span, digits int) scalar.Span {
	step, half := scalar.StepOf(digits), big.NewRat(1, 2)
	lo := new(big.Rat).Sub(new(big.Rat).Quo(all[0].Lo, step), half)
	hi := new(big.Rat).Add(new(big.Rat).Quo(all[0].Hi, step), half)
	return scalar.Span{Lo: new(big.Rat).Mul(wholeAbove(lo), step), Hi: new(big.Rat).Mul(wholeBelow(hi), step)}
}

func absSpan(all []scalar.Span, _ int) scalar.Span {
	x := all[0]
	if x.Lo.Sign() >= 0 {
		return x
	}
	low := new(big.Rat)
	if x.Hi.Sign() < 0 {
		low.Neg(x.Hi)
	}
	return scalar.Span{Lo: low, Hi: scalar.MaxRat(new(big.Rat).Abs(x.Lo), new(big.Rat).Abs(x.Hi))}
}

func greatestSpan(all []scalar.Span, _ int) scalar.Span {
	return folded(all, scalar.MaxRat, scalar.MaxRat)
}

func leastSpan(all []scalar.Span, _ int) scalar.Span {
	return folded(all, scalar.MinRat, scalar.MinRat)
}

// hullSpan is the smallest span that holds all of them.
func hullSpan(all []scalar.Span, _ int) scalar.Span {
	return folded(all, scalar.MinRat, scalar.MaxRat)
}

func folded(all []scalar.Span, lo, hi func(a, b *big.Rat) *big.Rat) scalar.Span {
	s := all[0]
	for _, x := range all[1:] {
		s.Lo, s.Hi = lo(s.Lo, x.Lo), hi(s.Hi, x.Hi)
	}
	return s
}
