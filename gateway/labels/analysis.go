package labels

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"noisegate.example/api"
	"noisegate.example/budget"
	"noisegate.example/gateway"
	"noisegate.example/gateway/auth"
	"noisegate.example/gateway/internal/amounts"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
	"noisegate.example/pate"
)

// maxExact bounds the queries whose exact divergence one request may ask for: it takes milliseconds a query.
const maxExact = 2000

// run is a list of queries under one mode, and what became of them.
type run struct {
	version  *pate.Version
	mode     *pate.Mode
	queries  []int32
	became   []pate.Status // nil: not all of them were released
	students []pate.Student
}

// Analyse says what a run costs by each method of accounting. It reads votes without a charge, and what it says depends on them: it is
// for stewards, who may see the votes themselves, and must not be shown to others. [Service.SanitisedEpsilon] gives
// what may be. It is shown at a boundary of the schedule, since how long it takes depends on votes too.
func (s *Service) Analyse(ctx context.Context, who auth.Principal, name string, r api.AnalysisRequest) (*api.Analysis, error) {
	release, err := s.gateway.Enter(ctx, who)
	if err != nil {
		return nil, err
	}
	defer release()
	delta, err := deltaOf(r.Delta)
	if err != nil {
		return nil, err
	}
	run, err := s.runOf(ctx, name, r)
	if err != nil {
		return nil, err
	}
	if r.Exact && len(run.queries) > maxExact {
		return nil, fault.PateParameters(fmt.Sprintf("the exact divergence is computed for %d queries at most; name some", maxExact))
	}
	// Of many queries it takes longer than a question may; nothing is charged that could fail.
	tick := s.gateway.Schedule(run.version.Dataset).Unlimited()
	at, _ := delta.Rat().Float64()
	analysis, err := gateway.Pace(ctx, tick, func(ctx context.Context) (*pate.Analysis, error) {
		table, err := s.ensembles.Table(ctx, run.version, run.queries)
		if err != nil {
			return nil, err
		}
		return run.mode.Analyse(table, pate.AnalysisParameters{Delta: at, Students: run.students, Outcomes: run.became, Exact: r.Exact})
	})
	if err != nil {
		return nil, err
	}
	shown := &api.Analysis{
		Ensemble: run.version.Name, Version: run.version.Number, Terms: termsOf(run.mode), Queries: len(run.queries), Answered: analysis.Answered,
		Delta: api.Decimal(delta.String()), Points: analysis.Points,
	}
	for _, l := range analysis.Lines {
		shown.Lines = append(shown.Lines, lineOf(l))
	}
	return shown, nil
}

func lineOf(l pate.Line) api.AnalysisLine {
	line := api.AnalysisLine{Method: string(l.Method), Secret: l.Secret, Order: l.Order}
	for _, epsilon := range l.Epsilon {
		line.Epsilon = append(line.Epsilon, api.Number(strconv.FormatFloat(epsilon, 'g', -1, 64)))
	}
	return line
}

// runOf finds the queries of a run: those that are named, all, or all that were released under the parameters.
func (s *Service) runOf(ctx context.Context, name string, r api.AnalysisRequest) (*run, error) {
	version, err := s.sealedEnsemble(ctx, name)
	if err != nil {
		return nil, err
	}
	mode, err := pate.NewMode(version.Ensemble, settingsOf(api.LabelRequest{
		Mechanism: r.Mechanism, NoiseScale: r.NoiseScale, Sigma: r.Sigma, Sigma1: r.Sigma1, Sigma2: r.Sigma2, Threshold: r.Threshold,
		Gamma: r.Gamma, StudentConfidence: r.StudentConfidence,
	}))
	if err != nil {
		return nil, err
	}
	found := &run{version: version, mode: mode}
	switch {
	case r.All && len(r.Queries) > 0:
		return nil, fault.PateParameters("either queries or all may be given")
	case len(r.Queries) > maxBatch:
		return nil, fault.PateParameters(fmt.Sprintf("queries may name %d at most", maxBatch))
	case len(r.Queries) > 0:
		return found, s.namedRun(ctx, found, r)
	case mode.NeedsStudent():
		return nil, fault.PateStudent("an interactive run names its queries, with the student's probabilities of each")
	case r.All:
		for q := range int32(version.Queries) {
			found.queries = append(found.queries, q)
		}
		return found, nil
	}
	question, err := pate.QuestionOf(mode, pate.Student{})
	if err != nil {
		return nil, err
	}
	if found.queries, found.became, err = s.ensembles.Released(ctx, version, question); err == nil && len(found.queries) == 0 {
		err = fault.PateParameters("no label was released under these parameters")
	}
	return found, err
}

