package oracle

import (
	"testing"

	"noisegate.example/sqlrewrite/proofs/gen"
)

// Random queries over values that no bound binds: without noise an answer is PostgreSQL's own answer to the analyst's text, as a bag of
// rows. What differs by design: a public key that no row has appears all the same, and a sum over no rows is 0. Order is the subject
// of [TestOracle], which has fewer ties.
//
// needs: postgres
func TestOracleRandom(t *testing.T) {
	t.Parallel()
	gen.Oracle(t, gen.NewWorld(t, 11, gen.Calm, 1000), gen.Proofs())
}
