package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"

	"noisegate.example/api"
	"noisegate.example/budget/accounting"
	"noisegate.example/mechanisms"
)

// calcCommands compute with noise and budgets. They need no gateway and touch no data.
type calcCommands struct {
	Error   calcErrorCommand   `cmd:"" help:"The error that a price buys."`
	Epsilon calcEpsilonCommand `cmd:"" help:"The price that an error costs."`
	Compose calcComposeCommand `cmd:"" help:"What a list of releases costs together, by every accountant."`
}

// noiseFlags describe one released number.
type noiseFlags struct {
	Sensitivity int64   `default:"1" help:"How much one person can move the number." placeholder:"N"`
	Confidence  float64 `default:"0.95" help:"Level of the interval." placeholder:"P"`
	Delta       string  `default:"1e-6" help:"The delta at which rho is shown as an epsilon." placeholder:"D"`
	JSON        bool    `name:"json" help:"Print JSON."`
}

func (f noiseFlags) check() (mechanisms.AttoDelta, error) {
	switch delta, err := mechanisms.ParseDelta(f.Delta); {
	case err != nil:
		return 0, usage(fmt.Errorf("--delta: %w", err))
	case delta <= 0 || delta >= mechanisms.DeltaUnit:
		return 0, usage(errors.New("--delta must be between 0 and 1"))
	case f.Sensitivity <= 0:
		return 0, usage(errors.New("--sensitivity must be at least 1"))
	case !(f.Confidence > 0 && f.Confidence < 1):
		return 0, usage(errors.New("--confidence must be between 0 and 1"))
	default:
		return delta, nil
	}
}

// noisePrice is one mechanism with its price and its error.
type noisePrice struct {
	Mechanism string      `json:"mechanism"`
	Epsilon   api.Decimal `json:"epsilon,omitempty"` // pure
	Rho       api.Decimal `json:"rho"`
	AtDelta   api.Decimal `json:"epsilon_at_delta"` // of the ρ
	HalfWidth json.Number `json:"half_width"`
	Rows      json.Number `json:"rows,omitempty"` // at which the error is the wanted part of a count
}

func (f noiseFlags) price(m mechanisms.Additive, delta mechanisms.AttoDelta) noisePrice {
	loss := m.Loss()
	p := noisePrice{Mechanism: string(m.Name()), Rho: api.Decimal(loss.Rho.String()),
		HalfWidth: json.Number(m.HalfWidth(mechanisms.Confidence(f.Confidence)).String())}
	if !loss.Unbounded {
		p.Epsilon = api.Decimal(loss.Epsilon.String())
	}
	if eps, ok := accounting.EpsilonFor(loss.Rho, delta); ok {
		if !loss.Unbounded {
			eps = min(eps, loss.Epsilon)
		}
		p.AtDelta = api.Decimal(eps.String())
	}
	return p
}

func (f noiseFlags) laplace(epsilon mechanisms.PicoEpsilon, rho mechanisms.PicoRho) (mechanisms.Additive, error) {
	return mechanisms.NewLaplace(mechanisms.LaplaceParameters{L1: big.NewInt(f.Sensitivity), Epsilon: epsilon, Rho: rho})
}

func (f noiseFlags) gaussian(rho mechanisms.PicoRho) (mechanisms.Additive, error) {
	square := big.NewInt(f.Sensitivity)
	return mechanisms.NewGaussian(mechanisms.GaussianParameters{L2Squared: square.Mul(square, square), Rho: rho})
}

// show prints prices. relative is the wanted part of a count that the error may be, or nil.
func (f noiseFlags) show(a *app, prices []noisePrice, relative *big.Rat) error {
	heads := []string{"mechanism", "epsilon", "rho", "epsilon at delta " + f.Delta, "± " + percent(f.Confidence)}
	if relative != nil {
		heads = append(heads, "rows")
		for i := range prices {
			prices[i].Rows = rowsFor(prices[i].HalfWidth, relative)
		}
	}
	if f.JSON {
		return printJSON(a.Out, map[string]any{"confidence": f.Confidence, "delta": api.Decimal(f.Delta), "prices": prices})
	}
	t := &table{grouped: a.terminal}
	t.header(heads...)
	for _, p := range prices {
		cells := []string{p.Mechanism, up.shorten(p.Epsilon), up.shorten(p.Rho), up.shorten(p.AtDelta), string(p.HalfWidth), string(p.Rows)}
		t.row(cells[:len(heads)]...)
	}
	t.write(a.Out)
	return nil
}

// rowsFor is the smallest count such that the half-width is at most the given part of it.
func rowsFor(halfWidth json.Number, part *big.Rat) json.Number {
	rows, _ := new(big.Rat).SetString(halfWidth.String())
	rows.Quo(rows, part)
	n := new(big.Int).Neg(rows.Num())
	return json.Number(n.Neg(n.Div(n, rows.Denom())).String()) // Div rounds down
}

