package collect

import (
	"context"
	"errors"
	"strconv"

	"noisegate.example/api"
	"noisegate.example/gateway/auth"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
	"noisegate.example/mechanisms/local"
)

// Gate admits requests that cost work, a few of each caller at a time.
type Gate interface {
	Enter(context.Context, auth.Principal) (release func(), err error)
}

// Service collects and estimates. It is safe for concurrent use.
type Service struct {
	gate  Gate
	store *Store
}

// New checks that nothing is missing.
func New(gate Gate, store *Store) (*Service, error) {
	if gate == nil || store == nil {
		return nil, errors.New("collect: a part of the service is missing")
	}
	return &Service{gate, store}, nil
}

// Define defines what devices report. The same definition again changes nothing; another one under the same name is
// collect/redefined: devices have randomised for the first. For stewards.
func (s *Service) Define(ctx context.Context, who auth.Principal, name string, d api.CollectionDefinition) (*api.Collection, error) {
	q, err := newQuestion(name, d)
	if err != nil {
		return nil, err
	}
	c, err := s.store.define(ctx, q, who.Subject)
	if err != nil {
		return nil, err
	}
	return &api.Collection{Collection: name, Kind: q.Kind, Domain: q.Domain, Low: q.Low, High: q.High, Mechanism: q.Mechanism,
		Epsilon: q.Epsilon, Rounds: q.Rounds, EnrolmentKey: q.EnrolmentKey, DefinedAt: c.definedAt.UTC()}, nil
}

// Client is what a device needs to know: exact parameters and test vectors.
func (s *Service) Client(ctx context.Context, name string) (*api.CollectionClient, error) {
	c, err := s.store.collection(ctx, name)
	if err != nil {
		return nil, err
	}
	return c.client(), nil
}

// Estimate estimates from the reports of a round, the first for "", with intervals of a confidence, 0.95 for "".
func (s *Service) Estimate(ctx context.Context, name, round, confidence string) (*api.CollectionEstimate, error) {
	c, err := s.store.collection(ctx, name)
	if err != nil {
		return nil, err
	}
	level, number := 0.95, int64(1)
	if confidence != "" {
		if level, err = strconv.ParseFloat(confidence, 64); err != nil || !(level > 0 && level < 1) {
			return nil, fault.RequestConfidence("a number between 0 and 1")
		}
	}
	if round != "" {
		if number, err = strconv.ParseInt(round, 10, 64); err != nil || number < 1 || number > c.question.Rounds {
			return nil, fault.CollectRound(c.question.Rounds)
		}
	}
	tally, err := s.store.tally(ctx, c, number)
	if err != nil {
		return nil, err
	}
	if !c.protocol.Fits(tally) {
		return nil, fault.DataUnavailable(errors.New("collect: a tally is not one of its collection"))
	}
	out := &api.CollectionEstimate{Collection: name, Kind: c.question.Kind, Mechanism: c.question.Mechanism, Epsilon: c.question.Epsilon,
		Round: number, Reports: tally.Reports, Confidence: level, Estimates: []api.DeviceEstimate{}}
	for i, e := range c.protocol.Estimate(tally, mechanisms.Confidence(level)) {
		shown := api.DeviceEstimate{Estimate: c.inUnits(e.Value), SD: e.SD * c.width(),
			Interval: [2]float64{c.inUnits(e.Low), c.inUnits(e.High)}}
		if len(c.question.Domain) > 0 {
			shown.Of = c.question.Domain[i]
		}
		out.Estimates = append(out.Estimates, shown)
	}
	return out, nil
}

// width is how long the range of a number is; 1 for what has no range.
func (c *collection) width() float64 {
	if c.question.Kind != string(local.Number) {
		return 1
	}
	low, high := c.ends()
	return high - low
}

// inUnits is a part of the range as a number; counts and probabilities stay as they are.
func (c *collection) inUnits(part float64) float64 {
	if c.question.Kind != string(local.Number) {
		return part
	}
	low, high := c.ends()
	return low + part*(high-low)
}

func (c *collection) ends() (low, high float64) {
	low, _ = c.bounds.Low.Float64()
	high, _ = c.bounds.High.Float64()
	return low, high
}
