package budget

import (
	"errors"

	"noisegate.example/internal/fault"
)

// Import says that votes are read from somewhere into a version of an ensemble. An import shows its author whether the source holds votes,
// so the ledger records it, also when it fails.
type Import struct {
	Dataset, Ensemble string
	Version           int64
	Source            string // a table or view of the protected database, or "a file"
}

// Check refuses an import that does not say of what, from where and by whom.
func (i Import) Check(by string) error {
	if by == "" || i.Dataset == "" || i.Ensemble == "" || i.Version < 1 || i.Source == "" {
		return fault.Internal(errors.New("budget: an import names a dataset, a version, a source and who does it"))
	}
	return nil
}