// namedRun looks up the queries that a request names.
func (s *Service) namedRun(ctx context.Context, found *run, r api.AnalysisRequest) error {
	// what a steward names need not be the steward's
	b := &batch{version: found.version, mode: found.mode, keys: once(r.Queries), shares: true}
	if err := b.readStudents(r.Student); err != nil {
		return err
	}
	if err := s.find(ctx, b); err != nil {
		return err
	}
	found.students = b.students
	for _, asked := range b.asked {
		found.queries = append(found.queries, asked.Query)
		if asked.Outcome != nil {
			found.became = append(found.became, asked.Outcome.Status)
		}
	}
	if len(found.became) < len(found.queries) {
		found.became = nil
	}
	return nil
}

// SanitisedEpsilon buys the data-dependent ε of a run in a form that may be published. It has noise scaled to its smooth sensitivity, by
// the parameters that the ensemble was defined with. It is charged to the dataset and the ensemble like a release, whatever it says. It is
// drawn once: the same run has the same ε, free, for everyone. For stewards.
func (s *Service) SanitisedEpsilon(ctx context.Context, who auth.Principal, name string, r api.AnalysisRequest) (*EpsilonAnswer, error) {
	release, err := s.gateway.Enter(ctx, who)
	if err != nil {
		return nil, err
	}
	defer release() // after the schedule held
	run, sanitiser, err := s.soldRun(ctx, name, r)
	if err != nil {
		return nil, err
	}
	tick := s.gateway.Schedule(run.version.Dataset)
	question := run.question(sanitiser)
	if stored, err := s.storedEpsilon(ctx, run, question); err != nil || stored != nil {
		return s.signedEpsilon(ctx, run, stored, gateway.Receipt{}), err
	}
	if err := sellable(run.version); err != nil {
		return nil, err
	}
	if err := s.onlyEpsilon(ctx, run, question); err != nil {
		return nil, err
	}
	o, err := s.epsilonOrder(ctx, who, run, sanitiser, question)
	if err != nil {
		return nil, err
	}
	if err := o.Accounts.CheckFloor("the sanitised epsilon", sanitiser.Loss()); err != nil {
		return nil, err
	}
	if err := o.Accounts.Takes(sanitiser.Loss()); err != nil {
		return nil, err
	}
	if o.Untimed != nil {
		return nil, o.Untimed
	}
	paid, err := gateway.Sell(ctx, s.gateway, tick, gateway.Sale[*api.SanitisedEpsilon]{Order: o,
		Work: func(ctx context.Context) (gateway.Finish[*api.SanitisedEpsilon], error) {
			return s.drawEpsilon(ctx, run, sanitiser, question, o)
		}})
	if err != nil {
		return nil, err
	}
	stored, err := s.storedEpsilon(ctx, run, question)
	if err == nil && stored == nil {
		err = fault.Internal(fmt.Errorf("labels: the epsilon of charge %s is not there", paid.ID))
	}
	if err != nil {
		return nil, err
	}
	stored.shown.Replayed, stored.shown.Spent = paid.Spent.IsZero(), amounts.Of(paid.Spent)
	return s.signedEpsilon(ctx, run, stored, paid), nil
}

