// Package amounts writes losses, balances and limits as the API shows them, and reads limits that stewards write.
//
// It knows the wire types and the arithmetic of budgets. It does not know accounts' owners, ledgers or HTTP.
package amounts

import (
	"math/big"
	"strconv"
	"time"

	"noisegate.example/api"
	"noisegate.example/budget"
	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
)

// Of writes the loss of a release.
func Of(l mechanisms.Loss) api.Amounts {
	l.Unbounded, l.Tail = !l.Pure(), 0
	return Sums(l)
}

// Sums writes a loss as the ledger counts it.
func Sums(l mechanisms.Loss) api.Amounts {
	a := api.Amounts{Epsilon: api.Decimal(l.Epsilon.String()), Rho: api.Decimal(l.Rho.String()), Delta: api.Decimal(l.Delta.String())}
	if l.Unbounded {
		a.Epsilon = ""
	}
	if l.Tail != 0 {
		a.Tail = api.Decimal(l.Tail.String())
	}
	return a
}

// Headroom writes what is left of a budget; a currency that the budget does not count in is null.
func Headroom(b budget.Balance) api.Amounts {
	left := budget.Remaining(b.Limit, b.Used())
	a := api.Amounts{Delta: api.Decimal(left.Delta.String())}
	if left.Epsilon != budget.Never {
		a.Epsilon = api.Decimal(left.Epsilon.String())
	}
	if left.Rho != budget.Never {
		a.Rho = api.Decimal(left.Rho.String())
	}
	return a
}

// Usage writes how much of a cap is used.
func Usage(b budget.Balance) api.Usage {
	u := budget.UsageOf(b.Limit, b.Used())
	const tenths = 10
	percent := api.Decimal(strconv.FormatInt(u.Permille/tenths, 10))
	if rest := u.Permille % tenths; rest != 0 {
		percent += api.Decimal("." + strconv.FormatInt(rest, 10))
	}
	return api.Usage{Rule: string(u.Rule), Percent: percent}
}

// Shared writes what members may know of an account that others draw on too: nothing that depends on what was spent.
func Shared(a budget.Account) api.SharedAccount {
	limit := Limit(a.Limit)
	return api.SharedAccount{Account: a.ID.String(), Form: limit.Form, MaxEpsilonPerQuery: limit.MaxEpsilonPerQuery,
		ReplayOnly: limit.ReplayOnly}
}

// Affordable looks at the caller's own account only: what others spent is not to be learned from a free estimate.
func Affordable(own budget.Balance, loss mechanisms.Loss) bool {
	return !own.Frozen && !own.Limit.ReplayOnly && own.Limit.AdmitsQuery(loss) && own.Limit.Admits(own.Used(), loss)
}

// Released is a balance whose limit is what its tranches have released until now.
func Released(b budget.Balance, now time.Time) budget.Balance {
	b.Limit = b.Limit.Released(b.Opened, now)
	return b
}

// ParseLimit reads a limit as a steward writes it.
func ParseLimit(l api.BudgetLimit) (budget.Limit, error) {
	spec := budget.LimitSpec{Form: budget.Form(l.Form), ReplayOnly: l.ReplayOnly}
	for _, amount := range []struct {
		name string
		text api.Decimal
		to   **big.Rat
	}{
		{"epsilon", l.Epsilon, &spec.Epsilon},
		{"rho", l.Rho, &spec.Rho},
		{"delta", l.Delta, &spec.Delta},
		{"max_epsilon_per_query", l.MaxEpsilonPerQuery, &spec.MaxEpsilonPerQuery},
	} {
		if amount.text == "" {
			continue
		}
		value, err := mechanisms.ParseDecimal(string(amount.text))
		if err != nil {
			return budget.Limit{}, fault.RequestBudget(amount.name + " is " + err.Error())
		}
		*amount.to = value
	}
	if err := readSchedule(l, &spec); err != nil {
		return budget.Limit{}, err
	}
	return budget.NewLimit(spec)
}

// readSchedule reads tranche and rate.
func readSchedule(l api.BudgetLimit, spec *budget.LimitSpec) (err error) {
	amount := func(name string, text api.Decimal) *big.Rat {
		if text == "" || err != nil {
			return nil
		}
		value, wrong := mechanisms.ParseDecimal(string(text))
		if wrong != nil {
			err = fault.RequestBudget(name + " is " + wrong.Error())
		}
		return value
	}
	period := func(name, text string) time.Duration {
		d, ok := catalog.ParsePeriod(text)
		if !ok && err == nil {
			err = fault.RequestBudget(name + " must be a number of seconds, minutes, hours or days, such as 90s, 1m, 12h or 30d")
		}
		return d
	}
	if t := l.Tranche; t != nil {
		spec.Tranche = budget.TrancheSpec{Every: period("tranche.every", t.Every), Epsilon: amount("tranche.epsilon", t.Epsilon),
			Rho: amount("tranche.rho", t.Rho)}
	}
	if r := l.Rate; r != nil {
		spec.Rate = budget.RateSpec{Per: period("rate.per", r.Per), Epsilon: amount("rate.epsilon", r.Epsilon)}
	}
	return err
}

// Limit writes a limit as a steward would.
func Limit(l budget.Limit) api.BudgetLimit {
	text := api.BudgetLimit{Form: string(l.Form), ReplayOnly: l.ReplayOnly}
	switch l.Form {
	case budget.ZCDP:
		text.Rho = api.Decimal(l.Rho.String())
	case budget.Pure, budget.Approx:
		text.Epsilon = api.Decimal(l.Epsilon.String())
	default: // no other form is ever stored; nothing is shown of one
	}
	if l.TotalDelta > 0 {
		text.Delta = api.Decimal(l.TotalDelta.String())
	}
	if l.PerQuery > 0 {
		text.MaxEpsilonPerQuery = api.Decimal(l.PerQuery.String())
	}
	if t := l.Tranche; t.Every > 0 {
		text.Tranche = &api.Tranche{Every: catalog.PeriodText(t.Every)}
		if l.Form == budget.ZCDP {
			text.Tranche.Rho = api.Decimal(t.Rho.String())
		} else {
			text.Tranche.Epsilon = api.Decimal(t.Epsilon.String())
		}
	}
	if r := l.Rate; r.Per > 0 {
		text.Rate = &api.Rate{Epsilon: api.Decimal(r.Epsilon.String()), Per: catalog.PeriodText(r.Per)}
	}
	return text
}
