package plan

import (
	"math/big"
	"slices"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/bind"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/internal/sqlprint"
)

// combine puts the keys, statistics and values of the blocks one after another, in a query of its own.
func (p *Plan) combine(asked *algebra.BoundQuery) {
	q := *asked
	q.Keys, q.Statistics, q.Estimators = nil, nil, nil
	p.Releases, p.Several.places = nil, make([][]int, len(p.Several.Plans))
	for i, block := range p.Several.Plans {
		places := make([]int, len(block.Releases))
		if first := p.Several.same[i]; first == i {
			for j, r := range block.Releases {
				places[j] = len(p.Releases)
				r.of = block
				p.Releases = append(p.Releases, r)
			}
			q.Statistics = append(q.Statistics, block.Query.Statistics...)
		} else {
			own := block.order()
			other := p.Several.Plans[first].order()
			for j, place := range own.Releases {
				places[place] = p.Several.places[first][other.Releases[j]]
			}
		}
		p.Several.places[i] = places
		q.Keys = append(q.Keys, block.Query.Keys...)
		for _, v := range block.Query.Estimators {
			v.Of = at(places, v.Of)
			q.Estimators = append(q.Estimators, v)
		}
	}
	p.Query = &q
}

// Same is the block that releases what a block does: itself, or an equal one before it.
func (s *Several) Same(block int) int { return s.same[block] }

// Home is the plan of the block that a release belongs to.
func (p *Plan) Home(r Release) *Plan {
	if r.of != nil {
		return r.of
	}
	return p
}

// Tellings say of each block how it is known which of its released rows a row of the answer stems from.
func (p *Plan) Tellings() []algebra.Telling { return p.Query.Tellings(p.Several.same) }

// Combinations are how many intervals an answer over several blocks has at most, whatever is shown of it: an interval of an output is a
// function of the released rows that the output is computed from, which are one of each of its blocks, or none. They are more than
// [MaxCells] where that is not known before there is data, as of private keys.
func (p *Plan) Combinations() *big.Int {
	q, tellings, all := p.Query, p.Tellings(), new(big.Int)
	for _, o := range q.Outputs {
		if len(bind.ReleasesOf(q, o.Expr)) == 0 {
			continue
		}
		rows := big.NewInt(1)
		for _, at := range q.BlocksOf(o.Expr) {
			groups := q.Blocks[at].PublicTuples()
			if tellings[at] != algebra.OnlyRow {
				groups.Add(groups, big.NewInt(1))
			}
			if rows.Mul(rows, groups); q.Blocks[at].Private() {
				return big.NewInt(MaxCells + 1)
			}
		}
		all.Add(all, rows)
	}
	return all
}

// Different are the plans of the blocks, each release once; the plan itself, where it is one block.
func (p *Plan) Different() []*Plan {
	if p.Several == nil {
		return []*Plan{p}
	}
	var plans []*Plan
	for i, block := range p.Several.Plans {
		if p.Several.same[i] == i {
			plans = append(plans, block)
		}
	}
	return plans
}

// Whole is the answer's releases, where those that need data were given.
func (p *Plan) Whole() (*Released, error) {
	if p.NeedsData() {
		return nil, fault.Internal(ErrShape)
	}
	return p.ReleaseRows(nil, p.Draw(nil), func(func(ExactRow, error) bool) {})
}

// together is the release of all blocks: those that were made now, in order, and those that were given. A block that is equal to one before
// it has what that one released.
func (p *Plan) together(made []*Released) (*Released, error) {
	own, several := *p, *p.Several
	several.Plans, own.Several = slices.Clone(several.Plans), &several
	out := &Released{Plan: &own, Blocks: make([]*Released, len(several.Plans))}
	for i, first := range several.same {
		switch {
		case first != i:
			text, err := out.Blocks[first].Kept()
			if err != nil {
				return nil, err
			}
			block := several.Plans[i]
			if block.Query.Narrowed() && !out.Blocks[first].Plan.Query.Narrowed() { // given as it was before conditions narrowed bounds
				block = block.Wide()
			}
			if out.Blocks[i], err = block.Recall(text); err != nil {
				return nil, err
			}
		case several.given[i] != nil:
			out.Blocks[i] = several.given[i]
		case len(made) == 0:
			return nil, fault.Internal(ErrShape)
		default:
			out.Blocks[i], made = made[0], made[1:]
		}
		several.Plans[i] = out.Blocks[i].Plan
	}
	own.combine(p.asked)
	return out, nil
}

// Fresh are what was released now of several blocks, for the store: by place in [Plan.Different], nil where it was given.
func (r *Released) Fresh() []*Released {
	if r.Blocks == nil {
		return []*Released{r}
	}
	var all []*Released
	for i, block := range r.Blocks {
		switch {
		case r.Plan.Several.same[i] != i:
		case r.Plan.Several.given[i] != nil:
			all = append(all, nil)
		default:
			all = append(all, block)
		}
	}
	return all
}

// Joined is the row of an answer over several blocks: the keys and the noisy numbers of the released rows that it stems from, by block,
// counted from 1; 0 where there is none, whose numbers are nil.
func (r *Released) Joined(rows []int) (ReleasedRow, error) {
	joined := ReleasedRow{Noisy: make([]*big.Int, len(r.Plan.Releases))}
	for i, block := range r.Blocks {
		if rows[i] < 0 || rows[i] > len(block.Rows) {
			return ReleasedRow{}, fault.Internal(ErrShape)
		}
		if rows[i] == 0 {
			joined.Keys = append(joined.Keys, make([]catalog.Key, len(block.Plan.Query.Keys))...)
			continue
		}
		row := block.Rows[rows[i]-1]
		joined.Keys = append(joined.Keys, row.Keys...)
		for j, place := range r.Plan.Several.places[i] {
			joined.Noisy[place] = row.Noisy[j]
		}
	}
	return joined, nil
}

// columnsOf are the keys and the values of what was released of one block, as arrays of text.
func columnsOf(r *Released) (columns []any) {
	q := r.Plan.Query
	column := func(of func(row ReleasedRow) catalog.Key) {
		texts := make([]*string, len(r.Rows))
		for j, row := range r.Rows {
			texts[j] = scalar.KeyText(of(row))
		}
		columns = append(columns, texts)
	}
	for i := range q.Keys {
		column(func(row ReleasedRow) catalog.Key { return row.Keys[i] })
	}
	for i := range q.Estimators {
		column(func(row ReleasedRow) catalog.Key { return r.Plan.ValueText(i, row) })
	}
	return columns
}

// Post is the post-processing query as SQL over the released values; ok is false when there is none to run.
func (r *Released) Post() (post sqlprint.Post, ok bool) {
	if r.Plan.Post == nil {
		return sqlprint.Post{}, false
	}
	args := append([]any(nil), r.Plan.Post.Args()...)
	blocks := r.Blocks
	if blocks == nil {
		blocks = []*Released{r}
	}
	first := 0
	for _, block := range blocks {
		if q := block.Plan.Query; q.Part != algebra.NoPart || q.Argument { // nothing is computed from it here
			continue
		}
		first += copy(args[first:], columnsOf(block))
	}
	return sqlprint.PostWith(r.Plan.Post, args), true
}
