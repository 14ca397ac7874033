package gateway

import (
	"context"
	"encoding/json"

	"noisegate/budget/journal"
	"noisegate/internal/fault"
)

// sign makes the receipt of an answer that is about to leave; nil without a key, for what has nothing to do with the
// ledger, or when that cannot be asked: an answer that is paid and stored is not held back.
func (s *Service) sign(ctx context.Context, dataset string, paid receipt) json.RawMessage {
	if s.signer == nil || paid.answer == nil {
		return nil
	}
	if paid.id == "" {
		return receiptText(s.signer.SignUncharged(dataset, paid.answer, s.clock.Now()))
	}
	settlement, err := s.ledger.Settlement(ctx, paid.id)
	if err != nil {
		s.log.ErrorContext(ctx, "an answer leaves without a receipt", "reservation", string(paid.id), "code", string(fault.CodeOf(err)))
		return nil
	}
	return receiptText(s.signer.Sign(settlement, paid.id, paid.answer))
}

func receiptText(r journal.Receipt) json.RawMessage {
	text, err := json.Marshal(r)
	if err != nil { // hashes, numbers and texts always encode
		panic(err)
	}
	return text
}
