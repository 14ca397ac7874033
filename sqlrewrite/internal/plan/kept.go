package plan

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/scalar"
)

// kept has the released values of a block: the groups that were shown, and their noisy values. All releases of a name have their keys and
// statistics in one order. All of it was released.
type kept struct {
	Rows   []keptRow `json:"rows"`
	Noise  []keptLaw `json:"noise,omitempty"`  // by statistic; empty: it follows from the price
	Reused string    `json:"reused,omitempty"` // see [Plan.Reused]
	Bought []*string `json:"bought,omitempty"` // see [Released.Bought]
}

// keptRow is one group.
type keptRow struct {
	Keys  []*string  `json:"keys"`
	Noisy []*big.Int `json:"noisy"`
}

// keptLaw is noise that does not follow from the price: that of a slot of a registered plan, or of a combination of releases.
type keptLaw struct {
	Epsilon mechanisms.PicoEpsilon `json:"epsilon,omitempty"` // of a slot: one of these
	Rho     mechanisms.PicoRho     `json:"rho,omitempty"`
	Parts   []mechanisms.PicoRho   `json:"parts,omitempty"` // of a combination: the ρ of each
}

// Kept returns what was released, as JSON, for [Plan.Recall] of each plan with a form of the same [Plan.ReleaseIdentity]. Errors are
// internal.
func (r *Released) Kept() ([]byte, error) {
	b := r.Plan.order()
	k := kept{Rows: make([]keptRow, len(r.Rows)), Reused: r.Plan.Reused, Bought: r.Bought}
	for i, row := range r.Rows {
		k.Rows[i].Noisy = at(row.Noisy, b.Releases)
		for _, place := range b.Keys {
			k.Rows[i].Keys = append(k.Rows[i].Keys, scalar.KeyText(row.Keys[place]))
		}
	}
	if r.Plan.noise != nil {
		k.Noise = at(r.Plan.noise, b.Releases)
	}
	text, err := json.Marshal(k)
	return text, internal(err)
}

// KeptLeast returns the least number of bytes that [Released.Kept] of one block can have. It depends on the policy's keys alone. It is 0
// where there are no groups, or where the data decide which are shown: keys that are private or selected.
func (p *Plan) KeptLeast() int64 {
	if p.Query.Private() || p.Query.Top > 0 {
		return 0
	}
	groups := scalar.ClampInt64(p.Query.PublicTuples())
	if groups == 0 {
		return 0
	}
	row := len(`{"keys":[],"noisy":[]},`) + 2*len(p.Releases) - 1 // each number is a digit or more, and a comma between two
	if keys := len(p.Query.Keys); keys > 0 {
		row += keys - 1
	} else {
		row += len("null") - len("[]")
	}
	total := groups * int64(row)
	for i, k := range p.Query.Keys {
		keys := k.Domain
		if l, column := p.Query.ListOf(i); l >= 0 {
			keys = nil
			for _, t := range p.Query.Listed[l].Tuples {
				keys = append(keys, t[column])
			}
		}
		texts := int64(0)
		for _, key := range keys {
			text, _ := json.Marshal(scalar.KeyText(key)) // a text or null, which are written always
			texts += int64(len(text))
		}
		total += groups / int64(len(keys)) * texts
	}
	return total - 1 + int64(len(`{"rows":[]}`)) // no comma after the last
}

// AnswerBytes estimates how many bytes the answer of one block has as JSON, each number with its interval; 0 where [Plan.KeptLeast] is.
func (p *Plan) AnswerBytes() int64 {
	least := p.KeptLeast()
	if least == 0 {
		return 0
	}
	const number = 64 // three of up to 20 digits, with what stands between them
	return least + number*scalar.ClampInt64(p.Query.PublicTuples())*int64(len(p.Releases))
}

var errKept = errors.New("sqlrewrite: a stored release does not fit its question")

// Recall returns what [Released.Kept] wrote of a plan with the same [Plan.ReleaseIdentity], as if p had released it now. It draws nothing.
// Text that p cannot have released is an internal error.
func (p *Plan) Recall(text []byte) (*Released, error) {
	return p.RecallIn(text, p.order())
}

// RecallIn is [Plan.Recall] of what was stored in the order b.
func (p *Plan) RecallIn(text []byte, b Order) (*Released, error) {
	var k kept
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&k); err != nil {
		return nil, fault.Internal(fmt.Errorf("sqlrewrite: a stored release cannot be read: %w", err))
	}
	own, err := p.withLaws(k, b)
	if err != nil {
		return nil, err
	}
	rows := make([]ReleasedRow, len(k.Rows))
	for i, row := range k.Rows {
		if len(row.Keys) != len(b.Keys) || len(row.Noisy) != len(b.Releases) {
			return nil, fault.Internal(errKept)
		}
		rows[i] = ReleasedRow{Keys: make([]catalog.Key, len(b.Keys)), Noisy: make([]*big.Int, len(b.Releases))}
		for j, place := range b.Keys {
			if rows[i].Keys[place] = (catalog.Key{Null: true}); row.Keys[j] != nil {
				rows[i].Keys[place] = catalog.Key{Text: *row.Keys[j]}
			}
		}
		for j, place := range b.Releases {
			if rows[i].Noisy[place] = row.Noisy[j]; !p.canRelease(place, row.Noisy[j]) {
				return nil, fault.Internal(errKept)
			}
		}
	}
	if len(k.Bought) != len(p.Query.Bought) {
		return nil, fault.Internal(errKept)
	}
	if rows, err = own.inOrder(rows); err != nil {
		return nil, err
	}
	if p.listing != nil {
		shown, err := own.showing(p.listing, rows)
		if err != nil {
			return nil, err
		}
		shown.Bought = k.Bought
		return shown, nil
	}
	return &Released{Plan: own, Rows: rows, Bought: k.Bought}, nil
}

