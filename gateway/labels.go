package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"

	"noisegate/api"
	"noisegate/budget"
	"noisegate/gateway/auth"
	"noisegate/internal/fault"
	"noisegate/mechanisms"
	"noisegate/pate"
)

// LabelRequest is one request for labels as a client put it.
type LabelRequest struct {
	api.LabelRequest
	Ensemble       string
	IdempotencyKey string // "" for none
}

// maxBatch bounds the queries of one request.
const maxBatch = 100_000

// Labels buys private labels: the worst case of all that was not released before is reserved before a vote is read, and what was
// released is charged. Whatever was released before, to whomever, is given again, free: rejections too. An answer never depends on votes
// but through what it releases: not in its charge, not in its time beyond the quantum, not in any text.
//
// Errors before the charge cost nothing: request/*, pate/*, policy/*, budget/*.
func (s *Service) Labels(ctx context.Context, who auth.Principal, r LabelRequest) (*LabelAnswer, error) {
	version, err := s.sealedEnsemble(ctx, r.Ensemble)
	if err != nil {
		return nil, err
	}
	tick := s.schedule(version.Dataset)
	defer tick.hold(ctx)
	b, err := s.batch(ctx, who, version, r)
	if err != nil {
		return nil, err
	}
	paid, err := s.paidLabels(ctx, b, tick)
	if err != nil {
		return nil, err
	}
	response := b.response()
	response.ReleaseID, response.Spent, response.Remaining = string(paid.id), amountsOf(paid.spent), s.remaining(ctx, b.purse)
	if paid.id == "" { // nothing was charged: the receipt is about what is said here
		if paid.answer, err = labelsText(response.Labels); err != nil {
			return nil, fault.Internal(err)
		}
	}
	return &LabelAnswer{LabelResponse: response, Receipt: s.sign(ctx, version.Dataset, paid)}, nil
}

// LabelAnswer is labels and their receipt. Where labels were bought it is about the stored answer of their charge, which has the digest of these labels
// ([api.LabelsDigest]); each replayed label is in the receipt of whoever bought it. Where all are replays it names no release, and is about the digest of all.
type LabelAnswer struct {
	*api.LabelResponse
	Receipt json.RawMessage // a [budget.Receipt]; nil without a key
}

// labelsText is what a receipt for replayed labels is about: their digest, as text.
func labelsText(labels []api.Label) ([]byte, error) {
	digest, err := api.LabelsDigest(labels)
	return []byte(digest), err
}

// batch is a request for labels that is looked up and priced.
type batch struct {
	version   *pate.Version
	mode      *pate.Mode
	keys      []string // as asked; each once
	students  []pate.Student
	questions []pate.Question // one for each key, or one for all
	asked     []pate.Asked    // by key, as it was before the charge and, at the end, after it
	missing   []int           // of keys: not released before
	bought    map[int]bool    // of missing: released by this request
	purse     purse
	charge    budget.Charge
	request   []string // as the client wrote it, in its order
}

// batch checks a request, finds what was released already, and makes out the charge for the rest. It reads no vote.
func (s *Service) batch(ctx context.Context, who auth.Principal, version *pate.Version, r LabelRequest) (*batch, error) {
	if err := checkIdempotencyKey(r.IdempotencyKey); err != nil {
		return nil, err
	}
	if len(r.Queries) == 0 {
		return nil, fault.RequestMissingField("queries")
	}
	if len(r.Queries) > maxBatch {
		return nil, fault.PateParameters(fmt.Sprintf("one request may ask for %d labels at most", maxBatch))
	}
	mode, err := pate.NewMode(version.Ensemble, settingsOf(r.LabelRequest))
	if err != nil {
		return nil, err
	}
	b := &batch{version: version, mode: mode, request: r.Queries, keys: once(r.Queries)}
	if err := b.readStudents(r.Student); err != nil {
		return nil, err
	}
	if b.purse, err = s.ensemblePurse(ctx, who, version); err != nil {
		return nil, err
	}
	if err := s.find(ctx, b); err != nil {
		return nil, err
	}
	for i, asked := range b.asked {
		if asked.Outcome == nil {
			b.missing = append(b.missing, i)
		}
	}
	return b, s.makeOut(b, who, r)
}

