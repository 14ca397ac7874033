package budget

import (
	"context"
	"errors"

	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
)

// Shared is what was released of one question, for those who ask it at another price. It is an answer in another form: noisy, paid for,
// and so public as far as privacy goes.
type Shared struct {
	Charge   ReservationID // that paid for the newest part of it
	Dataset  string
	Question [32]byte           // identity of the question at any price, with the version of the data
	Rho      mechanisms.PicoRho // of all its parts together: the more, the more accurate. Positive.
	Vector   []byte             // JSON, at most MaxShared bytes; the ledger does not look into it
}

// MaxShared is how long a vector may be that is kept.
const MaxShared = 1 << 20

// Shares keeps released vectors beside the ledger. Implementations are safe for concurrent use by several processes.
//
// What is charged does not depend on them: whatever Best gives, the charge for a new release names the ρ of that release. A vector that
// is lost makes the next answer dearer, one that was forged makes it wrong; neither makes it less private.
type Shares interface {
	// Keep stores the vector of a charge that was reserved, before the charge is settled. A charge has one.
	Keep(context.Context, Shared) error
	// Best is the most accurate vector of a question, or of one that has several identities, whose charge is settled or expired: it counts
	// as spent for good. That of an open Charge is not given, because it may still be voided. Nil: there is none.
	Best(ctx context.Context, dataset string, question ...[32]byte) (*Shared, error)
}

// Check refuses what is not complete, or too long.
func (v Shared) Check() error {
	if v.Charge == "" || v.Dataset == "" || v.Rho <= 0 || len(v.Vector) == 0 || len(v.Vector) > MaxShared {
		return fault.Internal(errors.New("budget: a vector to be shared is not complete, or too long"))
	}
	return nil
}
