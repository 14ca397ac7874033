package gateway

import (
	"context"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"

	"noisegate.example/api"
	"noisegate.example/budget"
	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite"
)

// cheapest finds the smallest price, to a part in a thousand, at which the half-width of each output that the request names is
// within its bound, in every group, and which is not below the floor. Prices are ρ for zcdp accounts and for Gaussian
// noise, else ε. Half-widths fall as the price rises.
//
// If that is more than the account lets one query cost, the refusal says how far the account gets. It depends on the account's
// limit, the text and the policy alone.
func cheapest(ctx context.Context, r api.QueryRequest, snapshot *catalog.Snapshot, options sqlrewrite.Options,
	p Accounts) (*sqlrewrite.Plan, error) {
	bounds, err := positives(r.MaxError, wrongMaxError)
	if err != nil {
		return nil, err
	}
	inRho := options.Currency == catalog.ZCDP || options.Mechanism == sqlrewrite.MechanismGaussian
	priced := func(pico int64) sqlrewrite.Options {
		o := options
		o.Bounded = true
		if inRho {
			o.Rho = mechanisms.PicoRho(pico)
		} else {
			o.Epsilon = mechanisms.PicoEpsilon(pico)
		}
		return o
	}
	most, err := sqlrewrite.Rewrite(ctx, r.SQL, snapshot, priced(int64(mechanisms.MaxEpsilon)))
	if err != nil {
		return nil, err
	}
	if err := known(most, bounds); err != nil {
		return nil, err
	}
	search := search{most: most, priced: priced}
	if !keeps(most, bounds) {
		return nil, fault.RequestMaxError("larger: no price reaches it")
	}
	plan, err := search.least(func(plan *sqlrewrite.Plan) bool { return keeps(plan, bounds) && p.floor.reaches(plan.Loss()) })
	if err != nil {
		return nil, err
	}
	if within := func(plan *sqlrewrite.Plan) bool { return affords(p.limit(), snapshot, plan) }; !within(plan) {
		best, err := search.last(within)
		if err != nil {
			return nil, err
		}
		return nil, fault.RequestMaxError("larger: " + reached(best, bounds))
	}
	return plan, nil
}

// affords reports whether an account that has spent nothing may pay for a plan, and for a delay where there is one;
// what that takes of one query's limit is taken off already.
func affords(limit budget.Limit, snapshot *catalog.Snapshot, p *sqlrewrite.Plan) bool {
	var delay mechanisms.Loss
	if snapshot.Delay != nil {
		delay = snapshot.Delay.Loss()
	}
	return limit.AdmitsQuery(p.Loss()) && limit.Admits(delay, p.Loss())
}

// reached says what the best plan that an account can pay for reaches; nil for none.
func reached(best *sqlrewrite.Plan, bounds map[string]*big.Rat) string {
	if best == nil {
		return "your account can pay for no price at all"
	}
	text, widths := "the most that your account lets one query cost reaches", widthsOf(best)
	for _, name := range slices.Sorted(maps.Keys(bounds)) {
		text += fmt.Sprintf(" %s for %s", rationalText(widths[name]), fault.Quote(name))
	}
	return text
}

// search looks for prices of one question.
type search struct {
	most   *sqlrewrite.Plan // at the highest price
	priced func(pico int64) sqlrewrite.Options
}

// least is the plan at about the smallest price where a condition that most keeps, and every higher price does, holds.
func (s search) least(holds func(*sqlrewrite.Plan) bool) (*sqlrewrite.Plan, error) {
	high, _, err := s.edge(holds)
	return high, err
}

// last is the plan at about the highest price where a condition holds that every lower price keeps; nil when none does.
func (s search) last(holds func(*sqlrewrite.Plan) bool) (*sqlrewrite.Plan, error) {
	if holds(s.most) {
		return s.most, nil
	}
	_, low, err := s.edge(func(p *sqlrewrite.Plan) bool { return !holds(p) })
	return low, err
}

// edge is where a condition on plans begins to hold: high keeps it, low does not; nil where no price is below.
func (s search) edge(holds func(*sqlrewrite.Plan) bool) (high, low *sqlrewrite.Plan, err error) {
	high = s.most
	from, to := int64(0), int64(mechanisms.MaxEpsilon) // at to it holds, at from it does not
	for to-from > max(to/1000, 1) {
		middle := from + (to-from)/2
		if from == 0 {
			middle = max(to/16, 1) // prices are small: look for the order of magnitude first
		}
		plan, err := s.most.Reprice(s.priced(middle))
		switch {
		case fault.CodeOf(err) == fault.CodePriceTooSmall:
			from = middle
		case err != nil:
			return nil, nil, err
		case holds(plan):
			to, high = middle, plan
		default:
			from, low = middle, plan
		}
	}
	return high, low, nil
}

// known refuses names of outputs whose error is not known before there is data.
func known(plan *sqlrewrite.Plan, bounds map[string]*big.Rat) error {
	widths := widthsOf(plan)
	for _, name := range slices.Sorted(maps.Keys(bounds)) {
		if widths[name] == nil {
			return fault.RequestMaxError(wantedOutputs(name, slices.Sorted(maps.Keys(widths))))
		}
	}
	return nil
}

// wantedOutputs says which names max_error takes.
func wantedOutputs(name string, known []string) string {
	if len(known) == 0 {
		return "left out, and epsilon given: the error of no output of this query is known before there is data, " + onRows
	}
	for i, output := range known {
		known[i] = fault.Quote(output)
	}
	return fmt.Sprintf("about %s: the error of %s is not known before there is data, %s", strings.Join(known, ", "), fault.Quote(name), onRows)
}

const onRows = "as that of a mean or a share depends on how many rows there are; an estimate says how"

// keeps reports whether the outputs of a plan keep their bounds.
func keeps(plan *sqlrewrite.Plan, bounds map[string]*big.Rat) bool {
	widths := widthsOf(plan)
	for name, bound := range bounds {
		if widths[name] == nil || widths[name].Cmp(bound) > 0 {
			return false
		}
	}
	return true
}

// widthsOf are the half-widths of the outputs that have one; of outputs with one name the larger.
func widthsOf(plan *sqlrewrite.Plan) map[string]*big.Rat {
	widths := map[string]*big.Rat{}
	for _, column := range plan.Columns() {
		if known := widths[column.Name]; column.HalfWidth != nil && (known == nil || known.Cmp(column.HalfWidth) < 0) {
			widths[column.Name] = column.HalfWidth
		}
	}
	return widths
}
