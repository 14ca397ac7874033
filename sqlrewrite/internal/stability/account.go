package stability

import (
	"fmt"
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
	total, err := added(statements)
	if err != nil || total.Cmp(big.NewInt(MaxUnitWork)) <= 0 {
		return err == nil, err
	}
	for i := range statements {
		statements[i].Again, statements[i].Query.Shared().Once = 0, true
	}
	for {
		if total, err = added(statements); err != nil {
			return false, err
		}
		if total.Cmp(big.NewInt(MaxUnitWork)) <= 0 {
			break
		}
		if !narrowAll(statements) {
			return false, refused(statements, total)
		}
	}
	for _, s := range statements {
		w, err := workOf(nil, s.Query, s.Query.Statistics)
		if err != nil {
			return false, err
		}
		s.Query.Pairs.Set(w.pairs)
		noteCaps(s.Query)
	}
	return false, nil
}

// added is what statements cost one unit, in ns.
func added(statements []Statement) (*big.Int, error) {
	total := new(big.Int)
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
	}
	return total, nil
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

func refused(statements []Statement, total *big.Int) error {
	var dear dearest
	for _, s := range statements {
		if w, err := workOf(nil, s.Query, s.Statistics); err == nil && w.dear.ns > dear.ns {
			dear = w.dear
		}
	}
	micros := new(big.Int).Div(new(big.Int).Add(total, big.NewInt(999)), big.NewInt(1000))
	factors := []string{fmt.Sprintf("%d statements", len(statements))}
	return fault.FanOut(statements[0].Query.At, "the rows of one unit", factors, micros.String(), MaxUnitWork/1000, dear.remedy)
}