// withLaws returns the plan with the noise of the stored values.
func (p *Plan) withLaws(k kept, b Order) (*Plan, error) {
	own := p.copied()
	if own.Reused = k.Reused; k.Noise == nil {
		return own, nil
	}
	if len(k.Noise) != len(b.Releases) {
		return nil, fault.Internal(errKept)
	}
	own.noise = make([]keptLaw, len(k.Noise))
	for j, place := range b.Releases {
		l, r := k.Noise[j], &own.Releases[place]
		if r.Mechanism == nil {
			return nil, fault.Internal(errKept)
		}
		own.noise[place] = l
		l1, l2Squared := p.Bounding.Norms(r.Statistic)
		var err error
		if l.Parts == nil {
			r.Mechanism, err = mechanisms.Slot{Epsilon: l.Epsilon, Rho: l.Rho}.Noise(l1, l2Squared)
		} else {
			r.Mechanism, err = mechanisms.NewCombination(mechanisms.CombinationParameters{L2Squared: l2Squared, Parts: l.Parts,
				Rho: r.Mechanism.Loss().Rho})
		}
		if err != nil {
			return nil, internal(err)
		}
	}
	return own, nil
}

// canRelease reports whether a release can have given a number. That of a selection is the place of a candidate.
func (p *Plan) canRelease(i int, noisy *big.Int) bool {
	r := p.Releases[i]
	switch {
	case noisy == nil:
		return false
	case r.Selection == nil:
		return true
	case r.Selection.Top != nil:
		return noisy.Sign() == 0
	case r.Selection.Quantile != nil:
		return noisy.Sign() >= 0 && noisy.Cmp(r.Statistic.Grid.Points()) < 0
	default:
		return noisy.Sign() >= 0 && noisy.Cmp(big.NewInt(int64(r.Selection.Among))) < 0
	}
}

// inOrder puts groups into the order in which the plan releases them. Groups that it cannot have released are an internal error.
func (p *Plan) inOrder(rows []ReleasedRow) ([]ReleasedRow, error) {
	byKeys := make(map[string]ReleasedRow, len(rows))
	for _, row := range rows {
		byKeys[scalar.KeyIdentity(row.Keys)] = row
	}
	if len(byKeys) != len(rows) {
		return nil, fault.Internal(errKept)
	}
	switch {
	case p.Query.Private():
		slices.SortFunc(rows, func(a, b ReleasedRow) int { return CompareKeys(p.Query, a.Keys, b.Keys) })
		return rows, nil
	case p.Query.Top > 0:
		has := domainOf(p.Query)
		if int64(len(rows)) != p.Query.Top || slices.ContainsFunc(rows, func(r ReleasedRow) bool { return !has(r.Keys) }) {
			return nil, fault.Internal(errKept)
		}
		return rows, nil
	}
	all := make([]ReleasedRow, 0, len(rows))
	err := EachPublicTuple(p.Query, func(_ int, keys []catalog.Key) error {
		row, ok := byKeys[scalar.KeyIdentity(keys)]
		if all = append(all, row); !ok {
			return fault.Internal(errKept)
		}
		return nil
	})
	if err == nil && len(all) != len(rows) {
		err = fault.Internal(errKept)
	}
	return all, err
}

// domainOf returns a function that reports whether a group with such public keys can appear.
func domainOf(q *algebra.BoundQuery) (has func(keys []catalog.Key) bool) {
	lists := make([]map[string]bool, len(q.Listed))
	for i, l := range q.Listed {
		lists[i] = make(map[string]bool, len(l.Tuples))
		for _, t := range l.Tuples {
			lists[i][scalar.KeyIdentity(t)] = true
		}
	}
	domains := make([]map[catalog.Key]bool, len(q.Keys))
	for i, k := range q.Keys {
		domains[i] = make(map[catalog.Key]bool, len(k.Domain))
		for _, d := range k.Domain {
			domains[i][d] = true
		}
	}
	return func(keys []catalog.Key) bool {
		for i, k := range keys {
			if !domains[i][k] {
				return false
			}
		}
		for i, l := range q.Listed {
			if !lists[i][scalar.KeyIdentity(at(keys, l.Places))] {
				return false
			}
		}
		return true
	}
}

// EachPublicTuple visits the tuples of public keys in the order of the keys, until a visit fails, and returns its error. Without keys there
// is one tuple, the empty one.
func EachPublicTuple(q *algebra.BoundQuery, visit func(i int, keys []catalog.Key) error) error {
	i := -1
	return q.EachTuple(func(keys []catalog.Key) error {
		i++
		return visit(i, keys)
	})
}

// CompareKeys compares tuples as ORDER BY does: NULL last, numbers by value, others by their bytes.
func CompareKeys(q *algebra.BoundQuery, a, b []catalog.Key) int {
	for i, k := range q.Keys {
		if c := scalar.CompareKey(k.X.Typ(), a[i], b[i]); c != 0 {
			return c
		}
	}
	return 0
}
