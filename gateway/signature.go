package gateway

import (
	"context"
	"encoding/json"

	"noisegate.example/budget/journal"
	"noisegate.example/internal/fault"
)

// Sign makes the receipt of an answer that is about to leave; nil without a key, for what has nothing to do with the
// ledger, or when that cannot be asked: an answer that is paid and stored is not held back. The receipt of an answer that
// is not the one that a charge was settled with names no charge.
func (s *Service) Sign(ctx context.Context, dataset string, paid Receipt) json.RawMessage {
	if s.signer == nil || paid.Answer == nil {
		return nil
	}
	if paid.ID == "" || paid.reshaped {
		return receiptText(s.signer.SignUncharged(dataset, paid.Answer, s.clock.Now()))
	}
	settlement, err := s.ledger.Settlement(ctx, paid.ID)
	if err != nil {
		s.log.ErrorContext(ctx, "an answer leaves without a receipt", "reservation", string(paid.ID), "code", string(fault.CodeOf(err)))
		return nil
	}
	return receiptText(s.signer.Sign(settlement, paid.ID, paid.Answer))
}

func receiptText(r journal.Receipt) json.RawMessage {
	text, err := json.Marshal(r)
	if err != nil { // hashes, numbers and texts always encode
		panic(err)
	}
	return text
}
