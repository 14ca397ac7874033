package machine

import (
	"fmt"

	"noisegate.example/budget"
	"noisegate.example/internal/fault"
)

// Past is an earlier charge of the same analyst under the same Idempotency-Key (byKey) or with the same fingerprint.
type Past struct {
	ByKey  bool
	Digest [32]byte // byKey: of the request that the key named
	State  State
	Stored *budget.Stored // when settled
}

// Resolve decides about a request from what came before it, the charge under its key first: the stored answer, a refusal, or
// (nil) that the request is a new one. A voided charge is as if it had never been.
func Resolve(c budget.Charge, before []Past) (*Past, error) {
	for _, p := range before {
		switch {
		case p.State == Voided:
		case p.ByKey && p.Digest != c.RequestDigest:
			return nil, fault.BudgetReplayMismatch()
		case p.State == Settled:
			return &p, nil
		case p.State == Open:
			return nil, fault.RequestInFlight()
		case p.State == Expired && p.ByKey:
			return nil, fault.BudgetLostAnswer()
		case p.State == Expired: // the question may be asked, and charged, again
		default:
			return nil, fault.Internal(fmt.Errorf("budget: a charge has the state %q", string(p.State)))
		}
	}
	return nil, nil
}
