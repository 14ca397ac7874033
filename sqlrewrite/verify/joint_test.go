package verify

import (
	"math/big"
	"os"
	"strings"
	"testing"
)

// Sums of products that move by more than is claimed of them together are refused, and their sound twins are proven.
func TestUnsafeJointSums(t *testing.T) {
	text, err := os.ReadFile("testdata/unsafe/joint.txt")
	if err != nil {
		t.Fatal(err)
	}
	on, pins := town()
	counts := map[bool]int{}
	for paragraph := range strings.SplitSeq(string(text), "\n\n") {
		head, body, _ := strings.Cut(strings.TrimSpace(paragraph), "\n")
		words := strings.Fields(head)
		if len(words) < 3 || words[0] != "ok" && words[0] != "no" {
			continue
		}
		var numbers []*big.Rat
		for _, w := range words[1:] {
			n, ok := new(big.Rat).SetString(w)
			if !ok {
				t.Fatal(head)
			}
			numbers = append(numbers, n)
		}
		counts[words[0] == "ok"]++
		sql, args := expand(body)
		c := Claim{Groups: big.NewInt(1), Pins: pins, Joint: []Joint{{Weights: numbers[1:], L2Squared: numbers[0]}}}
		for i := range numbers[1:] {
			c.PerGroup = append(c.PerGroup, new(big.Int).Lsh(big.NewInt(1), 60))
			c.Joint[0].Columns = append(c.Joint[0].Columns, i)
		}
		plain := c
		if plain.Joint = nil; !strings.Contains(body, `FROM ONLY "public"."visits"`) {
			if err := Statement(sql, args, on, plain); err != nil {
				t.Errorf("without the joint claim: %s: %v", body, err)
			}
		}
		err := Statement(sql, args, on, c)
		if (err == nil) != (words[0] == "ok") {
			t.Errorf("%s: %s: %v", head, body, err)
		}
		if words[0] != "ok" {
			continue
		}
		for name, wrong := range map[string]Joint{
			"a column twice":    {Columns: make([]int, len(numbers)-1), Weights: numbers[1:], L2Squared: numbers[0]},
			"no weight":         {Columns: c.Joint[0].Columns, Weights: numbers[2:], L2Squared: numbers[0]},
			"a column too many": {Columns: append([]int{len(numbers)}, c.Joint[0].Columns[1:]...), Weights: numbers[1:], L2Squared: numbers[0]},
			"a negative weight": {Columns: c.Joint[0].Columns, Weights: append([]*big.Rat{big.NewRat(-1, 1)}, numbers[2:]...),
				L2Squared: numbers[0]},
			"no bound": {Columns: c.Joint[0].Columns, Weights: numbers[1:]},
		} {
			bad := c
			bad.Joint = []Joint{wrong}
			if Statement(sql, args, on, bad) == nil {
				t.Errorf("%s is proven: %s", name, body)
			}
		}
	}
	t.Logf("%d unsafe, %d safe", counts[false], counts[true])
}

// A histogram has several numbers in a group, and what is derived is how far one of them moves, or all: the vector of them has no bound.
func TestVectorsOfHistogramsAreRefused(t *testing.T) {
	on, pins := town()
	sql, args := expand(`SELECT u.x::@text, @sum(CASE WHEN u.n > «1»::bigint THEN «1»::bigint ELSE u.n END)::@text FROM (SELECT v.person_id AS unit, ` +
		`v.ward AS x, @count(*) AS n FROM ONLY "public"."visits" AS v WHERE v.person_id IS NOT NULL GROUP BY v.person_id, v.ward) AS u ` +
		`WHERE u.x IS NOT NULL GROUP BY u.x`)
	one := big.NewInt(1)
	c := Claim{Histogram: Each, Groups: one, PerGroup: []*big.Int{one}, Pins: pins}
	if err := Statement(sql, args, on, c); err != nil {
		t.Fatal(err)
	}
	for name, wrong := range map[string]Claim{
		"L1 and L2":     {Norms: []Norm{{Columns: []int{0}, L1: one, L2Squared: one}}},
		"a spread":      {Spread: []*big.Int{one}},
		"a joint bound": {Joint: []Joint{{Columns: []int{0}, Weights: []*big.Rat{big.NewRat(1, 1)}, L2Squared: big.NewRat(1, 1)}}},
	} {
		bad := c
		bad.Norms, bad.Spread, bad.Joint = wrong.Norms, wrong.Spread, wrong.Joint
		if Statement(sql, args, on, bad) == nil {
			t.Errorf("%s of a histogram is proven: a person in three wards adds 3 to its numbers", name)
		}
	}
}
