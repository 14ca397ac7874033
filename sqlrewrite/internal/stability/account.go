package stability

import (
	"fmt"
	"maps"
	"math/big"

	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/algebra"
)

// Statement is one of a question's statements.
type Statement struct {
	Query      *algebra.BoundQuery
	Statistics []algebra.Statistic
	Again      int64 // ns of each row for columns that are computed again
}

// Together reports whether all statements of a question together cost one unit at most MaxUnitWork. If they do not, it lowers the caps of
// the whole question, the largest first, and has columns computed once: the question is then to be printed anew. The error says what does
// not fit.
func Together(statements []Statement) (fit bool, err error) {
	total, err := UnitWork(statements)
	if err != nil || total.Cmp(big.NewInt(MaxUnitWork)) <= 0 {
		return err == nil, err
	}
	for i := range statements {
		statements[i].Again, statements[i].Query.Shared().Once = 0, true
	}
	for {
		if total, err = UnitWork(statements); err != nil {
			return false, err
		}
		if total.Cmp(big.NewInt(MaxUnitWork)) <= 0 {
			break
		}
		if !narrowAll(statements) {
			return false, refused(statements, rowsOfUnit, total, MaxUnitWork)
		}
	}
	return false, settle(statements)
}

// settle says of queries what lower caps come to.
func settle(statements []Statement) error {
	for _, s := range statements {
		w, err := workOf(nil, s.Query, s.Query.Statistics)
		if err != nil {
			return err
		}
		s.Query.Pairs.Set(w.pairs)
		noteCaps(s.Query)
	}
	return nil
}

// provenMargin is by how much the prices of package verify may be above those here: they are formulas of their own, over sizes that are
// derived from the text.
const provenMargin = 2

// maxAllWork bounds what one unit takes in all SELECTs of a question, in ns, those too that are charged to rows. The default quantum is
// 50 ms: a unit of at most a hundred rows moves an answer by one boundary at most.
const maxAllWork = 40_000_000

// Claimed is the time that was proven of the texts of a question's statements, in ns; see [verify.Work]. A bound that is nil is none.
type Claimed struct{ Row, Unit, All *big.Int }

// Proven reports whether what was proven is within what it may be.
func Proven(c Claimed) bool {
	return c.Row != nil && c.Row.Cmp(big.NewInt(provenMargin*MaxRowWork)) <= 0 && c.Unit.Cmp(big.NewInt(provenMargin*MaxUnitWork)) <= 0 &&
		c.All.Cmp(big.NewInt(maxAllWork)) <= 0
}

// DearRow refuses a question for a row that takes too long, where no cap bounds how many rows a unit has.
type DearRow struct{ error }

func (d DearRow) Unwrap() error { return d.error }

// Lower lowers the largest caps of a question whose statements are not [Proven]; the error says that none can be, and what was proven.
func Lower(statements []Statement, c Claimed) error {
	if narrowAll(statements) {
		return settle(statements)
	}
	switch {
	case c.Row == nil || c.Row.Cmp(big.NewInt(provenMargin*MaxRowWork)) > 0:
		return DearRow{refused(statements, eachRow, c.Row, provenMargin*MaxRowWork)}
	case c.Unit.Cmp(big.NewInt(provenMargin*MaxUnitWork)) > 0:
		return refused(statements, rowsOfUnit, c.Unit, provenMargin*MaxUnitWork)
	default:
		return refused(statements, "a hundred rows of one unit", c.All, maxAllWork)
	}
}

// PostgreSQL compiles a regular expression, in so many ns, when it meets the first row, and remembers so many of them (regexp.c,
// MAX_CACHED_RES): of more each evaluation would compile one.
const (
	compilesRegex     = 40_000
	rememberedRegexes = 32
)

// UnitWork is what statements cost one unit together, in ns. Its error says that one of them does not fit by itself.
func UnitWork(statements []Statement) (*big.Int, error) {
	total, compiled := new(big.Int), make(map[string]bool)
	for _, s := range statements {
		w, err := workOf(nil, s.Query, s.Statistics)
		if err != nil {
			return nil, err
		}
		for _, ns := range w.units {
			total.Add(total, ns)
		}
		again := new(big.Int).Mul(big.NewInt(s.Again), w.most)
		total.Add(total, again.Mul(again, w.runs))
		maps.Copy(compiled, w.compiled)
	}
	if n := len(compiled); n > rememberedRegexes {
		return nil, fault.TooComplex(statements[0].Query.At,
			fmt.Sprintf("the query has %d regular expressions, of at most %d", n, rememberedRegexes))
	}
	return total.Add(total, big.NewInt(int64(len(compiled))*compilesRegex)), nil
}

// narrowAll lowers the largest caps of a question: all that keep so many rows, so that equal blocks stay equal.
func narrowAll(statements []Statement) bool {
	most := int64(0)
	each := func(do func(c *algebra.RowCap)) {
		done := make(map[*algebra.RowCap]bool)
		for _, s := range statements {
			for _, c := range s.Query.Shared().Caps {
				if c.Active() && c.Least > 0 && c.Rows > c.Least && !done[c] {
					done[c] = true
					do(c)
				}
			}
		}
	}
	each(func(c *algebra.RowCap) { most = max(most, c.Rows) })
	each(func(c *algebra.RowCap) {
		if c.Rows == most {
			c.Narrow()
		}
	})
	return most > 0
}

const (
	rowsOfUnit = "the rows of one unit"
	eachRow    = "each row (nothing limits how many a unit has)"
)

func refused(statements []Statement, rows string, total *big.Int, limit int64) error {
	var dear dearest
	for _, s := range statements {
		if w, err := workOf(nil, s.Query, s.Statistics); err == nil && w.dear.ns > dear.ns {
			dear = w.dear
		}
	}
	micros := "any number of"
	if total != nil {
		micros = new(big.Int).Div(new(big.Int).Add(total, big.NewInt(999)), big.NewInt(1000)).String()
	}
	var factors []string
	if n := len(statements); n > 1 {
		factors = []string{fmt.Sprintf("%d statements", n)}
	}
	return fault.FanOut(statements[0].Query.At, rows, factors, micros, limit/1000, dear.remedy)
}
