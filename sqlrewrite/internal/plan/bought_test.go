package plan_test

import (
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"

	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite/internal/pipeline"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/rewritetest"
	"noisegate.example/sqlrewrite/internal/sqlprint"
)

// boughtRows gives what the statements of a question return, in order, and the arguments with which they ran. Each has one row.
func boughtRows(statements []sqlprint.Statement, values [][]int64, ran *[][]any) plan.Rows {
	return func(yield func(plan.ExactRow, error) bool) {
		for i, s := range statements {
			if s.Bought != nil {
				var err error
				if s, err = s.Bought(); err != nil {
					yield(plan.ExactRow{}, err)
					return
				}
			}
			*ran = append(*ran, s.Args)
			row := plan.ExactRow{Part: i}
			for _, v := range values[i] {
				row.Values = append(row.Values, mechanisms.SealInt64(v))
			}
			if !yield(row, nil) {
				return
			}
		}
	}
}

// A statement takes the value that was released before it, within its bounds; NULL of no rows. Its text, its claim and the price are what
// they were before. A release that was made with another value than the one that is found is released again.
func TestValuesAreReleasedFirst(t *testing.T) {
	snapshot, o := rewritetest.TownSnapshot(t), rewritetest.Sharp()
	made := func(sql string) *plan.Plan {
		p, err := pipeline.Rewrite(sql, snapshot, o)
		if err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
		return p
	}
	const sql = "SELECT count(*) FROM people WHERE age > (SELECT avg(age) FROM people)"
	for _, c := range []struct {
		sum, rows   int64 // less the middle of the bounds, 50
		value, some string
	}{{300, 10, "80", "true"}, {-1, 4, "49.75", "true"}, {9000, 10, "100", "true"}, {-9000, 10, "0", "true"}, {0, 0, "", "false"}} {
		p := made(sql)
		loss, ran, s := p.Loss(), [][]any(nil), rewritetest.FixedSampler(t)
		draws := p.Draw(s)
		statements := p.Statements(draws)
		released, err := p.ReleaseRows(s, draws, boughtRows(statements, [][]int64{{c.sum, c.rows}, {5}}, &ran))
		if err != nil {
			t.Fatal(err)
		}
		got := fmt.Sprint(ran[1][1])
		if value, ok := new(big.Rat).SetString(fmt.Sprint(ran[1][0])); got != c.some || !ok ||
			c.value != "" && near(value, c.value) != nil || loss != p.Loss() {
			t.Errorf("%d of %d: %v, want %s", c.sum, c.rows, ran[1], c.value)
		}
		if taken := released.Blocks[1].Bought; (taken[0] == nil) != (c.value == "") {
			t.Errorf("%d of %d: %v", c.sum, c.rows, taken)
		}
		found := released.Fresh()
		if whole := p.Given(found); whole.NeedsData() {
			t.Errorf("%d of %d: %v is not found again", c.sum, c.rows, released.Blocks[1].Bought)
		}
		other := *found[1]
		other.Bought = []*string{new("33")}
		if rest := p.Given([]*plan.Released{found[0], &other}); rest.Loss() != found[1].Plan.Loss() {
			t.Errorf("with another value it costs %v", rest.Loss())
		}
		if rest := p.Given([]*plan.Released{nil, found[1]}); rest.Loss() != loss {
			t.Errorf("without the value it costs %v", rest.Loss())
		}
	}
}

// near is an error where a number is more than 0.1 from a text.
func near(v *big.Rat, text string) error {
	want, _ := new(big.Rat).SetString(text)
	if d := new(big.Rat).Sub(v, want); d.Abs(d).Cmp(big.NewRat(1, 10)) > 0 {
		return fmt.Errorf("%s is not %s", v.FloatString(3), text)
	}
	return nil
}

// Releases that take different values, or values of different releases, have different names.
func TestNamesSayWhichValuesAreTaken(t *testing.T) {
	snapshot := rewritetest.TownSnapshot(t)
	names := map[[32]byte]string{}
	for _, value := range []string{"(SELECT avg(age) FROM people)",
		"(SELECT avg(age) FROM people WHERE sex = 'Male')", "(SELECT max(age) FROM people)",
		"(SELECT count(*) FROM people)", "(SELECT count(age) FROM people WHERE age > (SELECT avg(age) FROM people))"} {
		for _, price := range []string{"1", "2"} {
			o := rewritetest.TownOptions(price)
			p, err := pipeline.Rewrite("SELECT count(*) FROM people WHERE age > "+value, snapshot, o)
			if err != nil {
				t.Fatal(err)
			}
			blocks := p.Different()
			name := blocks[len(blocks)-1].ReleaseIdentity()
			if was := names[name]; was != "" {
				t.Errorf("%s at %s has the name of %s", value, price, was)
			}
			names[name] = value + " at " + price
			other := strings.ReplaceAll(value, "age)", "people.age)")
			same, err := pipeline.Rewrite("SELECT count(*) AS n FROM people p WHERE p.age > "+other, snapshot, o)
			if err != nil {
				t.Fatal(err)
			}
			if others := same.Different(); !slices.Equal(nameOf(others), nameOf(blocks)) {
				t.Errorf("%s: another spelling has other names", value)
			}
		}
	}
}

func nameOf(blocks []*plan.Plan) (names [][32]byte) {
	for _, b := range blocks {
		names = append(names, b.ReleaseIdentity())
	}
	return names
}