// EstimateEpsilon prices the sanitised ε of a run. It is computed from what was released, and from no vote; it costs nothing. For stewards.
// pate/no-gain says that the free ε is as small as what could be bought.
func (s *Service) EstimateEpsilon(ctx context.Context, who auth.Principal, name string, r api.AnalysisRequest) (*api.EpsilonEstimate,
	error) {
	release, err := s.gateway.Enter(ctx, who)
	if err != nil {
		return nil, err
	}
	defer release()
	run, sanitiser, err := s.soldRun(ctx, name, r)
	if err != nil {
		return nil, err
	}
	least, free, err := gain(run, sanitiser)
	if err != nil {
		return nil, err
	}
	o, err := s.epsilonOrder(ctx, who, run, sanitiser, run.question(sanitiser))
	if err != nil {
		return nil, err
	}
	if o.Untimed != nil {
		return nil, o.Untimed
	}
	return &api.EpsilonEstimate{Ensemble: run.version.Name, Version: run.version.Number, Queries: len(run.queries),
		Delta: api.Decimal(sanitiser.Parameters().Delta), Least: least, Independent: free,
		Price: amounts.Of(o.Charge.Loss)}, nil
}

// soldRun is a run of labels that were released, and what makes its ε publishable.
func (s *Service) soldRun(ctx context.Context, name string, r api.AnalysisRequest) (*run, *pate.Sanitiser, error) {
	if r.All || r.Exact || r.Delta != "" {
		return nil, nil, fault.PateParameters("a sanitised epsilon is one of labels that were released, at the delta that the ensemble was " +
			"defined with")
	}
	run, err := s.runOf(ctx, name, r)
	if err != nil {
		return nil, nil, err
	}
	if run.became == nil {
		return nil, nil, fault.PateParameters("not all of these queries were released under these parameters")
	}
	sanitiser, err := s.sanitiser(run)
	return run, sanitiser, err
}

// gain gives the least sanitised ε of a run and the free one, and refuses where that is as small.
func gain(r *run, sanitiser *pate.Sanitiser) (least, free float64, err error) {
	if least, free = sanitiser.Least(), sanitiser.Independent(len(r.queries), r.became); least >= free {
		err = fault.PateNoGain(least, free)
	}
	return least, free, err
}

// onlyEpsilon refuses an ε that would not speak for all that was sold of a version: there is one a version, over everything sold.
func (s *Service) onlyEpsilon(ctx context.Context, r *run, question pate.Question) error {
	other, err := s.ensembles.OtherEpsilon(ctx, r.version, question)
	if err != nil {
		return err
	}
	if other {
		return fault.PateParameters("a version has one sanitised epsilon, which is never drawn again, and this one's was drawn; ask for " +
			"the labels that it covers, or seal a new version")
	}
	sold, err := s.soldOf(ctx, r.version)
	if err != nil {
		return err
	}
	if int64(len(r.queries)) != sold {
		return fault.PateParameters(fmt.Sprintf("a sanitised epsilon is of all %d labels that were sold of a version, under one mechanism "+
			"and its parameters", sold))
	}
	return nil
}

// soldOf is how many labels of a version were sold.
func (s *Service) soldOf(ctx context.Context, v *pate.Version) (sold int64, err error) {
	tally, err := s.ensembles.Tally(ctx, v, nil)
	for _, n := range tally {
		sold += n
	}
	return sold, err
}

// covered adds to an ε what it speaks for. What was sold since is no part of the stored answer, which never changes.
func (s *Service) covered(ctx context.Context, v *pate.Version, shown *api.SanitisedEpsilon) error {
	sold, err := s.soldOf(ctx, v)
	if err != nil {
		return err
	}
	shown.SoldSince = sold - int64(shown.Queries)
	shown.Covers = fmt.Sprintf("the %d labels that were sold of version %d when this epsilon was drawn; not what is sold of it later, "+
		"nor labels of other versions over the same people", shown.Queries, v.Number)
	if shown.SoldSince > 0 {
		shown.Covers += fmt.Sprintf(": %d more labels of version %d are sold by now", shown.SoldSince, v.Number)
	}
	return nil
}

