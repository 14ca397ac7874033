package gateway

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"time"

	"noisegate.example/api"
	"noisegate.example/gateway/internal/amounts"
	"noisegate.example/internal/fault"
)

// An answer that is given again is of the time when it was released: it says so, and what a fresh one costs. It does not say whether rows
// have changed since: that would tell of rows.

// noteReplayed is the code of the note that every replay has.
const noteReplayed = "replayed"

// fresh is a price of what "version": "latest" asks: nil where it is not known, or the policy would refuse it.
type fresh struct {
	price  *api.Amounts
	copied bool // of a prepared copy's newest version, which latest would ask again
}

// freshen makes the question one that nobody has asked: it is charged, and rows are read, whatever was released before. The same request
// under the same Idempotency-Key is given its answer again.
func (q *prepared) freshen() {
	question := q.Charge.Fingerprint
	name := cmp.Or(q.Charge.IdempotencyKey, string(q.Charge.ID))
	q.fresh, q.Charge.Shared = true, false
	q.Charge.Fingerprint = sha256.Sum256(append([]byte("latest "+name+" "), question[:]...))
}

// priceLatest says what a fresh answer costs, and makes the question one, where a table is asked for it.
func (q *prepared) priceLatest(latest bool) {
	q.latestCosts = q.latestPrice()
	if latest && q.version == nil && q.plan.NeedsData() {
		q.freshen()
	}
}

// latestPrice is the price of a fresh answer to the question.
func (q *prepared) latestPrice() fresh {
	f := fresh{copied: q.version != nil}
	if !f.copied && q.Refusal == nil && q.Charge.Draws == nil {
		price := amounts.Of(q.Charge.Loss)
		f.price = &price
	}
	return f
}

// ReplayNote is the note of a model that is given again: the time of its rows. There is no latest one: it is not asked by version.
func (s *Service) ReplayNote(asOf time.Time) api.Note {
	return replayNote(asOf, s.clock.Now(), fresh{})
}

func replayNote(asOf, now time.Time, f fresh) api.Note {
	layout := "2 Jan 2006 15:04 UTC"
	if asOf = asOf.UTC(); asOf.Year() == now.UTC().Year() {
		layout = "2 Jan 15:04 UTC"
	}
	text := "of " + asOf.Format(layout) + "; later rows are not in it"
	switch {
	case f.price != nil && f.price.Epsilon != "":
		text += "; latest costs ε " + string(f.price.Epsilon)
	case f.price != nil:
		text += "; latest costs ρ " + string(f.price.Rho)
	case f.copied:
		text += " before the prepared copy has a new version"
	}
	return api.Note{Code: noteReplayed, Text: text}
}

// replay completes an answer that is given again.
func (a *Answer) replay(now time.Time, f fresh) {
	if a.AsOf.IsZero() {
		a.AsOf = a.At
	}
	if a.Newer != nil {
		f = fresh{price: a.Newer.Price}
	}
	note := replayNote(a.AsOf, now, f)
	a.Note = &note
}

// Shown is the result as it is given: the stored one, and in a replay its note behind the others, and how many rows are useful where the
// stored one does not say. All else is stored so, byte for byte. It fails with internal, where what is stored cannot be read.
func (a *Answer) Shown() (json.RawMessage, error) {
	if a.Note == nil {
		return a.Result, nil
	}
	var result struct {
		Columns   json.RawMessage   `json:"columns"`
		Rows      json.RawMessage   `json:"rows"`
		Intervals json.RawMessage   `json:"intervals"`
		Notes     []json.RawMessage `json:"notes"`
		Report    json.RawMessage   `json:"report,omitempty"`
		Useful    *api.Useful       `json:"useful,omitempty"`
	}
	err := json.Unmarshal(a.Result, &result)
	if err == nil && result.Useful == nil {
		var whole api.Result
		err = json.Unmarshal(a.Result, &whole)
		result.Useful = judged(&whole)
	}
	if err != nil {
		return nil, fault.Internal(fmt.Errorf("a stored answer cannot be read: %w", err))
	}
	note, err := json.Marshal(a.Note)
	if err != nil {
		return nil, fault.Internal(err)
	}
	result.Notes = append(result.Notes, note)
	shown, err := json.Marshal(result)
	if err != nil {
		return nil, fault.Internal(err)
	}
	return shown, nil
}
