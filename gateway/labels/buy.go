package labels

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"time"

	"noisegate.example/api"
	"noisegate.example/budget"
	"noisegate.example/gateway"
	"noisegate.example/gateway/auth"
	"noisegate.example/gateway/internal/amounts"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
	"noisegate.example/pate"
)

// Request is one request for labels as a client put it.
type Request struct {
	api.LabelRequest
	Ensemble       string
	IdempotencyKey string // "" for none
}

// maxBatch bounds the queries of one request. maxCounts bounds the noisy counts that are drawn for those that are bought, and maxShown
// those that are shown as histograms: what follows the charge must not fail for its size. At 0.2 µs a count the first takes 4 s.
const (
	maxBatch  = 100_000
	maxCounts = 16 << 20
	maxShown  = 1 << 20
)

// Buy buys private labels: the worst case of all that the caller did not pay for is reserved before a vote is read,
// and what was released is charged. What the caller paid for is given again, free: rejections too. What somebody else
// paid for is the same label, and is bought like any other; when that is done the dataset and the ensemble pay only for
// what is released for the first time. Where the policy shares releases it is free. An answer never depends on votes
// but through what it releases: not in its charge, not in its time but for the boundary, not in any text. Nor does it,
// but for the labels themselves, depend on what others bought.
//
// Errors before the charge cost nothing: request/*, pate/*, policy/*, budget/*.
func (s *Service) Buy(ctx context.Context, who auth.Principal, r Request) (_ *Answer, err error) {
	release, err := s.gateway.Enter(ctx, who)
	if err != nil {
		return nil, err
	}
	defer release() // after the schedule held
	version, err := s.sealedEnsemble(ctx, r.Ensemble)
	if err != nil {
		return nil, err
	}
	defer func() { s.gateway.CountRefusal(version.Dataset, who, gateway.Asked, err) }()
	tick := s.gateway.Schedule(version.Dataset)
	defer s.gateway.Cancellable(who, r.IdempotencyKey, tick)()
	b, err := s.batch(ctx, who, version, r)
	if err != nil {
		return nil, err
	}
	paid, err := s.paidLabels(ctx, b, tick)
	if err != nil {
		return nil, err
	}
	response := b.response()
	response.ReleaseID, response.Spent, response.Remaining = string(paid.ID), amounts.Of(paid.Spent), s.gateway.Remaining(ctx, b.Accounts)
	if paid.ID == "" { // nothing was charged: the receipt is about what is said here
		if paid.Answer, err = labelsText(response.Labels); err != nil {
			return nil, fault.Internal(err)
		}
	}
	return &Answer{LabelResponse: response, Receipt: s.gateway.Sign(ctx, version.Dataset, paid)}, nil
}

// Answer is labels and their receipt. Where labels were bought it is about the stored answer of their charge,
// which has the digest of these labels ([api.LabelsDigest]); each replayed label is in its buyer's receipt. Where all are replays it names
// no release, and is about the digest of all.
type Answer struct {
	*api.LabelResponse
	Receipt json.RawMessage // a [journal.Receipt]; nil without a key
}

// labelsText is what a receipt for replayed labels is about: their digest, as text.
func labelsText(labels []api.Label) ([]byte, error) {
	digest, err := api.LabelsDigest(labels)
	return []byte(digest), err
}

// batch is a request for labels after its look-up. It is priced where labels are to be paid for.
type batch struct {
	*gateway.Order
	buyer     pate.Buyer
	version   *pate.Version
	mode      *pate.Mode
	keys      []string // as asked; each once
	students  []pate.Student
	questions []pate.Question // one for each key, or one for all
	asked     []pate.Asked    // by key, as it was before the charge and, at the end, after it
	places    []int           // the charge pays for the keys at these
	bought    map[int]bool    // of keys: paid for by this request
	shares    bool            // what others paid for is free for the caller
	request   []string        // as the client wrote it, in its order
}

