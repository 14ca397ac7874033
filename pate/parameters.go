package pate

import (
	"errors"
	"math/big"
	"slices"
	"strings"

	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
)

// ModeName names a mode of labelling.
type ModeName string

// The modes.
const (
	LNMax       ModeName = "lnmax"       // argmax of counts with Laplace noise
	GNMax       ModeName = "gnmax"       // argmax of counts with Gaussian noise
	Confident   ModeName = "confident"   // GNMax where the noisy largest count reaches a threshold; else no answer
	Interactive ModeName = "interactive" // GNMax where teachers disagree with the student; else the student's label, or none
	Gumbel      ModeName = "gumbel"      // exponential mechanism on counts
)

// Return says what an answered query releases.
type Return string

// What may be released.
const (
	ReturnLabel     Return = "label"
	ReturnHistogram Return = "histogram" // every noisy count; costs no more where the noise is added to each of them
)

// Settings are the parameters of a mode as requests write them: decimal text, empty where not given. They are named by the noise.
type Settings struct {
	Mode              ModeName `json:"mechanism"`
	NoiseScale        string   `json:"noise_scale,omitempty"`        // lnmax: b of the Laplace noise
	Sigma             string   `json:"sigma,omitempty"`              // gnmax: σ of the Gaussian noise
	Sigma1            string   `json:"sigma1,omitempty"`             // confident, interactive: σ of the check
	Sigma2            string   `json:"sigma2,omitempty"`             // confident, interactive: σ of the answer
	Threshold         string   `json:"threshold,omitempty"`          // confident, interactive: votes that the check asks for
	Gamma             string   `json:"gamma,omitempty"`              // gumbel: rate of the exponential mechanism
	StudentConfidence string   `json:"student_confidence,omitempty"` // interactive: above it the student's own label stands
	Return            Return   `json:"return,omitempty"`             // empty stands for label
}

// fields are the numeric settings by name, and which modes take them.
func (s Settings) fields() []settingsField {
	two := []ModeName{Confident, Interactive}
	return []settingsField{
		{"noise_scale", s.NoiseScale, []ModeName{LNMax}},
		{"sigma", s.Sigma, []ModeName{GNMax}},
		{"sigma1", s.Sigma1, two},
		{"sigma2", s.Sigma2, two},
		{"threshold", s.Threshold, two},
		{"gamma", s.Gamma, []ModeName{Gumbel}},
		{"student_confidence", s.StudentConfidence, []ModeName{Interactive}},
	}
}

type settingsField struct {
	name, text string
	modes      []ModeName
}

// parse reads the numbers that the mode takes and refuses the others. Magnitudes are bounded so that exact arithmetic stays fast and
// no loss leaves the ledger's range.
func (s Settings) parse() (map[string]*big.Rat, error) {
	if !slices.Contains([]ModeName{LNMax, GNMax, Confident, Interactive, Gumbel}, s.Mode) {
		return nil, fault.PateParameters("mechanism is lnmax, gnmax, confident, interactive or gumbel")
	}
	numbers := map[string]*big.Rat{}
	var missing []string
	for _, f := range s.fields() {
		takes := slices.Contains(f.modes, s.Mode)
		switch {
		case !takes && f.text != "":
			return nil, fault.PateParameters(f.name + " is not a parameter of " + string(s.Mode))
		case takes && f.text == "":
			missing = append(missing, f.name)
			continue
		case !takes:
			continue
		}
		x, err := mechanisms.ParseDecimal(f.text)
		if err != nil {
			return nil, fault.PateParameters(f.name + " is " + err.Error())
		}
		if err := checkNumber(f.name, x); err != nil {
			return nil, err
		}
		numbers[f.name] = x
	}
	if missing != nil {
		return nil, fault.PateParameters(string(s.Mode) + " needs " + strings.Join(missing, ", "))
	}
	return numbers, nil
}

var errNotSetting = errors.New("pate: no such setting")

// checkNumber bounds one setting.
func checkNumber(name string, x *big.Rat) error {
	within := func(lo, hi *big.Rat) bool { return x.Cmp(lo) >= 0 && x.Cmp(hi) <= 0 }
	switch name {
	case "noise_scale", "sigma", "sigma1", "sigma2", "gamma":
		if !within(big.NewRat(1, 1_000_000), big.NewRat(1_000_000_000, 1)) {
			return fault.PateParameters(name + " is from 0.000001 to 1000000000")
		}
	case "threshold":
		if !within(new(big.Rat), big.NewRat(1_000_000_000, 1)) {
			return fault.PateParameters(name + " is from 0 to 1000000000")
		}
	case "student_confidence":
		if !within(new(big.Rat), big.NewRat(1, 1)) {
			return fault.PateParameters(name + " is from 0 to 1")
		}
	default:
		return fault.Internal(errNotSetting)
	}
	return nil
}
