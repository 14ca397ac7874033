package keys

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/syntax"
)

// The implied condition is true wherever the condition is, whatever values the other columns have. It reads known columns alone. Where all
// columns are known, it is equivalent.
func TestImplied(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4)) // reproducible on purpose
	fields := make([]*algebra.Field, 5)
	for i := range fields {
		fields[i] = &algebra.Field{Column: &catalog.Column{Name: fmt.Sprint("c", i), Type: catalog.Bool}}
	}
	known := func(f *algebra.Field) bool { return f == fields[0] || f == fields[1] || f == fields[2] }
	said, narrowing := 0, 0
	for range 5000 {
		e := randomCondition(r, fields, 4)
		weaker, same := Implied(e, known), Implied(e, func(*algebra.Field) bool { return true })
		if weaker != nil {
			said++
			if !readsOnly(weaker, known) {
				t.Fatalf("%v implies %v, which reads what is not known", e, weaker)
			}
		}
		for row := range 243 { // 3 to the 5
			values := make(map[*algebra.Field]int)
			for i, rest := 0, row; i < len(fields); i, rest = i+1, rest/3 {
				values[fields[i]] = rest%3 - 1
			}
			holds := truth(e, values) == 1
			if holds && weaker != nil && truth(weaker, values) != 1 {
				t.Fatalf("%v is true and what it implies, %v, is not, for %v", e, weaker, values)
			}
			if !holds && weaker != nil && truth(weaker, values) != 1 {
				narrowing++
			}
			if holds != (truth(same, values) == 1) {
				t.Fatalf("%v and %v differ, for %v", e, same, values)
			}
		}
	}
	if said < 1000 || narrowing < 100_000 {
		t.Errorf("only %d conditions imply one, which leaves out %d rows", said, narrowing)
	}
}

func randomCondition(r *rand.Rand, fields []*algebra.Field, depth int) algebra.Expr {
	leaf := algebra.Column{Of: fields[r.IntN(len(fields))]}
	if depth == 0 {
		return leaf
	}
	switch r.IntN(5) {
	case 0:
		return algebra.Not{X: randomCondition(r, fields, depth-1)}
	case 1, 2:
		return algebra.Binary{Op: syntax.And, L: randomCondition(r, fields, depth-1), R: randomCondition(r, fields, depth-1), T: catalog.Bool}
	case 3:
		return algebra.Binary{Op: syntax.Or, L: randomCondition(r, fields, depth-1), R: randomCondition(r, fields, depth-1), T: catalog.Bool}
	default:
		return leaf
	}
}

// truth is 1 for true, -1 for false, 0 for NULL.
func truth(e algebra.Expr, values map[*algebra.Field]int) int {
	switch e := e.(type) {
	case algebra.Column:
		return values[e.Of]
	case algebra.Not:
		return -truth(e.X, values)
	case algebra.Binary:
		if e.Op == syntax.And {
			return min(truth(e.L, values), truth(e.R, values))
		}
		return max(truth(e.L, values), truth(e.R, values))
	default:
		panic("another condition")
	}
}