// EpsilonAnswer is a sanitised ε and its receipt, which is about the stored answer of the charge that it was asked
// with, or else drawn with.
type EpsilonAnswer struct {
	*api.SanitisedEpsilon
	Receipt json.RawMessage // a [journal.Receipt]; nil without a key
}

// signedEpsilon is nil for none.
func (s *Service) signedEpsilon(ctx context.Context, r *run, stored *storedEpsilon, paid gateway.Receipt) *EpsilonAnswer {
	if stored == nil {
		return nil
	}
	if paid.ID == "" {
		paid = stored.drawn
	}
	return &EpsilonAnswer{SanitisedEpsilon: stored.shown, Receipt: s.gateway.Sign(ctx, r.version.Dataset, paid)}
}

// sanitiser is made from the parameters that the version was defined with, which the policy must not contradict.
func (s *Service) sanitiser(r *run) (*pate.Sanitiser, error) {
	snapshot, err := s.gateway.Snapshot(r.version.Dataset)
	if err != nil {
		return nil, err
	}
	if r.version.Rechosen {
		return nil, fault.PateParameters("these votes were sealed before with other parameters of a sanitised epsilon, or none, and keep those")
	}
	p, err := sanitiseFor(r.version, snapshot.Pate.SanitiseOf(r.version.Name))
	if err != nil {
		return nil, err
	}
	return r.mode.NewSanitiser(pate.SanitiserParameters{Order: string(p.Order), Beta: string(p.Beta), SigmaSS: string(p.SigmaSS),
		Delta: string(p.Delta)})
}

// question identifies a run by all that its ε is computed from, but for the votes: parameters, queries, students. Their order is no
// part of it: the same queries in another order have the same ε.
func (r *run) question(sanitiser *pate.Sanitiser) pate.Question {
	h := sha256.New()
	// Encoding structs of strings cannot fail.
	_ = json.NewEncoder(h).Encode([]any{"sanitised epsilon", r.mode.Settings(), sanitiser.Parameters()})
	lines := make([][]byte, len(r.queries))
	for i, q := range r.queries {
		lines[i] = binary.BigEndian.AppendUint32(nil, uint32(q))
		if r.students != nil {
			lines[i] = append(lines[i], r.students[i].Key()...)
		}
	}
	slices.SortFunc(lines, bytes.Compare)
	h.Write(bytes.Join(lines, nil))
	return pate.Question(h.Sum(nil))
}

// storedEpsilon is an ε that was drawn before: as it is shown, and the charge that it was drawn with.
type storedEpsilon struct {
	shown *api.SanitisedEpsilon
	drawn gateway.Receipt
}

func (s *Service) storedEpsilon(ctx context.Context, r *run, question pate.Question) (*storedEpsilon, error) {
	answer, charge, err := s.ensembles.SanitisedEpsilon(ctx, r.version, question)
	if err != nil || answer == nil {
		return nil, err
	}
	stored := &storedEpsilon{shown: new(api.SanitisedEpsilon), drawn: gateway.Receipt{ID: budget.ReservationID(charge), Answer: answer,
		Replayed: true}}
	if err := json.Unmarshal(answer, stored.shown); err != nil {
		return nil, fault.Internal(err)
	}
	stored.shown.Replayed, stored.shown.Spent = true, amounts.Of(mechanisms.Loss{})
	return stored, s.covered(ctx, r.version, stored.shown)
}

