package labels

import (
	"context"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"

	"noisegate.example/api"
	"noisegate.example/budget/accounting"
	"noisegate.example/gateway"
	"noisegate.example/gateway/auth"
	"noisegate.example/gateway/internal/amounts"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
	"noisegate.example/pate"
)

// labelDelta is the δ at which the ρ of labels is shown as an ε when the request names none: what the papers on PATE use for MNIST.
const labelDelta = mechanisms.DeltaUnit / 100_000

// Estimate prices labels without buying any. It is free, looks at no vote and depends on none.
func (s *Service) Estimate(ctx context.Context, who auth.Principal, name string,
	r api.LabelEstimateRequest) (_ *api.LabelEstimate, err error) {
	release, err := s.gateway.Enter(ctx, who)
	if err != nil {
		return nil, err
	}
	defer release()
	version, err := s.sealedEnsemble(ctx, name)
	if err != nil {
		return nil, err
	}
	defer func() { s.gateway.CountRefusal(version.Dataset, who, gateway.Estimated, err) }()
	settings := settingsOf(api.LabelRequest{
		Mechanism: r.Mechanism, NoiseScale: r.NoiseScale, Sigma: r.Sigma, Sigma1: r.Sigma1, Sigma2: r.Sigma2, Threshold: r.Threshold,
		Gamma: r.Gamma, StudentConfidence: r.StudentConfidence, Return: r.Return,
	})
	mode, err := pate.NewMode(version.Ensemble, settings)
	if err != nil {
		return nil, err
	}
	o, shares, err := s.order(ctx, who, version, "", nil)
	if err != nil {
		return nil, err
	}
	e := &api.LabelEstimate{Ensemble: version.Name, Version: version.Number, Terms: termsOf(mode),
		Remaining: amounts.Headroom(o.Accounts.Own())}
	if e.Queries, e.Replayed, err = s.countQueries(ctx, version, mode, r, shares, pate.Buyer(who.Subject)); err != nil {
		return nil, err
	}
	rate, delta, err := assumptions(r)
	if err != nil {
		return nil, err
	}
	n, delay := e.Queries-e.Replayed, o.Delay
	switch {
	case o.Untimed != nil:
		return nil, o.Untimed
	case n == 0:
		delay = nil
	}
	worst := mode.WorstCase(n).Plus(delay.Loss())
	e.WorstCase, e.Expected = amounts.Of(worst), amounts.Of(settled(mode, n, int64(math.Ceil(rate*float64(n))), n).Plus(delay.Loss()))
	e.Delta = api.Decimal(delta.String())
	if epsilon, ok := epsilonAt(worst, delta); ok {
		e.Epsilon = api.Decimal(epsilon.String())
	}
	own := amounts.Released(o.Accounts.Own(), s.gateway.Now()) // what is left of accounts that are shared shows what others spent
	e.Affordable = amounts.Affordable(own, worst)
	e.StillBuys = stillBuys(own, delay, mode)
	if e.EpsilonBuys, err = epsilonBuys(r.Epsilon, delta, mode.WorstCase(1)); err != nil {
		return nil, err
	}
	if r.UpTo != nil {
		if e.Curve, err = curve(mode, delta, *r.UpTo); err != nil {
			return nil, err
		}
	}
	e.Notes = delay.Note(labelNotes(version.Ensemble, mode))
	return e, nil
}

// curvePoints is at how many numbers of labels a curve says ε.
const curvePoints = 50

// curve is ε after up to n labels under a mode, by each accountant that looks at no vote.
func curve(mode *pate.Mode, delta mechanisms.AttoDelta, n int64) (*api.EpsilonCurve, error) {
	if n < 1 || n > pate.MaxQueries {
		return nil, fault.PateParameters(fmt.Sprintf("up_to must be from 1 to %d", pate.MaxQueries))
	}
	shown := &api.EpsilonCurve{Lines: []api.AnalysisLine{}}
	for i := range int64(curvePoints) {
		if at := (i + 1) * n / curvePoints; at > 0 && !slices.Contains(shown.Points, at) {
			shown.Points = append(shown.Points, at)
		}
	}
	at, _ := delta.Rat().Float64()
	for _, l := range mode.Independent(shown.Points, at) {
		shown.Lines = append(shown.Lines, lineOf(l))
	}
	return shown, nil
}

