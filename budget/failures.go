package budget

import (
	"errors"
	"time"

	"noisegate.example/internal/fault"
)

// FailurePeriod is how long a failure counts.
const FailurePeriod = 24 * time.Hour

// Reset says whose failures count no more.
type Reset struct {
	Dataset, Analyst string
}

// Check refuses a reset that names nobody.
func (r Reset) Check(by string) error {
	if by == "" || r.Dataset == "" || r.Analyst == "" {
		return fault.Internal(errors.New("budget: a reset names a dataset, an analyst and who does it"))
	}
	return nil
}