type calcErrorCommand struct {
	Epsilon  string `help:"Price in epsilon." placeholder:"E" xor:"price" required:""`
	Rho      string `help:"Price in rho." placeholder:"R" xor:"price" required:""`
	Relative string `help:"Show also how many rows a count needs so that the error is at most this part of it." placeholder:"0.01"`
	noiseFlags
}

func (c *calcErrorCommand) run(_ context.Context, a *app) error {
	delta, err := c.check()
	if err != nil {
		return err
	}
	relative, err := optionalPart(c.Relative)
	if err != nil {
		return err
	}
	var epsilon mechanisms.PicoEpsilon
	var rho mechanisms.PicoRho
	if c.Epsilon != "" {
		if epsilon, err = mechanisms.ParseEpsilon(c.Epsilon); err != nil {
			return usage(fmt.Errorf("--epsilon: %w", err))
		}
	} else if rho, err = mechanisms.ParseRho(c.Rho); err != nil {
		return usage(fmt.Errorf("--rho: %w", err))
	}
	laplace, err := c.laplace(epsilon, rho)
	if err != nil {
		return usage(err)
	}
	if epsilon > 0 {
		rho = accounting.RhoFor(epsilon, delta)
	}
	prices := []noisePrice{c.price(laplace, delta)}
	// At the same ε with δ, or at the same ρ.
	if gaussian, err := c.gaussian(rho); err == nil {
		prices = append(prices, c.price(gaussian, delta))
	}
	return c.show(a, prices, relative)
}

func optionalPart(text string) (*big.Rat, error) {
	if text == "" {
		return nil, nil
	}
	part, err := mechanisms.ParseDecimal(text)
	if err != nil || part.Sign() <= 0 || part.Cmp(big.NewRat(1, 1)) > 0 {
		return nil, usage(errors.New("--relative must be more than 0 and at most 1"))
	}
	return part, nil
}

type calcEpsilonCommand struct {
	Error string `help:"The half-width of the interval: a number, or with --rows a part of that many rows." placeholder:"T" required:""`
	Rows  int64  `help:"The number of rows that the error is a part of." placeholder:"N"`
	noiseFlags
}

func (c *calcEpsilonCommand) run(_ context.Context, a *app) error {
	delta, err := c.check()
	if err != nil {
		return err
	}
	wanted, err := mechanisms.ParseDecimal(c.Error)
	if err != nil {
		return usage(fmt.Errorf("--error: %w", err))
	}
	if c.Rows < 0 {
		return usage(errors.New("--rows must be positive"))
	}
	if c.Rows > 0 {
		wanted.Mul(wanted, big.NewRat(c.Rows, 1))
	}
	limit := new(big.Int).Quo(wanted.Num(), wanted.Denom()) // released numbers are whole
	laplace, err := c.cheapest(limit, func(price int64) (mechanisms.Additive, error) { return c.laplace(mechanisms.PicoEpsilon(price), 0) })
	if err != nil {
		return err
	}
	gaussian, err := c.cheapest(limit, func(price int64) (mechanisms.Additive, error) { return c.gaussian(mechanisms.PicoRho(price)) })
	if err != nil {
		return err
	}
	return c.show(a, []noisePrice{c.price(laplace, delta), c.price(gaussian, delta)}, nil)
}

// cheapest is the mechanism with the least price, in whole units, whose half-width keeps to the limit.
func (f noiseFlags) cheapest(limit *big.Int, at func(price int64) (mechanisms.Additive, error)) (mechanisms.Additive, error) {
	const unit, most = int64(mechanisms.EpsilonUnit), accounting.MaxAmount
	var best mechanisms.Additive
	for lo, hi := int64(0), most*unit+1; lo+1 < hi; {
		price := lo + (hi-lo)/2
		m, err := at(price)
		if err != nil {
			return nil, usage(err)
		}
		if m.HalfWidth(mechanisms.Confidence(f.Confidence)).Cmp(limit) <= 0 {
			hi, best = price, m
		} else {
			lo = price
		}
	}
	if best == nil {
		return nil, usage(fmt.Errorf("no epsilon up to %d is enough", most))
	}
	return best, nil
}

type calcComposeCommand struct {
	Releases []string `arg:"" help:"KIND:PARAMETER or KIND:PARAMETERxTIMES. Kinds: laplace:EPSILON, gaussian:SIGMA (on whole numbers that one person moves by 1), pure:EPSILON, exponential:EPSILON, zcdp:RHO, selection:EPSILON/DELTA."`
	Delta    string   `default:"1e-6" help:"The delta of the promise." placeholder:"D"`
	People   int64    `default:"1" help:"The promise to that many people together, such as a household." placeholder:"N"`
	Sampled  string   `help:"The table is a secret random sample that took each person of a population with this probability." placeholder:"Q"`
	JSON     bool     `name:"json" help:"Print JSON."`
}

// composition is the answer of calc compose.
type composition struct {
	Delta  api.Decimal        `json:"delta"`
	Rho    api.Decimal        `json:"rho"` // null: beyond what is counted
	Totals []compositionTotal `json:"totals"`
}

