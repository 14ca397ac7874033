package sqlrewrite

import "testing"

// An aggregate that needs an argument and has a star is refused, also over the rows of single people and as a value of public tables.
func TestStarOfOtherAggregatesIsRefused(t *testing.T) {
	for _, f := range []string{"sum", "avg", "min", "max", "bool_or", "bool_and"} {
		func() {
			defer func() {
				if p := recover(); p != nil {
					t.Errorf("%s(*): %v", f, p)
				}
			}()
			text := "SELECT count(*) FROM people p JOIN (SELECT id, " + f + "(*) AS c FROM people GROUP BY id) g ON g.id = p.id"
			if _, err := Rewrite(text, townSnapshot(t), asked("0.5")); err == nil {
				t.Errorf("%s(*) is taken", f)
			}
		}()
	}
}
