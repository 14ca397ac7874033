package verify

import (
	"errors"
	"math/big"
	"slices"
	"strings"
	"testing"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/internal/steps"
	"noisegate.example/sqlrewrite/verify/internal/tree"
	"noisegate.example/sqlrewrite/verify/internal/value"
)

// What is proven of any text in place of an argument is proven of each text, but for those that are refused as they are: texts that
// PostgreSQL would not read as the type.
func TestAnyTextIsEachText(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	texts := []string{"0", "-1", "37", "2147483647", "-2147483648", "9223372036854775807", "1.5", "1e9", "NaN", "Infinity", "", "abc", `%_\`, "true",
		"2026-02-28", "2026-11-28 12:00:00+00", "0001-01-01", "00000000-0000-0000-0000-000000000000"}
	replaced, proven := 0, 0
	for n, c := range corpus(t) {
		var places []int
		for i, a := range c.Args {
			if _, text := a.(string); text {
				places = append(places, i)
			}
		}
		parsed := parse(c.SQL) // once for all texts
		prove := func(arg func(int) any, mask []int) error {
			_, err := steps.Bounded(new(steps.Count), func(n *steps.Count) (_ Claim, err error) {
				defer tree.Caught(&err)
				claim := c.claim
				claim.steps = n
				return claim, derive(c.SQL, parsed, with(c.Args, mask, arg), c.on, claim).covers(claim)
			})
			return err
		}
		masks := [][]int{places}
		for _, i := range places {
			masks = append(masks, []int{i})
		}
		for _, mask := range masks {
			replaced++
			if prove(func(int) any { return value.Any{} }, mask) != nil {
				continue
			}
			proven++
			for k := range texts {
				err := prove(func(i int) any { return texts[(k+i*(n+1))%len(texts)] }, mask)
				if err != nil && !notRead(err) {
					t.Errorf("proven for any text, and not for one: %v\n%s", err, c.SQL)
				}
			}
		}
	}
	if t.Logf("%d of %d replacements are proven", proven, replaced); proven < replaced/10 {
		t.Errorf("%d of %d replacements by any text are proven", proven, replaced)
	}
}

// notRead reports a refusal of a text as it is.
func notRead(err error) bool {
	var refusal *Refusal
	return errors.As(err, &refusal) && (strings.Contains(refusal.Why, "a constant that is no whole number of its type") ||
		strings.Contains(refusal.Why, "a constant of many digits") || strings.Contains(refusal.Why, "a constant in single precision"))
}

// unsafeForAny reports whether what is refused is proven for any texts: of these the refused ones are some.
func unsafeForAny(sql string, args []any, on *catalog.Snapshot, c Claim, refused error) bool {
	var places []int
	for i, a := range args {
		if _, text := a.(string); text {
			places = append(places, i)
		}
	}
	return refused != nil && len(places) > 0 && !notRead(refused) &&
		Statement(sql, with(args, places, func(int) any { return value.Any{} }), on, c) == nil
}

// A unit's id is compared with no constant that somebody chose, nor with what is computed of one.
func TestAnyIsNobodysID(t *testing.T) {
	on, pins := town()
	on.Tables[0].Columns[0].Identifies = "person"
	for condition, proven := range map[string]bool{
		`"person_id" = $1::integer`:                                      false,
		`$1::integer < "person_id"`:                                      false,
		`"person_id" = @int4larger($1::integer, $1::integer)`:            false,
		`"person_id" = @int4larger($1::integer, NULLIF($1::integer, 5))`: false,
		`"age" < $1::integer`:                                            true,
		`$1::integer = "age"`:                                            true,
	} {
		sql, _ := expand(`SELECT @count(*)::@text FROM ONLY "public"."people" WHERE (` + condition + `)`)
		c := Claim{Groups: big.NewInt(1), PerGroup: []*big.Int{big.NewInt(1)}, Pins: pins}
		if err := Statement(sql, []any{value.Any{}}, on, c); (err == nil) != proven {
			t.Errorf("%s of any text: %v", condition, err)
		}
		if err := Statement(sql, []any{int64(0)}, on, c); err != nil && !strings.Contains(condition, "NULLIF") {
			t.Errorf("%s of a number that changes: %v", condition, err)
		}
	}
}

func with(args []any, places []int, what func(int) any) []any {
	all := slices.Clone(args)
	for at, i := range places {
		all[i] = what(at)
	}
	return all
}

// An argument that changes has one type: PostgreSQL would cast it row by row, and fail on the first row that needs the smaller type.
func TestChangingArgumentsHaveOneType(t *testing.T) {
	on, pins := town()
	for with, proven := range map[string]bool{"$1::bigint": true, "$1::integer": false} {
		sql := `SELECT pg_catalog.count(*)::pg_catalog.text FROM ONLY "public"."people" AS p WHERE p.ward > $1::bigint OR p.age > ` + with
		_, err := Derive(sql, []any{int64(1 << 40)}, on, Claim{Pins: pins})
		if (err == nil) != proven {
			t.Errorf("%s: %v", with, err)
		}
	}
}
