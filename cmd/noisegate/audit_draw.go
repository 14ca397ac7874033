package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sort"
	"strconv"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"noisegate.example/api"
	"noisegate.example/internal/stattest"
)

// auditKeys is how many groups of identical contents the tables have: each is a separate draw in every answer.
const auditKeys = 1000

const (
	gaussianDelta  = 1e-3 // the largest that is ever claimed: the bound on ε is then tightest
	selectionDelta = 1e-8
)

// auditProbe is one question that is asked again and again.
type auditProbe struct {
	name      string
	output    string // what the question selects for each group; "" asks which private groups are shown
	private   bool   // groups are private: not all are shown
	mechanism string
	delta     float64
}

func auditProbes() []auditProbe {
	return []auditProbe{
		{name: "discrete Laplace count", output: "count(*)", mechanism: "laplace"},
		{name: "discrete Laplace sum", output: "sum(v)", mechanism: "laplace"},
		{name: "discrete Gaussian count", output: "count(*)", mechanism: "gaussian", delta: gaussianDelta},
		{name: "avg", output: "avg(v)", mechanism: "laplace"},
		{name: "partition selection", private: true, delta: selectionDelta},
		{name: "shown count", output: "count(*)", private: true, delta: selectionDelta},
	}
}

// question asks about each group's units of the ranks up to a number. The serial number changes nothing but makes the question
// a new one, which is not a replay.
func (p auditProbe) question(epsilon, table string, units, serial int64) api.QueryRequest {
	q := api.QueryRequest{Epsilon: api.Decimal(epsilon), Mechanism: p.mechanism}
	if p.delta > 0 {
		q.Delta = api.Decimal(strconv.FormatFloat(p.delta, 'g', -1, 64))
	}
	selected := "k"
	if p.private {
		selected = "s"
	}
	if p.output != "" {
		selected += ", " + p.output
	}
	q.SQL = fmt.Sprintf("SELECT %s FROM %s WHERE rank <= %d AND rank <> %d GROUP BY 1", selected, table, units, -1-serial)
	return q
}

// values are the answers for the groups, in the order of their keys; NaN for none.
func (p auditProbe) values(answer *api.QueryResponse) ([]float64, error) {
	values := make([]float64, auditKeys)
	for i := range values {
		values[i] = math.NaN()
	}
	for _, row := range answer.Rows {
		key, err := strconv.Atoi(row[0].String())
		if err != nil || key < 0 || key >= auditKeys {
			return nil, fmt.Errorf("the answer has a group %q that was not asked for", row[0])
		}
		switch {
		case p.output == "":
			values[key] = 1
		case !row[1].IsNull():
			if values[key], err = strconv.ParseFloat(row[1].String(), 64); err != nil {
				return nil, fmt.Errorf("the answer has a value %q that is no number", row[1])
			}
		}
	}
	return values, nil
}

// auditor asks a gateway about the two tables of a scratch schema.
type auditor struct {
	dataset  string
	schema   string
	maxUnits int // the tables' units in each group
	ask      func(context.Context, api.QueryRequest) (*api.QueryResponse, error)
	rate     stattest.FalseAlarm // of each certified number
	asked    atomic.Int64
}

// draw collects at least n answers about either table, and what one request was charged.
func (u *auditor) draw(ctx context.Context, p auditProbe, epsilon string, n int) (seen stattest.Draws, charged api.Amounts, err error) {
	units := int64(0)
	if p.private {
		if units, err = u.undecided(ctx, p, epsilon); err != nil {
			return seen, charged, err
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	for table, side := range map[string]*[]float64{withUnit: &seen.With, withoutUnit: &seen.Without} {
		group.Go(func() error {
			for len(*side) < n {
				values, spent, err := u.once(ctx, p, epsilon, table, units)
				if err != nil {
					return err
				}
				*side = append(*side, values...)
				if table == withUnit {
					charged = spent
				}
			}
			return nil
		})
	}
	err = group.Wait()
	return seen, charged, err
}

// undecided is the largest number of units at which private groups of the smaller table are still shown more rarely than one in
// 1+e^ε: there selection gives most away. It is found by asking, not computed, so that a gateway that shows groups too early is looked
// at where it does.
func (u *auditor) undecided(ctx context.Context, p auditProbe, epsilon string) (int64, error) {
	e, err := strconv.ParseFloat(epsilon, 64)
	if err != nil {
		return 0, err
	}
	often := sort.Search(u.maxUnits, func(units int) bool {
		if err != nil {
			return true
		}
		var values []float64
		if values, _, err = u.once(ctx, p, epsilon, withoutUnit, int64(units)); err != nil {
			return true
		}
		shown := 0.0
		for _, v := range values {
			if !math.IsNaN(v) {
				shown++
			}
		}
		return shown/auditKeys > 1/(1+math.Exp(e))
	})
	return int64(max(0, often-1)), err
}

// selectionUnits is how many units a group needs at most until a private key is shown half of the time: the crossover of Desfontaines
// et al. 2022, Theorem 1, and a margin.
func selectionUnits(epsilon float64) int {
	return 3 + int(math.Log(math.Expm1(epsilon)/((math.Exp(epsilon)+1)*selectionDelta))/epsilon)
}

// once asks about one table once.
func (u *auditor) once(ctx context.Context, p auditProbe, epsilon, table string, units int64) ([]float64, api.Amounts, error) {
	q := p.question(epsilon, u.schema+"."+table, units, u.asked.Add(1))
	q.Dataset = u.dataset
	answer, err := u.ask(ctx, q)
	if err != nil {
		return nil, api.Amounts{}, questionError{err, q.SQL}
	}
	if answer.Replayed {
		return nil, api.Amounts{}, errors.New("the gateway replayed an answer to a new question")
	}
	values, err := p.values(answer)
	return values, answer.Spent, err
}