// settingsOf are the parameters of a request, as they were written.
func settingsOf(r api.LabelRequest) pate.Settings {
	return pate.Settings{
		Mode: pate.ModeName(r.Mechanism), NoiseScale: string(r.NoiseScale), Sigma: string(r.Sigma), Sigma1: string(r.Sigma1),
		Sigma2: string(r.Sigma2), Threshold: string(r.Threshold), Gamma: string(r.Gamma), StudentConfidence: string(r.StudentConfidence),
		Return: pate.Return(r.Return),
	}
}

// once leaves out repetitions.
func once(keys []string) []string {
	seen := make(map[string]bool, len(keys))
	list := make([]string, 0, len(keys))
	for _, key := range keys {
		if !seen[key] {
			seen[key] = true
			list = append(list, key)
		}
	}
	return list
}

// readStudents reads the student's probabilities, for modes that need them, and makes the questions.
func (b *batch) readStudents(student map[string][]api.Decimal) error {
	if !b.mode.NeedsStudent() {
		if len(student) > 0 {
			return fault.PateStudent("a student belongs to interactive requests only")
		}
		question, err := pate.QuestionOf(b.mode, pate.Student{})
		b.questions = []pate.Question{question}
		return err
	}
	b.students, b.questions = make([]pate.Student, len(b.keys)), make([]pate.Question, len(b.keys))
	if len(student) != len(b.keys) {
		return fault.PateStudent("a student needs probabilities for each query, and for no other")
	}
	for i, key := range b.keys {
		texts, ok := student[key]
		if !ok {
			return fault.PateStudent("a student needs probabilities for each query, and for no other")
		}
		probabilities := make([]*big.Rat, len(texts))
		for j, text := range texts {
			p, err := mechanisms.ParseDecimal(string(text))
			if err != nil {
				return fault.PateStudent("a student's probability is " + err.Error())
			}
			probabilities[j] = p
		}
		var err error
		if b.students[i], err = pate.NewStudent(b.version.Ensemble, probabilities); err != nil {
			return err
		}
		if b.questions[i], err = pate.QuestionOf(b.mode, b.students[i]); err != nil {
			return err
		}
	}
	return nil
}

// question is the question about one key.
func (b *batch) question(i int) pate.Question {
	if len(b.questions) == 1 {
		return b.questions[0]
	}
	return b.questions[i]
}

// student is the student's view of one key; the zero one for modes without a student.
func (b *batch) student(i int) pate.Student {
	if b.students == nil {
		return pate.Student{}
	}
	return b.students[i]
}

func (s *Service) find(ctx context.Context, b *batch) (err error) {
	b.asked, err = s.ensembles.Find(ctx, b.version, b.keys, b.questions)
	return err
}

// makeOut makes the charge for what is missing. Its fingerprint is what will be released, so that the same batch, asked twice at the same
// time, is not paid for twice.
func (s *Service) makeOut(b *batch, who auth.Principal, r LabelRequest) error {
	digest, err := json.Marshal(struct {
		Version int64
		Body    api.LabelRequest
	}{b.version.ID, r.LabelRequest})
	if err != nil {
		return fault.Internal(err)
	}
	// The history shows what was bought; the names of the queries are with the answers.
	shown, err := json.Marshal(struct {
		Dataset  string        `json:"dataset"`
		Ensemble string        `json:"ensemble"`
		Version  int64         `json:"version"`
		Settings pate.Settings `json:"settings"`
		Queries  int           `json:"queries"`
	}{b.version.Dataset, b.version.Name, b.version.Number, b.mode.Settings(), len(b.missing)})
	if err != nil {
		return fault.Internal(err)
	}
	b.charge = budget.Charge{
		ID: s.newID(s.clock.Now()), Dataset: b.version.Dataset, Analyst: who.Subject, Accounts: b.purse.accounts(),
		Loss: b.mode.WorstCase(int64(len(b.missing))), Mechanisms: b.mechanisms(), Fingerprint: b.fingerprint(),
		IdempotencyKey: r.IdempotencyKey, RequestDigest: sha256.Sum256(digest), Request: shown,
	}
	return nil
}