// batch checks a request and finds what was released already. It reads no vote.
func (s *Service) batch(ctx context.Context, who auth.Principal, version *pate.Version, r Request) (*batch, error) {
	if err := gateway.CheckIdempotencyKey(r.IdempotencyKey); err != nil {
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
	b := &batch{buyer: pate.Buyer(who.Subject), version: version, mode: mode, request: r.Queries, keys: once(r.Queries),
		bought: map[int]bool{}}
	if err := b.readStudents(r.Student); err != nil {
		return nil, err
	}
	if b.Order, b.shares, err = s.order(ctx, who, version, r.IdempotencyKey, r.AtMost); err != nil {
		return nil, err
	}
	body := r.LabelRequest
	body.AtMost = nil // no part of what the key stands for
	if err := b.Keep("", struct {
		Version int64
		Body    api.LabelRequest
	}{version.ID, body}); err != nil {
		return nil, err
	}
	return b, s.find(ctx, b)
}

// order begins an order that the caller's accounts and the ensemble's pay for. shares: labels that others bought are free for the caller.
func (s *Service) order(ctx context.Context, who auth.Principal, version *pate.Version, key string, atMost *api.Price) (
	o *gateway.Order, shares bool, err error) {
	snapshot, err := s.gateway.Snapshot(version.Dataset)
	if err != nil {
		return nil, false, err
	}
	p, err := s.ensembleAccounts(ctx, who, version)
	if err != nil {
		return nil, false, err
	}
	o, err = s.gateway.OrderOf(who, snapshot, p, key, atMost)
	return o, gateway.GivenFree(snapshot, p), err
}

// unpaid are the keys that the caller is to pay for. Where releases are not shared, it is not known of these what
// others bought.
func (b *batch) unpaid() (places []int) {
	for i, asked := range b.asked {
		if asked.Outcome == nil {
			places = append(places, i)
		}
	}
	return places
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
	b.asked, err = s.ensembles.Find(ctx, b.version, b.buyer, b.keys, b.questions, b.shares)
	return err
}

// charge prices some keys. The fingerprint follows from the labels, so that two requests for one batch at the same time are paid for once.
// The history shows a summary; the names of the queries are with the answers.
func (b *batch) charge(places []int) (err error) {
	n := len(places)
	b.places, b.Charge.Fingerprint = places, b.fingerprint(places)
	b.Price(b.mode.WorstCase(int64(n)), b.mechanisms(n))
	if b.mode.Describe().Check != nil {
		b.Charge.Levels = min(int64(n), answerSteps) + 1 // from none that is answered to all
	}
	b.Charge.Request, err = json.Marshal(purchase{b.version.Dataset, b.version.Name, b.version.Number, b.mode.Settings(), n, nil})
	return err
}

// purchase is the summary in the history of releases.
type purchase struct {
	Dataset  string        `json:"dataset"`
	Ensemble string        `json:"ensemble"`
	Version  int64         `json:"version"`
	Settings pate.Settings `json:"settings"`
	Queries  int           `json:"queries"`
	Epsilon  any           `json:"sanitised_epsilon,omitempty"`
}

// mechanisms are the noises of the worst case of n queries.
func (b *batch) mechanisms(n int) []mechanisms.Parameters {
	d := b.mode.Describe()
	list := []mechanisms.Parameters{d.Answer}
	if d.Check != nil {
		list = append(list, *d.Check)
	}
	for i := range list {
		list[i].Times = int64(n)
	}
	return list
}

func (b *batch) fingerprint(places []int) [32]byte {
	lines := make([][]byte, len(places))
	for i, place := range places {
		question := b.question(place)
		lines[i] = binary.BigEndian.AppendUint32(question[:], uint32(b.asked[place].Query))
	}
	slices.SortFunc(lines, slices.Compare)
	h := sha256.New()
	// what was sold as "labels of version" left out those that others bought
	fmt.Fprintf(h, "labels of version %d, whoever bought them\n", b.version.ID)
	for _, line := range lines {
		h.Write(line)
	}
	return [32]byte(h.Sum(nil))
}

// paidLabels pays for what is not the caller's yet, in one charge on all of these accounts. What others bought is no part of any decision,
// so that none reveals it.
func (s *Service) paidLabels(ctx context.Context, b *batch, tick *gateway.Schedule) (gateway.Receipt, error) {
	places := b.unpaid()
	if len(places) == 0 {
		return gateway.Receipt{}, s.checkKey(ctx, b)
	}
	if b.Untimed != nil {
		return gateway.Receipt{}, b.Untimed
	}
	if !b.mode.Passable() { // what was sold before this was refused stays readable
		return gateway.Receipt{}, fault.PateParameters("threshold is at most the number of teachers and six times sigma1: above that the check " +
			"never passes")
	}
	most := maxCounts
	if b.mode.ReturnsHistogram() {
		most = maxShown
	}
	if classes := b.version.Ensemble.ClassCount(); len(places) > most/classes {
		return gateway.Receipt{}, fault.PateParameters(fmt.Sprintf("one request may buy %d labels of %d classes at most", most/classes, classes))
	}
	if err := sellable(b.version); err != nil {
		return gateway.Receipt{}, err
	}
	if err := b.Accounts.CheckFloor("what is asked of the teachers", b.least(len(places))); err != nil {
		return gateway.Receipt{}, err
	}
	if err := b.Accounts.Takes(b.mode.WorstCase(1)); err != nil {
		return gateway.Receipt{}, err
	}
	if err := b.charge(places); err != nil {
		return gateway.Receipt{}, fault.Internal(err)
	}
	paid, err := gateway.Sell(ctx, s.gateway, tick, gateway.Sale[*api.Result]{Order: b.Order,
		Work: func(ctx context.Context) (gateway.Finish[*api.Result], error) { return s.label(ctx, b, tick) }})
	if err != nil {
		return paid, b.stillFits(err, int64(len(places)), s.gateway.Now())
	}
	if !paid.Replayed {
		return paid, nil
	}
	// The same request was paid for since it was looked up, or its key stands for a purchase after which the policy shared
	// more than it does now.
	if err := s.find(ctx, b); err != nil {
		return gateway.Receipt{}, err
	}
	if len(b.unpaid()) > 0 {
		return gateway.Receipt{}, fault.BudgetReplayMismatch()
	}
	return paid, nil
}

// stillFits says of a refusal by the buyer's own account how many labels it still pays for: labels have no price in ε that
// one could lower. Refusals by accounts that others share have no figures, and get none.
func (b *batch) stillFits(err error, asked int64, now time.Time) error {
	var refused *fault.Error
	if !errors.As(err, &refused) || len(refused.Details) == 0 ||
		refused.Code != fault.CodeBudgetExhausted && refused.Code != fault.CodeBudgetTrancheClosed {
		return err
	}
	return fault.PateStillFit(refused, min(stillBuys(amounts.Released(b.Accounts.Own(), now), b.Delay, b.mode), asked-1))
}

// stillBuys is how many labels an account pays for in one request more, whose answer is delayed; nil: it is not.
func stillBuys(own budget.Balance, delay *gateway.Delay, mode *pate.Mode) int64 {
	return budget.Times(own.Limit, own.Used().Plus(delay.Loss()), mode.WorstCase(1))
}

// checkKey refuses an Idempotency-Key that stands for another request, also where there is nothing to charge.
func (s *Service) checkKey(ctx context.Context, b *batch) error {
	if b.Charge.IdempotencyKey == "" {
		return nil
	}
	b.Charge.Fingerprint = b.fingerprint(nil)
	_, err := s.gateway.Replay(ctx, b.Charge)
	return err
}

// rows are the places of the ordered queries and the questions about them.
func (b *batch) rows() (queries []int32, questions []pate.Question) {
	queries, questions = make([]int32, len(b.places)), make([]pate.Question, len(b.places))
	for i, place := range b.places {
		queries[i], questions[i] = b.asked[place].Query, b.question(place)
	}
	if len(b.questions) == 1 {
		questions = b.questions
	}
	return queries, questions
}

// label is what a charge pays for: the votes of all that is ordered are read, noise is drawn, and, from the boundary
// on, when others may find them, outcomes are stored. Of what others bought, before or in the meantime, the stored
// outcome is given, and what was drawn is forgotten.
func (s *Service) label(ctx context.Context, b *batch, tick *gateway.Schedule) (gateway.Finish[*api.Result], error) {
	queries, questions := b.rows()
	votes, err := s.ensembles.Votes(ctx, b.version, queries)
	if err != nil {
		return nil, err
	}
	sampler, outcomes := s.gateway.Sampler(), make([]pate.Outcome, len(votes))
	for i, place := range b.places {
		if outcomes[i], _, err = b.mode.Label(sampler, votes[i], b.student(place)); err != nil {
			return nil, err
		}
	}
	return func(ctx context.Context) (*api.Result, gateway.Spending, error) {
		// Storing outcomes takes longer where nobody else had bought them.
		var sold []pate.Sold
		err := tick.Storing(ctx, func(ctx context.Context) (err error) {
			by := pate.Purchase{Buyer: b.buyer, Charge: string(b.Charge.ID)}
			sold, err = s.ensembles.Record(ctx, b.version, by, queries, questions, outcomes)
			return err
		})
		if err != nil {
			return nil, gateway.Spending{}, err
		}
		return b.sold(sold)
	}, nil
}

// keptShare is the part of a reservation that a settlement keeps at least: 1 in keptShare. A check that cannot pass would else reserve any
// amount of a shared account, and be told whether it fits, for the price of the check.
const keptShare = 8

// sold sums up what an order has bought, and what it costs: no less than a share of what was reserved. The caller's own
// accounts pay for all that was not theirs when it was stored; the dataset and the ensemble for what nobody had bought
// then, as if that alone had been reserved.
func (b *batch) sold(all []pate.Sold) (*api.Result, gateway.Spending, error) {
	bought, fresh := map[pate.Status]int64{}, map[pate.Status]int64{}
	var labels []api.Label
	for i, place := range b.places {
		sold := all[i]
		b.asked[place].Outcome, b.asked[place].Owned = &sold.Outcome, true
		if sold.Fresh {
			fresh[sold.Outcome.Status]++
		}
		if !sold.New { // the caller paid for it by another request, in the meantime
			continue
		}
		b.bought[place] = true
		bought[sold.Outcome.Status]++
		labels = append(labels, labelOf(b.keys[place], sold.Outcome, b.version.Ensemble.Classes()))
	}
	digest, err := api.LabelsDigest(labels)
	if err != nil {
		return nil, gateway.Spending{}, fault.Internal(err)
	}
	delay := b.Delay.Loss()
	shared := b.costs(fresh, sum(fresh)).Plus(delay)
	return b.summary(bought, digest), gateway.Spending{Own: b.costs(bought, int64(len(b.places))).Plus(delay), Shared: &shared}, nil
}

// costs is what outcomes cost, for a purchase that reserved so many labels; none for none reserved.
func (b *batch) costs(outcomes map[pate.Status]int64, reserved int64) mechanisms.Loss {
	return settled(b.mode, sum(outcomes), outcomes[pate.Answered], reserved)
}

// settled is what a purchase with so many checks and answers costs, if so many labels were reserved.
func settled(mode *pate.Mode, checks, answered, reserved int64) mechanisms.Loss {
	if reserved == 0 {
		return mechanisms.Loss{}
	}
	return atLeast(mode.Released(checks, inSteps(answered, checks)), mode.WorstCase(reserved))
}

// answerSteps is how many losses a purchase can settle with, in addition to that of no answer. Each has a tail ([budget.Charge.Levels]):
// with one for each number of answers, few large purchases at the floor would use up the tails of an account. More than so many queries are
// charged as up to a 64th of them more answers.
const answerSteps = 64

// inSteps is how many answers of so many checks are charged.
func inSteps(answered, checks int64) int64 {
	step := (checks + answerSteps - 1) / answerSteps
	if step == 0 {
		return 0
	}
	return min((answered+step-1)/step*step, checks)
}

// sum is how many outcomes there are.
func sum(outcomes map[pate.Status]int64) int64 {
	return outcomes[pate.Answered] + outcomes[pate.Rejected] + outcomes[pate.Reinforced]
}

// least is what n labels cost when every check fails.
func (b *batch) least(n int) mechanisms.Loss {
	worst := b.mode.WorstCase(int64(n))
	if b.mode.Describe().Check == nil {
		return worst
	}
	return atLeast(b.mode.Released(int64(n), 0), worst)
}

// atLeast is a loss, raised to a share of the worst case where it is smaller.
func atLeast(released, worst mechanisms.Loss) mechanisms.Loss {
	released.Unbounded = released.Unbounded || worst.Unbounded
	released.Epsilon = max(released.Epsilon, (worst.Epsilon+keptShare-1)/keptShare)
	released.Rho = max(released.Rho, (worst.Rho+keptShare-1)/keptShare)
	released.Delta = max(released.Delta, (worst.Delta+keptShare-1)/keptShare)
	return released
}

// summary is what the history of releases shows of a charge for labels: how many there were, and their digest. The
// labels themselves are stored by query.
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

// response lists the labels in the order of the request. The worst case covers what the request had to pay for.
func (b *batch) response() *api.LabelResponse {
	r := &api.LabelResponse{
		Ensemble: b.version.Name, Version: b.version.Number, Terms: termsOf(b.mode),
		WorstCase: amounts.Of(b.Charge.Loss), Labels: make([]api.Label, len(b.request)),
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
	answer := mechanisms.Loss{Epsilon: all.Epsilon - check.Epsilon, Unbounded: all.Unbounded, Rho: all.Rho - check.Rho,
		Delta: all.Delta - check.Delta}
	return api.LabelTerm{Mechanism: string(m.Name()), Meaning: meaningOf(m.Settings()), Check: amounts.Of(check), Answer: amounts.Of(answer)}
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
