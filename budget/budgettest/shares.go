package budgettest

import (
	"bytes"

	"noisegate.example/budget"
)

// A vector is given to others once its charge counts for good: settled, or expired as that of a gateway that died after it had stored
// the vector. The one with the most ρ is the best.
func testShares(f *fixture) {
	shares, ok := f.ledger.(budget.Shares)
	if !ok {
		f.Fatal("the ledger keeps no vectors")
	}
	question := [32]byte{1}
	best := func(want budget.ReservationID) {
		f.Helper()
		got, err := shares.Best(f.Context(), dataset, question)
		switch {
		case err != nil:
			f.Fatal(err)
		case want == "" && got != nil || want != "" && (got == nil || got.Charge != want):
			f.Fatalf("the best is %+v, want that of %q", got, want)
		case got != nil && (got.Dataset != dataset || got.Question != question || !bytes.Equal(got.Vector, []byte(`{"of":"`+string(want)+`"}`))):
			f.Fatalf("got %+v", got)
		}
	}
	own := analystAccount("ana", f.limit(budget.Pure, "1", ""))
	kept := func(rho int64) budget.ReservationID {
		f.Helper()
		id := f.reserve(f.charge(pure(10), own))
		vector := budget.Shared{Charge: id, Dataset: dataset, Question: question, Rho: gaussian(rho).Rho,
			Vector: []byte(`{"of":"` + string(id) + `"}`)}
		if err := shares.Keep(f.Context(), vector); err != nil {
			f.Fatal(err)
		}
		if err := shares.Keep(f.Context(), vector); err == nil {
			f.Fatal("a charge has two vectors")
		}
		return id
	}
	best("")
	first := kept(5)
	best("") // it may still be voided
	f.settle(first, pure(10))
	best(first)

	voided := kept(9)
	if err := f.ledger.Void(f.Context(), voided); err != nil {
		f.Fatal(err)
	}
	best(first)

	expired, running := kept(6), kept(7)
	best(first)
	if err := f.ledger.Expire(f.Context(), expired); err != nil {
		f.Fatal(err)
	}
	best(expired)
	less := kept(4)
	f.settle(less, pure(10))
	best(expired)
	f.settle(running, pure(10))
	best(running)
	again := kept(7)
	f.settle(again, pure(10))
	best(min(running, again))

	for _, other := range []struct {
		dataset  string
		question [32]byte
	}{{"other", question}, {dataset, [32]byte{2}}} {
		if got, err := shares.Best(f.Context(), other.dataset, other.question); err != nil || got != nil {
			f.Fatalf("%+v: %+v, %v", other, got, err)
		}
	}
	refusesVectors(f, shares, first)
}

// refusesVectors: what is not complete, too long, or of no charge is not kept.
func refusesVectors(f *fixture, shares budget.Shares, first budget.ReservationID) {
	f.Helper()
	for name, v := range map[string]budget.Shared{
		"of no charge":      {Dataset: dataset, Rho: 1, Vector: []byte("{}")},
		"of unknown charge": {Charge: "nobody", Dataset: dataset, Rho: 1, Vector: []byte("{}")},
		"of no dataset":     {Charge: first, Rho: 1, Vector: []byte("{}")},
		"without accuracy":  {Charge: first, Dataset: dataset, Vector: []byte("{}")},
		"empty":             {Charge: first, Dataset: dataset, Rho: 1},
		"too long":          {Charge: first, Dataset: dataset, Rho: 1, Vector: make([]byte, budget.MaxShared+1)},
	} {
		if err := shares.Keep(f.Context(), v); err == nil {
			f.Errorf("a vector %s is kept", name)
		}
	}
}
