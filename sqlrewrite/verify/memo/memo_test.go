package memo

import (
	"errors"
	"math/big"
	"reflect"
	"slices"
	"testing"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/verify"
)

// full is a claim of which no field is empty.
func full() verify.Claim {
	return verify.Claim{
		Keys: 1, Histogram: verify.Together, Groups: big.NewInt(2), PerGroup: []*big.Int{big.NewInt(3)}, Spread: []*big.Int{big.NewInt(4)},
		Norms:       []verify.Norm{{Columns: []int{5}, L1: big.NewInt(6), L2Squared: big.NewInt(7)}},
		Joint:       []verify.Joint{{Columns: []int{8}, Weights: []*big.Rat{big.NewRat(9, 1)}, L2Squared: big.NewRat(10, 1)}},
		PairsPerRow: big.NewInt(11),
		Zones:       []string{"Asia/Tokyo"},
		Pins: []verify.Pin{{
			Schema: "s", Table: "t", OID: 12, Keys: [][]string{{"k"}}, MostRows: 13,
			Columns: []verify.PinnedColumn{{Name: "c", AttNum: 14, TypeOID: 15, TypMod: 16, NotNull: true, MostEqual: 17}},
			Checks:  []verify.Check{{Column: "d", Lo: 18, Hi: 19}},
		}},
	}
}

// Whatever differs in a claim is another proof: each field of [verify.Claim], however deep, is part of what is remembered. A field that
// somebody adds fails here until it is.
func TestEachFieldOfAClaimIsPartOfItsProof(t *testing.T) {
	claim := full()
	before := sum("SELECT 1", nil, claim)
	changes := 0
	changed := func(at string, undo func()) {
		t.Helper()
		changes++
		if sum("SELECT 1", nil, claim) == before {
			t.Errorf("%s is no part of what is remembered", at)
		}
		undo()
	}
	var visit func(v reflect.Value, at string)
	visit = func(v reflect.Value, at string) {
		switch x := v.Addr().Interface().(type) {
		case **big.Int:
			old := *x
			*x = new(big.Int).Add(old, big.NewInt(100))
			changed(at, func() { *x = old })
			*x = new(big.Int).Neg(old)
			changed(at+" negated", func() { *x = old })
			*x = nil
			changed(at+" not claimed", func() { *x = old })
			return
		case **big.Rat:
			old := *x
			*x = new(big.Rat).Inv(old)
			changed(at, func() { *x = old })
			return
		default: // below
		}
		switch v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				if f := v.Type().Field(i); f.IsExported() && f.Name != "Work" { // held against what is remembered
					visit(v.Field(i), at+"."+f.Name)
				}
			}
		case reflect.Slice:
			if v.Len() == 0 {
				t.Fatalf("%s is empty in the claim of this test", at)
			}
			visit(v.Index(0), at+"[0]")
			old := reflect.ValueOf(v.Interface())
			v.Set(reflect.Append(old, old.Index(0)))
			changed(at+" with one more", func() { v.Set(old) })
		case reflect.String:
			old := v.String()
			v.SetString(old + "x")
			changed(at, func() { v.SetString(old) })
		case reflect.Bool:
			v.SetBool(!v.Bool())
			changed(at, func() { v.SetBool(!v.Bool()) })
		default:
			old := reflect.ValueOf(v.Interface())
			v.Set(reflect.ValueOf(100).Convert(v.Type()))
			changed(at, func() { v.Set(old) })
		}
	}
	visit(reflect.ValueOf(&claim).Elem(), "Claim")
	if changes < 40 {
		t.Fatalf("%d changes were tried", changes)
	}
	if sum("SELECT 1", nil, claim) != before {
		t.Fatal("the test does not undo what it changes")
	}
}

// Of an argument that changes from run to run its type is remembered, of others their value; and no list is written like another.
func TestArgumentsArePartOfTheirProof(t *testing.T) {
	all := [][]any{nil, {nil}, {int64(1)}, {"a"}, {"b"}, {""}, {"a", "b"}, {[]string{"a", "b"}}, {[]string{"ab"}}, {[]string{"a"}, "b"}}
	for i, a := range all {
		for j, b := range all {
			if same := sum("SELECT 1", a, full()) == sum("SELECT 1", b, full()); same != (i == j) {
				t.Errorf("%#v and %#v are one proof: %v", a, b, same)
			}
		}
	}
	if sum("SELECT 1", []any{int64(1)}, full()) != sum("SELECT 1", []any{int64(2)}, full()) {
		t.Error("another seed is another proof")
	}
}