// epsilonOrder charges the dataset and the ensemble: a steward has no account.
func (s *Service) epsilonOrder(ctx context.Context, who auth.Principal, r *run, sanitiser *pate.Sanitiser,
	question pate.Question) (*gateway.Order, error) {
	snapshot, err := s.gateway.Snapshot(r.version.Dataset)
	if err != nil {
		return nil, err
	}
	shared, err := s.gateway.DatasetAccounts(ctx, who, snapshot)
	if err != nil {
		return nil, err
	}
	ensemble, err := s.ensembleBalance(ctx, r.version)
	if err != nil {
		return nil, err
	}
	o, err := s.gateway.OrderOf(who, snapshot, shared.With(ensemble), "", nil)
	if err != nil {
		return nil, err
	}
	o.Price(sanitiser.Loss(), []mechanisms.Parameters{{
		Mechanism: "smooth_sensitivity_gaussian", Sensitivity: "1", Scale: sanitiser.Parameters().SigmaSS,
		Epsilon: sanitiser.Loss().Epsilon.String(), Delta: sanitiser.Loss().Delta.String(),
	}})
	err = o.Keep("", purchase{r.version.Dataset, r.version.Name, r.version.Number, r.mode.Settings(), len(r.queries), sanitiser.Parameters()})
	o.Charge.RequestDigest = question
	o.Charge.Fingerprint = sha256.Sum256(fmt.Appendf(nil, "epsilon of version %d %s", r.version.ID, question))
	return o, err
}

// drawEpsilon is what a charge pays for: votes are read, an ε is drawn, and stored from the boundary on.
func (s *Service) drawEpsilon(ctx context.Context, r *run, sanitiser *pate.Sanitiser, question pate.Question,
	o *gateway.Order) (gateway.Finish[*api.SanitisedEpsilon], error) {
	table, err := s.ensembles.Table(ctx, r.version, r.queries)
	if err != nil {
		return nil, err
	}
	drawn, err := sanitiser.Release(s.gateway.Sampler(), table, r.became, r.students)
	if err != nil {
		return nil, err
	}
	answer := &api.SanitisedEpsilon{
		Ensemble: r.version.Name, Version: r.version.Number, Queries: len(r.queries), Epsilon: drawn.Epsilon,
		Delta: api.Decimal(sanitiser.Parameters().Delta), Confidence: drawn.Confidence, Order: drawn.Order, Beta: drawn.Beta,
		SigmaSS: drawn.SigmaSS, Cost: drawn.Cost,
		Spent: amounts.Of(o.Charge.Loss),
	}
	for _, status := range r.became {
		if status == pate.Answered {
			answer.Answered++
		}
	}
	return func(ctx context.Context) (*api.SanitisedEpsilon, gateway.Spending, error) {
		recorded, spent, err := s.recordEpsilon(ctx, r, question, o, answer)
		return recorded, gateway.Spending{Own: spent}, err
	}, nil
}

// recordEpsilon stores an ε. One that somebody else drew in the meantime is kept, and this one forgotten, free but for its time.
func (s *Service) recordEpsilon(ctx context.Context, r *run, question pate.Question, o *gateway.Order,
	answer *api.SanitisedEpsilon) (*api.SanitisedEpsilon, mechanisms.Loss, error) {
	stored, err := json.Marshal(answer)
	if err != nil {
		return nil, mechanisms.Loss{}, fault.Internal(err)
	}
	fresh, err := s.ensembles.RecordEpsilon(ctx, r.version, question, string(o.Charge.ID), stored)
	if err != nil {
		return nil, mechanisms.Loss{}, err
	}
	if !fresh {
		first, err := s.storedEpsilon(ctx, r, question)
		if err == nil && first == nil {
			err = fault.Internal(errors.New("labels: an epsilon that was drawn before is not there"))
		}
		if err != nil {
			return nil, mechanisms.Loss{}, err
		}
		return first.shown, o.Delay.Loss(), nil
	}
	return answer, o.Charge.Loss, nil
}
