package gateway

import (
	"context"
	"slices"
	"time"

	"noisegate.example/api"
	"noisegate.example/budget"
	"noisegate.example/catalog"
	"noisegate.example/gateway/auth"
	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite"
)

// A text that is refused now may have been answered by an older version, whose prices were lower: who bought the answer is given it again.
// A question is known by its plan, which there is none of, so it is looked for by the request as it was written (docs/decisions/0070).

// textRefusals are those that follow from what planning takes a text to cost or to mean.
var textRefusals = []fault.Code{fault.CodeFanOut, fault.CodeTooComplex, fault.CodeTooManyKeys, fault.CodeTooManyScans,
	fault.CodeUnsupported}

// sinceApplied is the age of a policy from which on answers surely follow it: until then a gateway may not have read it, and a question
// that began earlier follows the version before.
const sinceApplied = time.Hour

// boughtBefore gives the caller's own answer to a request that planning refuses; nil where the refusal stands.
func (s *Service) boughtBefore(ctx context.Context, who auth.Principal, r Request, refusal error) *Answer {
	if !slices.Contains(textRefusals, fault.CodeOf(refusal)) {
		return nil
	}
	o, err := s.Order(ctx, who, r.Dataset, r.IdempotencyKey, nil)
	if err != nil || !sameWhenever(r.QueryRequest, o.On) || o.Keep("", asAsked(r.QueryRequest)) != nil {
		return nil
	}
	charge, err := s.chargeOf(ctx, o)
	if err != nil || charge == "" {
		return nil
	}
	_, stored, err := s.ledger.Again(ctx, budget.Again{Dataset: r.Dataset, Analyst: who.Subject, Charge: charge})
	if err != nil || stored == nil {
		return nil
	}
	return s.stored(ctx, r.Dataset, stored, o.Accounts.Own(), answeredBy{data: o.On.DataVersion})
}

// sameWhenever reports whether a request asks the same whenever it is asked under a policy: it asks for no newer rows, reads no prepared
// copy, which has versions, and depends neither on the day nor on the session's time zone. What draws from a registered plan is left out.
func sameWhenever(r api.QueryRequest, snapshot *catalog.Snapshot) bool {
	copied := slices.ContainsFunc(snapshot.Tables, func(t *catalog.Table) bool { return t.Prepare > 0 })
	if copied || r.Plan != "" || r.Version != "" || r.TimeZone != "" {
		return false
	}
	text, err := BoundText(r)
	return err == nil && sqlrewrite.IsTimeless(text, sqlrewrite.Dialect(r.Dialect))
}

// chargeOf finds the settled charge of an analyst that was made for a request under the policy in force; "" for none. An Idempotency-Key
// that was used stands for what it was used for.
func (s *Service) chargeOf(ctx context.Context, o *Order) (budget.ReservationID, error) {
	c := o.Charge
	if c.IdempotencyKey != "" { // of no question: what is found is found by the key
		if stored, err := s.ledger.Replay(ctx, c); err != nil {
			return "", err
		} else if stored != nil {
			return stored.ID, nil
		}
	}
	versions, err := s.chain.PolicyRows(ctx, c.Dataset)
	if err != nil || len(versions) == 0 {
		return "", err
	}
	inForce := versions[len(versions)-1]
	if inForce.Version != o.On.Version || inForce.Digest != o.On.Digest {
		return "", nil
	}
	return s.ledger.Bought(ctx, budget.Bought{Dataset: c.Dataset, Analyst: c.Analyst, Request: c.Request,
		Since: inForce.AppliedAt.Add(sinceApplied)})
}
