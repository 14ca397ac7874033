package main

import (
	"context"
	"encoding/json"
	"errors"
	"math/big"
	"os"
	"slices"

	"noisegate.example/api"
	"noisegate.example/mechanisms"
	"noisegate.example/mechanisms/local"
)

type collectRandomizeCommand struct {
	Spec string `required:"" type:"existingfile" help:"What collect client printed." placeholder:"FILE"`
}

// deviceValue is a line of standard input: who it is, and its own value.
type deviceValue struct {
	Device string          `json:"device"`
	Token  string          `json:"token"`
	Round  int64           `json:"round"`
	Value  json.RawMessage `json:"value"`
}

func (c *collectRandomizeCommand) run(_ context.Context, a *app) error {
	text, err := os.ReadFile(c.Spec)
	if err != nil {
		return usage(err)
	}
	var spec api.CollectionClient
	if err := json.Unmarshal(text, &spec); err != nil {
		return usage(errors.New("--spec: this is not what collect client printed"))
	}
	d, err := newDevice(spec)
	if err != nil {
		return usage(err)
	}
	sampler := mechanisms.NewSampler()
	return a.eachLine(func(line []byte) (any, error) {
		var v deviceValue
		if err := readLine(line, &v); err != nil {
			return nil, err
		}
		truth, err := d.truth(v.Value)
		if err != nil {
			return nil, err
		}
		report, err := d.protocol.Report(sampler, truth)
		return api.DeviceReport{Device: v.Device, Token: v.Token, Round: v.Round, Report: report}, err
	})
}

// device is the reference client. It does not know what a gateway makes of reports, and trusts none: parameters are its own.
type device struct {
	spec     api.CollectionClient
	protocol *local.Protocol
	bounds   local.Range // of a number
}

var errSpec = errors.New("the parameters are not those of the mechanism at this epsilon: who made them may learn more than they say")

// newDevice makes the randomiser that a spec names, and refuses a spec whose parameters or examples are not that one's.
func newDevice(spec api.CollectionClient) (*device, error) {
	d := &device{spec: spec}
	epsilon, err := mechanisms.ParseEpsilon(string(spec.Epsilon))
	if err != nil {
		return nil, err
	}
	size := len(spec.Domain)
	if spec.Kind == string(local.Number) {
		size = 1
		if d.bounds, err = local.ParseRange(string(spec.Low), string(spec.High)); err != nil {
			return nil, err
		}
	}
	d.protocol, err = local.New(local.Parameters{Kind: local.Kind(spec.Kind), Mechanism: local.Mechanism(spec.Mechanism),
		Epsilon: epsilon, Size: size})
	if err != nil {
		return nil, err
	}
	constants := d.protocol.Constants()
	for _, own := range constants {
		if spec.Constants[own.Name] != own.Value.RatString() {
			return nil, errSpec
		}
	}
	for i, own := range d.protocol.Examples() {
		if i >= len(spec.Examples) || !slices.Equal(spec.Examples[i].Report, own.Report) || len(spec.Constants) != len(constants) {
			return nil, errSpec
		}
	}
	return d, nil
}

// truth is a value as the protocol takes it. Its errors do not quote the value.
func (d *device) truth(value json.RawMessage) ([]int64, error) {
	switch local.Kind(d.spec.Kind) {
	case local.Choice:
		var name string
		if json.Unmarshal(value, &name) != nil || !slices.Contains(d.spec.Domain, name) {
			return nil, errors.New("the value is none of the domain")
		}
		return []int64{int64(slices.Index(d.spec.Domain, name))}, nil
	case local.Number:
		var number json.Number
		if json.Unmarshal(value, &number) != nil {
			return nil, errors.New("the value is not a number")
		}
		x, err := local.ParseNumber(number.String())
		if err != nil {
			return nil, errors.New("the value is not a number of at most 40 digits and an exponent within 30")
		}
		return []int64{d.bounds.Steps(x)}, nil
	default:
		var numbers []json.Number
		if json.Unmarshal(value, &numbers) != nil || len(numbers) != len(d.spec.Domain) {
			return nil, errors.New("the value is not a list with a probability for each coordinate")
		}
		probabilities := make([]*big.Rat, len(numbers))
		for i, n := range numbers {
			var err error
			if probabilities[i], err = local.ParseNumber(n.String()); err != nil {
				return nil, errors.New("a probability is not a number of at most 40 digits and an exponent within 30")
			}
		}
		return local.Simplex(probabilities)
	}
}
