package plan

import (
	"slices"

	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/internal/sqlprint"
)

// A block may take values of other blocks as arguments of its statements. Those blocks are released first, and their noisy values are
// public. Prices, bounds, lists, texts and claims of the block are made before, for all values that it can be given, so that the loss of
// the question is the sum of the losses of its blocks, whatever the values are.

// Buys reports whether a statement of the plan takes a value that is released before it.
func (p *Plan) Buys() bool {
	return slices.ContainsFunc(p.Different(), func(block *Plan) bool { return len(block.Query.Bought) > 0 })
}

// releasing are the blocks of a question while their statements run.
type releasing struct {
	*Several
	sampler *mechanisms.Sampler
	draws   *Draws
	blocks  []int               // that are released now
	groups  []map[string]*Group // of each of them
	made    map[int]*Released   // by block: what is released by now
}

// block releases what its statements gave, once; or is what was given.
func (r *releasing) block(at int) (*Released, error) {
	at = r.same[at]
	place := slices.Index(r.blocks, at)
	switch {
	case r.given[at] != nil:
		return r.given[at], nil
	case r.made[at] != nil:
		return r.made[at], nil
	case place < 0:
		return nil, fault.Internal(ErrShape)
	}
	values, err := r.values(at)
	if err != nil {
		return nil, err
	}
	made, err := r.Plans[at].released(r.sampler, r.draws.blocks[place], r.groups[place])
	if err != nil {
		return nil, err
	}
	made.Bought, r.made[at] = values, made
	return made, nil
}

// values are those that a block takes.
func (r *releasing) values(at int) ([]*string, error) { return r.valuesFrom(at, r.block) }

// valuesFrom are the values that a block takes of released blocks; nil is NULL.
func (s *Several) valuesFrom(at int, released func(block int) (*Released, error)) ([]*string, error) {
	var values []*string
	for _, of := range s.Plans[at].Query.Bought {
		r, err := released(of.Block)
		if err != nil {
			return nil, err
		}
		value, err := r.valueOf(of)
		if err != nil {
			return nil, err
		}
		values = append(values, value)
	}
	return values, nil
}

// valueOf is a released value within its bounds, as a text; nil is NULL. That it is moved to them is post-processing.
func (r *Released) valueOf(of algebra.Purchase) (*string, error) {
	if len(r.Rows) != 1 || of.Estimator >= len(r.Plan.Query.Estimators) {
		return nil, fault.Internal(ErrShape)
	}
	t := r.Plan.Query.Estimators[of.Estimator].T
	key := r.Plan.ValueText(of.Estimator, r.Rows[0])
	if key.Null {
		return nil, nil
	}
	if v, ok := scalar.ParseNumber(key.Text); ok && t.IsNumber() {
		if within := scalar.ClampRat(v, of.Within.Lo, of.Within.Hi); within.Cmp(v) != 0 {
			key.Text = scalar.FormatNumber(within, t, scalar.MeanDigitsOf(within))
		}
	}
	return &key.Text, nil
}

// madeWith reports whether a block was released with the values that are given.
func (s *Several) madeWith(at int, r *Released) bool {
	values, err := s.valuesFrom(at, func(block int) (*Released, error) {
		if given := s.given[s.same[block]]; given != nil {
			return given, nil
		}
		return nil, fault.Internal(ErrShape)
	})
	return err == nil && slices.EqualFunc(values, r.Bought, sameText)
}

// sameText compares texts of values; nil is NULL.
func sameText(a, b *string) bool { return a == nil && b == nil || a != nil && b != nil && *a == *b }

// awaiting has the statements of a block wait for the values that they take.
func (d *Draws) awaiting(at int, statements []sqlprint.Statement) []sqlprint.Statement {
	for i, s := range statements {
		if len(s.Awaited) == 0 {
			continue
		}
		statements[i].Bought = func() (sqlprint.Statement, error) {
			if d.releasing == nil {
				return sqlprint.Statement{}, fault.Internal(ErrShape)
			}
			values, err := d.releasing.values(at)
			if err != nil {
				return sqlprint.Statement{}, err
			}
			return s.WithBought(values)
		}
	}
	return statements
}