// countQueries says how many queries are meant, and how many of them are free: those that the buyer paid for, and,
// where the buyer is given what others did, all that were released. Else nothing of others is read. A student's view is
// not known yet, so that interactive queries are never free here.
func (s *Service) countQueries(ctx context.Context, version *pate.Version, mode *pate.Mode, r api.LabelEstimateRequest,
	shares bool, buyer pate.Buyer) (n, replayed int64, err error) {
	switch {
	case (r.Count == nil) == (len(r.Queries) == 0):
		return 0, 0, fault.PateParameters("either queries or count must be given")
	case r.Count != nil && (*r.Count < 1 || *r.Count > pate.MaxQueries) || len(r.Queries) > maxBatch:
		return 0, 0, fault.PateParameters(fmt.Sprintf("count must be from 1 to %d, queries at most %d", pate.MaxQueries, maxBatch))
	case r.Count != nil:
		return *r.Count, 0, nil
	}
	question, err := pate.QuestionOf(mode, pate.Student{})
	if err != nil {
		return 0, 0, err
	}
	keys, about, asked := once(r.Queries), []pate.Question{question}, []pate.Asked(nil)
	if shares {
		asked, err = s.ensembles.Find(ctx, version, buyer, keys, about, true)
	} else {
		asked, err = s.ensembles.Owned(ctx, version, buyer, keys, about)
	}
	if err != nil {
		return 0, 0, err
	}
	for _, a := range asked {
		if a.Owned || a.Outcome != nil {
			replayed++
		}
	}
	return int64(len(keys)), replayed, nil
}

// assumptions reads the assumed rate of answers and the δ.
func assumptions(r api.LabelEstimateRequest) (rate float64, delta mechanisms.AttoDelta, err error) {
	rate = 1
	if r.AnswerRate != nil {
		if rate = *r.AnswerRate; !(rate >= 0 && rate <= 1) {
			return 0, 0, fault.PateParameters("answer_rate must be from 0 to 1")
		}
	}
	delta, err = deltaOf(r.Delta)
	return rate, delta, err
}

// deltaOf is the δ that a request names, or the usual one.
func deltaOf(text api.Decimal) (mechanisms.AttoDelta, error) {
	if text == "" {
		return labelDelta, nil
	}
	delta, err := mechanisms.ParseDelta(string(text))
	if err != nil || delta == 0 {
		return 0, fault.RequestDelta(`a decimal number above 0 and below 1, such as "1e-5"`)
	}
	return delta, nil
}

// epsilonAt is the smaller of the pure ε, where there is one, and of what ρ comes to at δ.
func epsilonAt(l mechanisms.Loss, delta mechanisms.AttoDelta) (mechanisms.PicoEpsilon, bool) {
	epsilon, ok := accounting.EpsilonFor(l.Rho, delta)
	if !l.Unbounded && (!ok || l.Epsilon < epsilon) {
		return l.Epsilon, true
	}
	return epsilon, ok
}

// epsilonBuys is how many labels an ε pays for at δ, when all of them are answered: the answer to "how many labels for ε 2 at σ 40?".
func epsilonBuys(text api.Decimal, delta mechanisms.AttoDelta, each mechanisms.Loss) (*int64, error) {
	if text == "" {
		return nil, nil
	}
	epsilon, err := mechanisms.ParseEpsilon(string(text))
	if err != nil || epsilon == 0 {
		return nil, gateway.WrongType("epsilon")
	}
	n := int64(accounting.RhoFor(epsilon, delta)) / max(int64(each.Rho), 1)
	if !each.Unbounded {
		n = max(n, int64(epsilon)/max(int64(each.Epsilon), 1))
	}
	return &n, nil
}

// doubtful is how likely a unanimous vote may be overturned by the noise before an estimate warns.
const doubtful = 0.01

// labelNotes warns of parameters under which labels say little, whatever the votes. Only public numbers are looked at.
func labelNotes(e pate.Ensemble, m *pate.Mode) []api.Note {
	notes := []api.Note{}
	number := func(text string) float64 {
		r, ok := new(big.Rat).SetString(text)
		if !ok {
			return 0
		}
		f, _ := r.Float64()
		return f
	}
	s, teachers := m.Settings(), float64(e.Teachers())
	rivals := float64(e.ClassCount() - 1)
	overturned := 0.0 // how likely another class wins a unanimous vote: a union over the others
	var noise string
	switch s.Mode {
	case pate.LNMax:
		gap := teachers / number(s.NoiseScale)
		overturned, noise = rivals*(2+gap)/4*math.Exp(-gap), "noise_scale "+s.NoiseScale
	case pate.GNMax:
		overturned, noise = rivals*math.Erfc(teachers/(2*number(s.Sigma)))/2, "sigma "+s.Sigma
	case pate.Confident, pate.Interactive:
		overturned, noise = rivals*math.Erfc(teachers/(2*number(s.Sigma2)))/2, "sigma2 "+s.Sigma2
	case pate.Gumbel:
		overturned, noise = rivals*math.Exp(-teachers*number(s.Gamma)), "gamma "+s.Gamma
	default:
	}
	if overturned = min(overturned, rivals/(rivals+1)); overturned > doubtful {
		notes = append(notes, api.Note{Code: "noise-too-large", Text: fmt.Sprintf(
			"%s is much for %d teachers: even where all agree, the label is another one with probability up to %s",
			noise, e.Teachers(), strconv.FormatFloat(overturned, 'g', 2, 64))})
	}
	if slices.Contains([]pate.ModeName{pate.Confident, pate.Interactive}, s.Mode) {
		if short := number(s.Threshold) - teachers; short > 0 {
			notes = append(notes, api.Note{Code: "threshold-too-high", Text: fmt.Sprintf(
				"a threshold above the %d teachers is reached by noise alone", e.Teachers())})
		}
	}
	return notes
}
