package budgettest

import (
	"strconv"
	"time"

	"noisegate.example/budget"
)

// Released values are given once their charge counts for good: settled, or expired as that of a gateway that died after it had stored
// them. Those of others are given to nobody, but where they are shared.
func testReleasedValues(f *fixture) {
	values, ok := f.ledger.(budget.ReleasedValues)
	if !ok {
		f.Fatal("the ledger keeps no released values")
	}
	first, second := [32]byte{1}, [32]byte{2}
	ana, bob := analystAccount("ana", f.limit(budget.Pure, "1", "")), analystAccount("bob", f.limit(budget.Pure, "1", ""))
	keep := func(of budget.Account, identity [32]byte, shared bool) budget.ReservationID {
		f.Helper()
		c := f.charge(pure(10), of)
		c.Analyst = of.ID.Name
		id := f.reserve(c)
		v := budget.Released{Charge: id, Dataset: dataset, Analyst: of.ID.Name, Shared: shared, Identity: identity,
			Values: []byte(`{"of":"` + string(id) + `"}`)}
		if err := values.KeepReleased(f.Context(), v); err != nil {
			f.Fatal(err)
		}
		if err := values.KeepReleased(f.Context(), v); err == nil {
			f.Fatal("a charge has released something twice")
		}
		return id
	}
	kept := func(of budget.Account, identity [32]byte) budget.ReservationID { return keep(of, identity, true) }
	find := func(l budget.Lookup, want budget.ReservationID) {
		f.Helper()
		all, err := values.Find(f.Context(), l)
		if err != nil {
			f.Fatal(err)
		}
		got := all.Exact[0]
		switch {
		case want == "" && got != nil || want != "" && (got == nil || got.Charge != want):
			f.Fatalf("%+v: found %+v, want that of %q", l, got, want)
		case got != nil && (got.Dataset != dataset || string(got.Values) != `{"of":"`+string(want)+`"}` || got.At.IsZero()):
			f.Fatalf("found %+v", got)
		}
	}
	own := func(identities ...[32]byte) budget.Lookup {
		return budget.Lookup{Dataset: dataset, Analyst: "ana", Identities: [][][32]byte{identities}}
	}
	shared := func(identities ...[32]byte) budget.Lookup {
		l := own(identities...)
		l.Shared = true
		return l
	}
	find(own(first), "")
	voided, expired := kept(ana, first), kept(ana, first)
	find(own(first), "") // both may still be voided
	if err := f.ledger.Void(f.Context(), voided); err != nil {
		f.Fatal(err)
	}
	if err := f.ledger.Expire(f.Context(), expired); err != nil {
		f.Fatal(err)
	}
	find(own(first), expired)
	later := kept(ana, first)
	f.settle(later, pure(10))
	find(own(first), min(expired, later))

	f.settle(keep(bob, second, false), pure(10)) // before releases were shared: nobody else's for good
	find(shared(second), "")
	others := kept(bob, second)
	f.settle(others, pure(10))
	find(own(second), "")
	find(own(), "")
	find(shared(second), others)
	find(shared(second, first), min(expired, later)) // one's own before that of others
	mine := kept(ana, second)
	f.settle(mine, pure(10))
	find(shared(second), mine)
	find(own(second, first), mine)
	find(own(first, second), min(expired, later))
	keptOfSeveral(f, values, ana)
	latestVersions(f, values, ana, bob)
	elsewhere := own(first)
	elsewhere.Dataset = "other"
	find(elsewhere, "")
	refusesValues(f, values, mine)
}

// keptOfSeveral: each release of a charge is found by its name, in its place.
func keptOfSeveral(f *fixture, values budget.ReleasedValues, of budget.Account) {
	f.Helper()
	id := f.reserve(f.charge(pure(10), of))
	for i := range byte(3) {
		v := budget.Released{Charge: id, Dataset: dataset, Analyst: of.ID.Name, Identity: [32]byte{3, i}, Values: []byte{'0' + i}}
		if err := values.KeepReleased(f.Context(), v); err != nil {
			f.Fatal(err)
		}
	}
	f.settle(id, pure(10))
	all, err := values.Find(f.Context(), budget.Lookup{Dataset: dataset, Analyst: of.ID.Name,
		Identities: [][][32]byte{{{3, 2}}, nil, {{3, 9}}, {{3, 0}}, {{3, 9}, {3, 1}}}})
	if err != nil {
		f.Fatal(err)
	}
	for i, want := range []string{"2", "", "", "0", "1"} {
		if got := all.Exact[i]; (got == nil) != (want == "") || got != nil && (got.Charge != id || string(got.Values) != want) {
			f.Errorf("place %d: found %+v, want %q", i, got, want)
		}
	}
}

