package released

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"noisegate.example/budget"
)

// Of releases that were each bought of some versions, those of the latest version that has all are found, after no more looks than there
// are versions, and none where no version has all.
func TestLatestVersionThatHasAll(t *testing.T) {
	const versions = 6
	r := rand.New(rand.NewPCG(35, 9))
	for range 2000 {
		bought := make([][versions]bool, 1+r.IntN(3)) // by place
		l, common := Lookup{}, -1
		for i := range bought {
			l.Series = append(l.Series, [][32]byte{{byte(i)}})
			for v := range versions {
				bought[i][v] = r.IntN(3) > 0
			}
		}
		for v := range versions {
			all := true
			for i := range bought {
				all = all && bought[i][v]
			}
			if all {
				common = v
			}
		}
		day := func(v int) time.Time { return time.Date(2026, 11, 1+v, 0, 0, 0, 0, time.UTC) }
		looks := 0
		look := func(_ context.Context, l budget.Lookup) (*budget.Earlier, error) {
			looks++
			e := &budget.Earlier{Latest: make([]*budget.Found, len(l.Series))}
			for i := range l.Series {
				for v := range versions {
					if bought[i][v] && (l.Until.IsZero() || !day(v).After(l.Until)) {
						e.Latest[i] = &budget.Found{Released: budget.Released{Version: &budget.Version{AsOf: day(v), Name: fmt.Sprint(v)}}}
					}
				}
			}
			return e, nil
		}
		first, _ := look(t.Context(), l.Lookup)
		latest, err := Finder{Look: look}.ofOneVersion(t.Context(), l, first.Latest)
		if err != nil || (latest == nil) != (common < 0) || looks > versions+1 {
			t.Fatalf("%v: found %v after %d looks, %v; want version %d", bought, latest, looks, err, common)
		}
		for _, found := range latest {
			if !found.Version.AsOf.Equal(day(common)) {
				t.Fatalf("%v: version %s, want %d", bought, found.Version.Name, common)
			}
		}
	}
}
