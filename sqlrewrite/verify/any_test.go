package verify

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// What is proven of any text in the place of an argument is proven of each text, but for those that are refused as they are: texts that
// PostgreSQL would not read as the type.
func TestAnyTextIsEachText(t *testing.T) {
	texts := []string{"0", "-1", "37", "2147483647", "-2147483648", "9223372036854775807", "1.5", "1e9", "NaN", "Infinity", "", "abc", `%_\`, "true",
		"2026-02-28", "2026-11-28 12:00:00+00", "0001-01-01", "00000000-0000-0000-0000-000000000000"}
	unread := []string{"no whole number of its type", "a constant of many digits"}
	replaced, proven := 0, 0
	for n, c := range corpus(t) {
		var places []int
		for i, a := range c.Args {
			if _, text := a.(string); text {
				places = append(places, i)
			}
		}
		masks := [][]int{places}
		for _, i := range places {
			masks = append(masks, []int{i})
		}
		for _, mask := range masks {
			replaced++
			if Statement(c.SQL, with(c.Args, mask, func(int) any { return Any{} }), c.on, c.claim) != nil {
				continue
			}
			proven++
			for k := range texts {
				err := Statement(c.SQL, with(c.Args, mask, func(i int) any { return texts[(k+i*(n+1))%len(texts)] }), c.on, c.claim)
				var refusal *Refusal
				if err != nil && !(errors.As(err, &refusal) && slices.ContainsFunc(unread, func(s string) bool { return strings.Contains(refusal.Why, s) })) {
					t.Errorf("proven for any text, and not for one: %v\n%s", err, c.SQL)
				}
			}
		}
	}
	if t.Logf("%d of %d replacements are proven", proven, replaced); proven < replaced/10 {
		t.Errorf("%d of %d replacements by any text are proven", proven, replaced)
	}
}

func with(args []any, places []int, what func(int) any) []any {
	all := slices.Clone(args)
	for at, i := range places {
		all[i] = what(at)
	}
	return all
}
