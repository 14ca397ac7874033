package verify

import (
	"encoding/hex"
	"encoding/json"
	"math/big"
	"os"
	"testing"

	"noisegate.example/catalog"
)

// proposed is a statement with a claim.
type proposed struct {
	id, SQL string
	Args    []any
	claim   Claim
	on      *catalog.Snapshot
}

// corpus are the golden statements of the rewriter, as they were when testdata/statements.jsonl was written.
func corpus(t testing.TB) []proposed { return read(t, "testdata/statements.jsonl") }

// read reads a file with a line for each statement, and one for a snapshot before the statements on it.
func read(t testing.TB, name string) []proposed {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var all []proposed
	var on *catalog.Snapshot
	for lines := json.NewDecoder(file); lines.More(); {
		var line struct {
			On *struct {
				*catalog.Snapshot
				Digest string
			}
			ID, SQL string
			Args    []any
			Claim   Claim
		}
		if err := lines.Decode(&line); err != nil {
			t.Fatal(err)
		}
		if line.On == nil {
			all = append(all, proposed{line.ID, line.SQL, arguments(line.Args), line.Claim, on})
			continue
		}
		on = line.On.Snapshot
		if _, err := hex.Decode(on.Digest[:], []byte(line.On.Digest)); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// arguments are those of a statement, from JSON: numbers change from one run to the next.
func arguments(list []any) []any {
	all := make([]any, len(list))
	for i, a := range list {
		switch a := a.(type) {
		case float64:
			all[i] = int64(a)
		case []any:
			texts := make([]string, len(a))
			for j, s := range a {
				texts[j] = s.(string)
			}
			all[i] = texts
		default:
			all[i] = a
		}
	}
	return all
}

// The golden statements are proven, and none with a number less than what was derived.
func TestCorpus(t *testing.T) {
	less := func(n *big.Int) *big.Int { return new(big.Int).Sub(n, big.NewInt(1)) }
	tighter := 0
	for _, c := range corpus(t) {
		if err := Statement(c.SQL, c.Args, c.on, c.claim); err != nil {
			t.Errorf("%v\n%s", err, c.SQL)
			continue
		}
		got, err := Derive(c.SQL, c.Args, c.on, c.claim)
		if err != nil {
			t.Fatal(err)
		}
		if got.Groups.Cmp(c.claim.Groups) < 0 {
			tighter++
		}
		for i, n := range got.PerGroup {
			if n.Cmp(c.claim.PerGroup[i]) < 0 {
				tighter++
			}
		}
		for _, n := range c.claim.Norms {
			l1, l2 := got.Norm(n.Columns)
			for _, derived := range [][2]*big.Int{{l1, n.L1}, {l2, n.L2Squared}} {
				at := n.Columns[0]
				if got.Groups.Cmp(c.claim.Groups) == 0 && got.PerGroup[at].Cmp(c.claim.PerGroup[at]) == 0 && derived[0].Cmp(derived[1]) < 0 {
					tighter++
				}
			}
		}
		wrong := got
		wrong.Groups = less(got.Groups)
		if Statement(c.SQL, c.Args, c.on, wrong) == nil {
			t.Errorf("one group less is proven: %s", c.SQL)
		}
		for i := range got.PerGroup {
			wrong := got
			wrong.PerGroup = append([]*big.Int(nil), got.PerGroup...)
			wrong.PerGroup[i] = less(got.PerGroup[i])
			if Statement(c.SQL, c.Args, c.on, wrong) == nil {
				t.Errorf("value %d moves by one less: %s", i, c.SQL)
			}
		}
	}
	// What is claimed is what was derived when the corpus was written: a rule that derives less is noticed.
	if tighter > mostTighter {
		t.Errorf("%d numbers are derived below the claim, want at most %d", tighter, mostTighter)
	}
}

// mostTighter is how many numbers of the golden statements are claimed higher than they are.
const mostTighter = 2