// latestVersions: a look-up finds, among all analysts' versions of a release, the latest that counts for good and may be given.
func latestVersions(f *fixture, values budget.ReleasedValues, ana, bob budget.Account) {
	f.Helper()
	series, other := [32]byte{4}, [32]byte{5}
	day := func(n int) time.Time { return time.Date(2026, 11, n, 6, 30, 0, 123_456_000, time.UTC) }
	kept := 0
	keep := func(of budget.Account, version budget.Version, shared bool) budget.ReservationID {
		f.Helper()
		c := f.charge(pure(10), of)
		c.Analyst = of.ID.Name
		id := f.reserve(c)
		kept++
		if err := values.KeepReleased(f.Context(), budget.Released{Charge: id, Dataset: dataset, Analyst: of.ID.Name, Shared: shared,
			Identity: [32]byte{6, byte(kept)}, Values: []byte("{}"), Version: &version}); err != nil {
			f.Fatal(err)
		}
		return id
	}
	version := func(series [32]byte, n int) budget.Version {
		return budget.Version{Series: series, AsOf: day(n), Name: "version " + strconv.Itoa(n)}
	}
	find := func(shared bool, until time.Time, want budget.ReservationID, n int, names ...[32]byte) {
		f.Helper()
		all, err := values.Find(f.Context(), budget.Lookup{Dataset: dataset, Analyst: "ana", Shared: shared, Until: until,
			Series: [][][32]byte{nil, names}})
		if err != nil {
			f.Fatal(err)
		}
		got := all.Latest[1]
		switch {
		case want == "" && got != nil || want != "" && (got == nil || got.Charge != want):
			f.Fatalf("until %s: found %+v, want that of %q", until, got, want)
		case got != nil && (got.Version == nil || !got.Version.AsOf.Equal(day(n)) || got.Version.Name != "version "+strconv.Itoa(n) ||
			got.At.IsZero() || string(got.Values) != "{}"):
			f.Fatalf("found %+v of version %+v", got, got.Version)
		}
	}
	any := time.Time{}
	settled := func(of budget.Account, version budget.Version, shared bool) budget.ReservationID {
		id := keep(of, version, shared)
		f.settle(id, pure(10))
		return id
	}
	second := settled(ana, version(series, 2), false)
	first := settled(ana, version(series, 1), false) // released later, of an earlier version
	open := keep(ana, version(series, 3), false)
	find(false, any, second, 2, series)
	find(false, day(2), second, 2, series)
	find(false, day(2).Add(-time.Microsecond), first, 1, series)
	find(false, day(1).Add(-time.Microsecond), "", 0, series)
	find(false, any, "", 0, other)
	find(false, any, "", 0, [32]byte{6, 1}) // its identity is no series
	if err := f.ledger.Expire(f.Context(), open); err != nil {
		f.Fatal(err)
	}
	find(false, any, open, 3, series)
	settled(bob, version(series, 9), false)
	theirs, mine := settled(bob, version(series, 4), true), settled(ana, version(other, 4), false)
	find(false, any, open, 3, series)
	find(true, any, theirs, 4, series)
	find(true, any, mine, 4, series, other) // of one version the analyst's own
	find(true, day(3), open, 3, series, other)
}

// refusesValues: what is not complete, too long, or of no charge is not kept.
func refusesValues(f *fixture, values budget.ReleasedValues, first budget.ReservationID) {
	f.Helper()
	for name, v := range map[string]budget.Released{
		"of no charge":      {Dataset: dataset, Analyst: "ana", Values: []byte("{}")},
		"of unknown charge": {Charge: "nobody", Dataset: dataset, Analyst: "ana", Values: []byte("{}")},
		"of no dataset":     {Charge: first, Analyst: "ana", Values: []byte("{}")},
		"of nobody":         {Charge: first, Dataset: dataset, Values: []byte("{}")},
		"empty":             {Charge: first, Dataset: dataset, Analyst: "ana"},
		"of no time": {Charge: first, Dataset: dataset, Analyst: "ana", Values: []byte("{}"), Identity: [32]byte{7},
			Version: &budget.Version{Name: "x"}},
		"of no name": {Charge: first, Dataset: dataset, Analyst: "ana", Values: []byte("{}"), Identity: [32]byte{7},
			Version: &budget.Version{AsOf: time.Unix(1, 0)}},
		"too long":      {Charge: first, Dataset: dataset, Analyst: "ana", Values: make([]byte, budget.MaxReleased+1)},
		"of negative ρ": {Charge: first, Dataset: dataset, Analyst: "ana", Values: []byte("{}"), Rho: -1},
		"too long for a vector": {Charge: first, Dataset: dataset, Analyst: "ana", Values: make([]byte, budget.MaxShared+1), Rho: 1,
			Identity: [32]byte{8}},
		"as a vector of unknown charge": {Charge: "nobody", Dataset: dataset, Analyst: "ana", Values: []byte("{}"), Rho: 1},
	} {
		if err := values.KeepReleased(f.Context(), v); err == nil {
			f.Errorf("values %s are kept", name)
		}
	}
}