// mechanisms are the noises of the worst case.
func (b *batch) mechanisms() []mechanisms.Parameters {
	d := b.mode.Describe()
	list := []mechanisms.Parameters{d.Answer}
	if d.Check != nil {
		list = append(list, *d.Check)
	}
	for i := range list {
		list[i].Times = int64(len(b.missing))
	}
	return list
}

func (b *batch) fingerprint() [32]byte {
	lines := make([][]byte, len(b.missing))
	for i, m := range b.missing {
		question := b.question(m)
		lines[i] = binary.BigEndian.AppendUint32(question[:], uint32(b.asked[m].Query))
	}
	slices.SortFunc(lines, slices.Compare)
	h := sha256.New()
	fmt.Fprintf(h, "labels of version %d\n", b.version.ID)
	for _, line := range lines {
		h.Write(line)
	}
	return [32]byte(h.Sum(nil))
}

// paidLabels pays for what is missing, if anything is, and looks everything up again.
func (s *Service) paidLabels(ctx context.Context, b *batch, tick *schedule) (receipt, error) {
	if len(b.missing) == 0 {
		return receipt{}, s.checkKey(ctx, b)
	}
	if err := s.enforce(ctx, b.purse); err != nil {
		return receipt{}, err
	}
	paid, err := metered(ctx, s.meter, b.charge, func(ctx context.Context) (*api.Result, mechanisms.Loss, error) {
		defer tick.hold(ctx) // before the charge is settled, as for queries
		return s.label(ctx, b)
	})
	if err != nil {
		return receipt{}, err
	}
	if err := s.find(ctx, b); err != nil {
		return receipt{}, err
	}
	for i := range b.asked {
		if b.asked[i].Outcome == nil {
			return receipt{}, fault.Internal(errors.New("gateway: a label was paid for and is not there"))
		}
	}
	return paid, nil
}

// checkKey refuses an Idempotency-Key that stands for another request, also where there is nothing to charge.
func (s *Service) checkKey(ctx context.Context, b *batch) error {
	if b.charge.IdempotencyKey == "" {
		return nil
	}
	_, err := within(ctx, func(ctx context.Context) (*budget.Stored, error) { return s.ledger.Replay(ctx, b.charge) })
	return err
}

// label is what a charge pays for: the votes are read, noise is drawn, outcomes are stored. Outcomes that somebody else stored in the
// meantime are forgotten and cost nothing.
func (s *Service) label(ctx context.Context, b *batch) (*api.Result, mechanisms.Loss, error) {
	queries, questions := make([]int32, len(b.missing)), make([]pate.Question, len(b.missing))
	for i, m := range b.missing {
		queries[i], questions[i] = b.asked[m].Query, b.question(m)
	}
	votes, err := s.ensembles.Votes(ctx, b.version, queries)
	if err != nil {
		return nil, mechanisms.Loss{}, err
	}
	sampler, outcomes := s.sampler(), make([]pate.Outcome, len(votes))
	for i, m := range b.missing {
		if outcomes[i], _, err = b.mode.Label(sampler, votes[i], b.student(m)); err != nil {
			return nil, mechanisms.Loss{}, err
		}
	}
	if len(b.questions) == 1 {
		questions = b.questions
	}
	fresh, err := s.ensembles.Record(ctx, b.version, string(b.charge.ID), queries, questions, outcomes)
	if err != nil {
		return nil, mechanisms.Loss{}, err
	}
	released := map[pate.Status]int64{}
	b.bought = make(map[int]bool, len(b.missing))
	var bought []api.Label
	for i, m := range b.missing {
		if b.bought[m] = fresh[i]; fresh[i] {
			released[outcomes[i].Status]++
			bought = append(bought, labelOf(b.keys[m], outcomes[i], b.version.Ensemble.Classes()))
		}
	}
	digest, err := api.LabelsDigest(bought)
	if err != nil {
		return nil, mechanisms.Loss{}, fault.Internal(err)
	}
	answered := released[pate.Answered]
	checks := answered + released[pate.Rejected] + released[pate.Reinforced]
	return b.summary(released, digest), b.mode.Released(checks, answered), nil
}

