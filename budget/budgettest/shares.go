package budgettest

import "noisegate.example/budget"

// A vector is given to others once its charge counts for good: settled, or expired as that of a gateway that died after it had stored
// the vector. The one with the most ρ is the best.
func testShares(f *fixture) {
	values, question := f.ledger.(budget.ReleasedValues), [32]byte{1}
	find := func(l budget.Lookup) *budget.Found {
		f.Helper()
		l.Analyst = "bob"
		all, err := values.Find(f.Context(), l)
		if err != nil {
			f.Fatal(err)
		}
		return all.Best
	}
	asked := budget.Lookup{Dataset: dataset, Shared: true, Questions: [][32]byte{{3}, question}}
	best := func(want budget.ReservationID) {
		f.Helper()
		got := find(asked)
		switch {
		case want == "" && got != nil || want != "" && (got == nil || got.Charge != want):
			f.Fatalf("the best is %+v, want that of %q", got, want)
		case got != nil && (got.Dataset != dataset || got.Identity != question || got.Analyst != "ana" || got.At.IsZero() ||
			string(got.Values) != `{"of":"`+string(want)+`"}`):
			f.Fatalf("got %+v", got)
		}
	}
	own := analystAccount("ana", f.limit(budget.Pure, "1", ""))
	kept := func(rho int64) budget.ReservationID {
		f.Helper()
		id := f.reserve(f.charge(pure(10), own))
		vector := budget.Released{Charge: id, Dataset: dataset, Analyst: "ana", Shared: true, Identity: question, Rho: gaussian(rho).Rho,
			Values: []byte(`{"of":"` + string(id) + `"}`)}
		if err := values.KeepReleased(f.Context(), vector); err != nil {
			f.Fatal(err)
		}
		if err := values.KeepReleased(f.Context(), vector); err == nil {
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

	for _, other := range []budget.Lookup{
		{Dataset: "other", Shared: true, Questions: [][32]byte{question}},
		{Dataset: dataset, Shared: true, Questions: [][32]byte{{2}}},
		{Dataset: dataset, Questions: [][32]byte{question}},
	} {
		if got := find(other); got != nil {
			f.Fatalf("%+v: %+v", other, got)
		}
	}
	one, err := values.Find(f.Context(), budget.Lookup{Dataset: dataset, Analyst: "ana", Shared: true, Identities: [][][32]byte{{question}}})
	if err != nil || one.Exact[0] != nil {
		f.Fatalf("a vector is no release at its price: %+v, %v", one, err)
	}
}
