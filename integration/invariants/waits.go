package invariants

import (
	"fmt"
	"slices"
	"time"
)

// Waits are how long it took, each time, until there were answers again. The median is what is promised: on a machine that runs other
// things as well, the longest one says more about them.
type Waits []time.Duration

// Within reports whether the median keeps a limit, and describes it and the longest wait.
func (w Waits) Within(limit time.Duration) (ok bool, text string) {
	if len(w) == 0 {
		return false, "never"
	}
	sorted := slices.Sorted(slices.Values(w))
	median, longest := sorted[len(sorted)/2], sorted[len(sorted)-1]
	return median <= limit, fmt.Sprintf("median %v, longest %v", median.Round(time.Millisecond), longest.Round(time.Millisecond))
}
