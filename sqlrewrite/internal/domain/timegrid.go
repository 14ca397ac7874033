package domain

import (
	"math/big"
	"time"

	"noisegate.example/catalog"
)

// ClockSteps are steps of time in the unit of a type.
func ClockSteps(t catalog.Type) []*big.Rat {
	const day = int64(24 * time.Hour / time.Microsecond)
	days := []int64{1, 2, 7, 14, 30, 100, 365, 1000, 10_000}
	var steps []*big.Rat
	if t != catalog.Date {
		for _, s := range []time.Duration{time.Microsecond, time.Millisecond, time.Second, time.Minute, 5 * time.Minute, 15 * time.Minute,
			time.Hour, 6 * time.Hour} {
			steps = append(steps, big.NewRat(s.Microseconds(), 1))
		}
		for i := range days {
			days[i] *= day
		}
	}
	for _, d := range days {
		steps = append(steps, big.NewRat(d, 1))
	}
	return steps
}