// summary is what the history of releases shows of a charge for labels: how many there were, and their digest. The labels themselves are stored by query.
func (b *batch) summary(released map[pate.Status]int64, digest string) *api.Result {
	r := &api.Result{Rows: [][]api.Value{nil}, Intervals: [][]*api.Bounds{nil}, Notes: []api.Note{}}
	column := func(name, kind string, value api.Value) {
		r.Columns = append(r.Columns, api.Column{Name: name, Type: kind, Kind: "aggregate"})
		r.Rows[0], r.Intervals[0] = append(r.Rows[0], value), append(r.Intervals[0], nil)
	}
	column("ensemble", "text", api.Text(b.version.Name))
	column("mechanism", "text", api.Text(string(b.mode.Name())))
	for _, status := range []pate.Status{pate.Answered, pate.Rejected, pate.Reinforced} {
		column(string(status), "bigint", api.Number(fmt.Sprint(released[status])))
	}
	column("labels_sha256", "text", api.Text(digest))
	return r
}

// response lists the labels in the order of the request.
func (b *batch) response() *api.LabelResponse {
	r := &api.LabelResponse{
		Ensemble: b.version.Name, Version: b.version.Number, Terms: termsOf(b.mode),
		WorstCase: amountsOf(b.charge.Loss), Labels: make([]api.Label, len(b.request)),
	}
	places := make(map[string]int, len(b.keys))
	for i, key := range b.keys {
		places[key] = i
	}
	classes := b.version.Ensemble.Classes()
	for i, key := range b.request {
		place := places[key]
		r.Labels[i] = labelOf(key, *b.asked[place].Outcome, classes)
		r.Labels[i].Replayed = !b.bought[place]
	}
	return r
}

func labelOf(key string, o pate.Outcome, classes []string) api.Label {
	label := api.Label{Query: key, Status: string(o.Status)}
	if o.Label != pate.NoLabel {
		label.Label, label.Class = &o.Label, classes[o.Label]
	}
	for _, n := range o.Histogram {
		label.Histogram = append(label.Histogram, api.Number(n.String()))
	}
	return label
}

// termsOf says what a mode costs and what its parameters mean.
func termsOf(m *pate.Mode) api.LabelTerm {
	check, all := m.Released(1, 0), m.WorstCase(1)
	answer := mechanisms.Loss{Epsilon: all.Epsilon - check.Epsilon, Unbounded: all.Unbounded, Rho: all.Rho - check.Rho, Delta: all.Delta - check.Delta}
	return api.LabelTerm{Mechanism: string(m.Name()), Meaning: meaningOf(m.Settings()), Check: amountsOf(check), Answer: amountsOf(answer)}
}

func meaningOf(s pate.Settings) string {
	switch s.Mode {
	case pate.LNMax:
		return "the class with most votes after discrete Laplace noise of scale " + s.NoiseScale + " was added to each count"
	case pate.GNMax:
		return "the class with most votes after discrete Gaussian noise of standard deviation " + s.Sigma + " was added to each count"
	case pate.Confident:
		return "answered if the largest count and noise of standard deviation " + s.Sigma1 + " reach " + s.Threshold +
			"; then the class with most votes after noise of standard deviation " + s.Sigma2
	case pate.Interactive:
		return "answered if the largest excess of votes over the student's expectation and noise of standard deviation " + s.Sigma1 + " reach " +
			s.Threshold + "; then the class with most votes after noise of standard deviation " + s.Sigma2 +
			"; else the student's own label if it is surer than " + s.StudentConfidence
	case pate.Gumbel:
		return "a class, chosen with probability in proportion to exp(" + s.Gamma + " times its votes)"
	default:
		return ""
	}
}
