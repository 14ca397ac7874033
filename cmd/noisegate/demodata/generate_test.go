package demodata

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"testing"
)

func counts(people []Person, of func(Person) string) map[string]int {
	n := map[string]int{}
	for _, p := range people {
		n[of(p)]++
	}
	return n
}

// The published counts: an answer of the demo can be compared with the literature.
func TestPeopleHavePublishedCounts(t *testing.T) {
	people := People(DefaultRows)
	if len(people) != DefaultRows {
		t.Fatalf("%d people", len(people))
	}
	for _, c := range []struct {
		what  string
		table []weight
		of    func(Person) string
	}{
		{"marital status", maritalStatus, func(p Person) string { return p.MaritalStatus }},
		{"native country", append([]weight{{TheOne, 1}}, nativeCountry...), func(p Person) string { return p.NativeCountry }},
	} {
		got := counts(people, c.of)
		if len(got) != len(c.table) {
			t.Errorf("%s: %d values, want %d", c.what, len(got), len(c.table))
		}
		for _, w := range c.table {
			if got[w.value] != w.count {
				t.Errorf("%s: %d times %q, want %d", c.what, got[w.value], w.value, w.count)
			}
		}
	}
}

func TestOnePersonIsAlone(t *testing.T) {
	for _, n := range []int{MinRows, 10_000, DefaultRows, 50_000} {
		people := People(n)
		if got := counts(people, func(p Person) string { return p.NativeCountry })[TheOne]; got != 1 {
			t.Errorf("%d people: %d from %s", n, got, TheOne)
		}
		if got := len(counts(people, func(p Person) string { return p.MaritalStatus })); got != len(maritalStatus) {
			t.Errorf("%d people: %d marital statuses, want %d", n, got, len(maritalStatus))
		}
	}
}

// A change of these digests changes what README and docs show: do it on purpose.
func TestSamePeopleEverywhere(t *testing.T) {
	census := sha256.New()
	for _, p := range People(DefaultRows) {
		fmt.Fprintln(census, p)
	}
	visits := sha256.New()
	if err := Visits(DefaultRows, func(v Visit) error { _, err := fmt.Fprintln(visits, v); return err }); err != nil {
		t.Fatal(err)
	}
	const wantCensus, wantVisits = "95ab6dd5fff9977797bfa0e204cd3b4234a79c235871dc1d33a9d27c4c08b8c0",
		"7c2f71e8622ac106da99fc67b4572c2d01500514693ae9344de5676f4201ffb4"
	if got := hex.EncodeToString(census.Sum(nil)); got != wantCensus {
		t.Errorf("census digest %s", got)
	}
	if got := hex.EncodeToString(visits.Sum(nil)); got != wantVisits {
		t.Errorf("visits digest %s", got)
	}
}

// Margins that are drawn, not dealt, stay near Adult's; bounds of the demo's policy hold for all people.
func TestPeopleArePlausible(t *testing.T) {
	people := People(DefaultRows)
	var rich, men, ages, hours, noOccupation int
	for _, p := range people {
		if p.Age < 17 || p.Age > 90 || p.HoursPerWeek < 1 || p.HoursPerWeek > 99 || p.EducationNum < 1 || p.EducationNum > 16 ||
			p.CapitalGain < 0 || p.CapitalGain > 99999 || p.CapitalLoss < 0 || p.CapitalLoss > 4356 {
			t.Fatalf("out of range: %+v", p)
		}
		if (p.Relationship == "Husband" && p.Sex != "Male") || (p.Relationship == "Wife" && p.Sex != "Female") {
			t.Fatalf("contradiction: %+v", p)
		}
		ages += int(p.Age)
		hours += int(p.HoursPerWeek)
		if p.Income == ">50K" {
			rich++
		}
		if p.Sex == "Male" {
			men++
		}
		if p.Occupation == "" {
			noOccupation++
		}
	}
	near := func(what string, got, want, tolerance float64) {
		t.Helper()
		if got < want-tolerance || got > want+tolerance {
			t.Errorf("%s: %.3f, want %.3f ± %.3f", what, got, want, tolerance)
		}
	}
	n := float64(len(people))
	near("mean age", float64(ages)/n, 38.6, 1.5)
	near("mean hours", float64(hours)/n, 40.4, 1.5)
	near("share of men", float64(men)/n, 0.669, 0.01)
	near("share above 50K", float64(rich)/n, 0.241, 0.02)
	near("share without occupation", float64(noOccupation)/n, 0.0566, 0.005)
}

func TestVisits(t *testing.T) {
	perPerson := map[int32]int{}
	var total, outside int
	if err := Visits(DefaultRows, func(v Visit) error {
		perPerson[v.PersonID]++
		total++
		if v.Cents > 500_00 {
			outside++
		}
		if v.Day.Year() != 2025 || v.Cents <= 0 || int(v.ID) != total {
			t.Fatalf("odd visit: %+v", v)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if len(perPerson) != DefaultRows {
		t.Errorf("%d people came, want all", len(perPerson))
	}
	most := 0
	for _, n := range perPerson {
		most = max(most, n)
	}
	if most != MaxVisits {
		t.Errorf("most visits %d, want %d", most, MaxVisits)
	}
	if outside == 0 || outside > total/20 {
		t.Errorf("%d of %d amounts are above the policy's bound; want a few, so that clamping shows", outside, total)
	}
	t.Logf("%d visits, %d above the bound", total, outside)
}