type compositionTotal struct {
	Accountant string      `json:"accountant"`
	Epsilon    api.Decimal `json:"epsilon,omitempty"` // absent: none
	Delta      api.Decimal `json:"delta,omitempty"`
	Adaptive   bool        `json:"adaptive"` // holds when each release is chosen in the light of earlier answers
}

func (c *calcComposeCommand) run(_ context.Context, a *app) error {
	delta, err := noiseFlags{Sensitivity: 1, Confidence: 0.95, Delta: c.Delta}.check()
	if err != nil {
		return err
	}
	if c.People < 1 {
		return usage(errors.New("--people must be at least 1"))
	}
	rate, err := optionalPart(c.Sampled)
	if err != nil {
		return usage(errors.New("--sampled must be more than 0 and at most 1"))
	}
	var list []accounting.Repeated
	for _, text := range c.Releases {
		r, err := parseRelease(text)
		if err != nil {
			return usage(fmt.Errorf("%s: %w", text, err))
		}
		list = append(list, r)
	}
	totals, loss := accounting.Compare(list, delta)
	out := composition{Delta: api.Decimal(delta.String())}
	if loss.Rho < math.MaxInt64 { // sums saturate there
		out.Rho = api.Decimal(loss.Rho.String())
	}
	for _, t := range totals {
		out.Totals = append(out.Totals, c.promise(t, rate))
	}
	if c.JSON {
		return printJSON(a.Out, out)
	}
	out.show(a)
	return nil
}

// promise is a total as it concerns a group of people, or a population.
func (c *calcComposeCommand) promise(t accounting.Total, rate *big.Rat) compositionTotal {
	out := compositionTotal{Accountant: string(t.Accountant), Adaptive: t.Filter}
	if !t.Finite {
		return out
	}
	out.Epsilon, out.Delta = api.Decimal(t.Epsilon.String()), api.Decimal(t.Delta.String())
	if c.People == 1 && rate == nil {
		return out
	}
	eps, _ := t.Epsilon.Rat().Float64()
	d, _ := t.Delta.Rat().Float64()
	if rate != nil {
		q, _ := rate.Float64()
		eps, d = accounting.SampledLoss(eps, d, q)
	}
	if c.People > 1 {
		eps, d = accounting.GroupLoss(eps, d, c.People)
	}
	out.Epsilon, out.Delta = roundedUpDecimal(eps), roundedUpDecimal(d)
	return out
}

// roundedUpDecimal is x with nine digits, rounded up.
func roundedUpDecimal(x float64) api.Decimal {
	return api.Decimal(strconv.FormatFloat(x*(1+1e-8), 'g', 9, 64))
}

func (c composition) show(a *app) {
	t := &table{grouped: a.terminal}
	t.header("accountant", "epsilon", "delta", "queries may adapt to answers")
	for _, total := range c.Totals {
		adaptive := "no: for a plan fixed in advance"
		if total.Adaptive {
			adaptive = "yes"
		}
		epsilon := "none"
		if total.Epsilon != "" {
			epsilon = up.shorten(total.Epsilon)
		}
		t.row(total.Accountant, epsilon, string(total.Delta), adaptive)
	}
	t.write(a.Out)
	rho := "beyond 10⁶"
	if c.Rho != "" {
		rho = up.shorten(c.Rho)
	}
	fmt.Fprintf(a.Out, " rho %s\n", rho)
}

// parseRelease reads KIND:PARAMETER or KIND:PARAMETERxTIMES.
func parseRelease(text string) (accounting.Repeated, error) {
	kind, rest, _ := strings.Cut(text, ":")
	parameter, count, repeated := strings.Cut(rest, "x")
	r := accounting.Repeated{Times: 1}
	if repeated {
		n, err := strconv.ParseInt(count, 10, 64)
		if err != nil || n < 1 || n > 1e9 {
			return r, errors.New("how often must be between 1 and 10^9")
		}
		r.Times = n
	}
	parameter, second, _ := strings.Cut(parameter, "/")
	x, err := mechanisms.ParseDecimal(parameter)
	if err == nil && x.Sign() == 0 {
		err = errors.New("the parameter must be positive")
	}
	if err != nil {
		return r, err
	}
	if second != "" && kind != "selection" {
		return r, errors.New("only a selection has a second parameter")
	}
	switch kind {
	case "laplace":
		r.Event, err = accounting.DiscreteLaplaceEvent(big.NewInt(1), x.Inv(x))
	case "gaussian":
		r.Event, err = accounting.DiscreteGaussianEvent(big.NewInt(1), x.Mul(x, x))
	case "pure":
		r.Event, err = accounting.PureEvent(x)
	case "exponential":
		r.Event, err = accounting.RangeEvent(x)
	case "zcdp":
		r.Event, err = accounting.ZCDPEvent(x)
	case "selection":
		var d *big.Rat
		if d, err = mechanisms.ParseDecimal(second); err == nil {
			r.Event, err = accounting.ApproxEvent(x, d)
		}
	default:
		err = errors.New("the kind must be laplace, gaussian, pure, exponential, zcdp or selection")
	}
	return r, err
}