// A proof is remembered for its snapshot alone, a refusal never; a full memo starts anew.
func TestProofsAreRememberedAndRefusalsAreNot(t *testing.T) {
	var m Memo
	asked := 0
	proven := func() (verify.Work, error) { asked++; return verify.Work{}, nil }
	refused := func() (verify.Work, error) { asked++; return verify.Work{}, errors.New("refused") }
	on, other := &catalog.Snapshot{}, &catalog.Snapshot{}
	for i, step := range []struct {
		key   proof
		prove func() (verify.Work, error)
		asked int
		err   bool
	}{
		{proof{on: on}, refused, 1, true},
		{proof{on: on}, refused, 2, true},
		{proof{on: on}, proven, 3, false},
		{proof{on: on}, refused, 3, false},
		{proof{on: other}, refused, 4, true},
		{proof{on: on, sum: [32]byte{1}}, refused, 5, true},
	} {
		if _, err := m.once(step.key, step.prove); (err != nil) != step.err || asked != step.asked {
			t.Fatalf("step %d: %v after %d proofs, want %d", i, err, asked, step.asked)
		}
	}
	for i := range mostProofs {
		_, _ = m.once(proof{on: other, sum: [32]byte{byte(i), byte(i >> 8)}}, proven)
	}
	if n := len(m.proven); n > mostProofs {
		t.Fatalf("%d proofs are remembered, want at most %d", n, mostProofs)
	}
}

// What a statement takes is remembered, and each claim about it is held against that.
func TestWorkIsHeldAgainstTheClaim(t *testing.T) {
	var m Memo
	on, claim := &catalog.Snapshot{}, full()
	work := func(row, unit, all int64) verify.Work {
		return verify.Work{RowWork: big.NewInt(row), UnitWork: big.NewInt(unit), AllWork: big.NewInt(all)}
	}
	taken := func() (verify.Work, error) { return work(10, 20, 30), nil }
	if _, err := m.once(proof{on, sum("SELECT 1", nil, claim)}, taken); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		row, unit, all int64
		proven         bool
	}{{10, 20, 30, true}, {11, 21, 31, true}, {9, 20, 30, false}, {10, 19, 30, false}, {10, 20, 29, false}} {
		claim.Work = work(step.row, step.unit, step.all)
		if err := m.Statement("SELECT 1", nil, on, claim); (err == nil) != step.proven {
			t.Errorf("a row of %d, a unit of %d and %d ns in all: %v", step.row, step.unit, step.all, err)
		}
	}
}

func BenchmarkRemembered(b *testing.B) {
	var m Memo
	on := &catalog.Snapshot{}
	sql := "SELECT count(*)::text FROM (SELECT t.c FROM s.t AS t WHERE t.c = $1::text OFFSET 0) AS kept"
	args, claim := []any{"a"}, full()
	done := func() (verify.Work, error) {
		return verify.Work{RowWork: new(big.Int), UnitWork: new(big.Int), AllWork: new(big.Int)}, nil
	}
	if _, err := m.once(proof{on, sum(sql, args, claim)}, done); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := m.Statement(sql, args, on, claim); err != nil {
			b.Fatal(err)
		}
	}
}

// Texts that a proof does not need are found one by one, and no more proofs are tried than there are texts, and one.
func TestTextsThatProofsNeed(t *testing.T) {
	args := []any{"a", int64(1), "b", []string{"c"}, "d", nil}
	for name, need := range map[string][]int{"none": nil, "first": {0}, "last": {4}, "two": {0, 2}, "all": {0, 2, 4}} {
		tried := 0
		needed := needs(args, func(args []any) bool {
			tried++
			for _, i := range need {
				if args[i] == (verify.Any{}) {
					return false
				}
			}
			return true
		})
		for i := range args {
			if _, text := args[i].(string); text && needed[i] != slices.Contains(need, i) {
				t.Errorf("%s: argument %d is needed: %v", name, i, needed[i])
			}
		}
		if tried > 4 {
			t.Errorf("%s: %d proofs were tried", name, tried)
		}
	}
	many := slices.Repeat([]any{"a"}, 100)
	tried := 0
	needs(many, func([]any) bool { tried++; return false })
	if tried > 1+mostTried {
		t.Errorf("%d proofs were tried", tried)
	}
}

// A refusal is asked for each time, and a proof for any texts is none for another claim.
func TestFormsOfOtherClaims(t *testing.T) {
	var m Memo
	on := &catalog.Snapshot{}
	for range generalAfter + 2 {
		for _, k := range []string{"1", "2", "3"} {
			if err := m.Statement("SELECT $1::text", []any{k}, on, full()); err == nil {
				t.Fatal("what is no aggregate is proven")
			}
		}
	}
	if len(m.proven) > 0 || len(m.forms) > 0 {
		t.Errorf("%d proofs and %d forms are remembered of refusals", len(m.proven), len(m.forms))
	}
}
