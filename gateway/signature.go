package gateway

import (
	"context"

	"noisegate/budget"
	"noisegate/internal/fault"
)

// sign makes the receipt of an answer that is about to leave; nil without a key, for what was free, or when the ledger cannot be asked: an answer that is paid and stored is
// not held back.
func (s *Service) sign(ctx context.Context, dataset string, paid receipt) *budget.Receipt {
	if s.signer == nil || paid.id == "" {
		return nil
	}
	head, err := s.ledger.Head(ctx, dataset)
	if err != nil {
		s.log.ErrorContext(ctx, "an answer leaves without a receipt", "reservation", string(paid.id), "code", string(fault.CodeOf(err)))
		return nil
	}
	signed := s.signer.Sign(head, paid.id, paid.answer, s.clock.Now())
	return &signed
}
