package budget

import (
	"fmt"

	"noisegate/internal/fault"
)

// past is an earlier charge of the same analyst under the same Idempotency-Key (byKey) or with the same fingerprint.
type past struct {
	byKey  bool
	digest [32]byte // byKey: of the request that the key named
	state  state
	stored *Stored // when settled
}

// resolve decides about a request from what came before it, the charge under its key first: the stored answer, a refusal, or
// (nil) that the request is a new one. A voided charge is as if it had never been.
func resolve(c Charge, before []past) (*past, error) {
	for _, p := range before {
		switch {
		case p.state == voided:
		case p.byKey && p.digest != c.RequestDigest:
			return nil, fault.BudgetReplayMismatch()
		case p.state == settled:
			return &p, nil
		case p.state == open:
			return nil, fault.RequestInFlight()
		case p.state == expired && p.byKey:
			return nil, fault.BudgetLostAnswer()
		case p.state == expired: // the question may be asked, and charged, again
		default:
			return nil, fault.Internal(fmt.Errorf("budget: a charge has the state %q", string(p.state)))
		}
	}
	return nil, nil
}
