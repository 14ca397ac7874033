package gateway

import (
	"context"
	"errors"
	"math/big"

	"noisegate.example/api"
	"noisegate.example/budget"
	"noisegate.example/budget/accounting"
	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite"
)

const (
	defaultConfidence = 0.95
	// maxConfidence leaves intervals finite work: the tail of an interval at 1-10⁻⁹ is still found exactly and quickly.
	maxConfidence = 1 - 1e-9
	// maxSimultaneous leaves a million intervals that hold together levels that are not 1 in floating point.
	maxSimultaneous   = 1 - 1e-6
	maxIdempotencyKey = 255 // bytes
)

// planFor checks a request strictly, field by field, and plans its query. A public plan has no price, and needs none in the request. A
// refusal of the text says what would be accepted, where that is known. Of what was asked, clock and memories are the service's.
func planFor(ctx context.Context, r api.QueryRequest, snapshot *catalog.Snapshot, p Accounts,
	asked sqlrewrite.Options) (*sqlrewrite.Plan, *sqlrewrite.PublicPlan, error) {
	var err error
	if r.SQL, err = BoundText(r); err != nil {
		return nil, nil, err
	}
	options, err := optionsOf(r, p)
	asked.Zone = r.TimeZone
	options = knowing(options, asked)
	private, public, refusal := planWith(ctx, r, snapshot, p, options, err)
	if fault.CodeOf(refusal) == fault.CodeMissingDelta && p.defaults.delta > 0 && r.Delta == "" {
		options.Delta = p.defaults.delta
		private, public, refusal = planWith(ctx, r, snapshot, p, options, err)
	}
	if errors.As(refusal, new(*sqlrewrite.NeedLists)) {
		return nil, nil, refusal
	}
	if refusal != nil && err == nil {
		refusal = sqlrewrite.Suggest(ctx, refusal, r.SQL, snapshot, options)
	}
	if len(r.Params) > 0 {
		refusal = unplaced(refusal)
	}
	return private, public, refusal
}

// knowing adds to the options of a request what does not come from it: its time and zone, and the memories of its analyst.
func knowing(o, known sqlrewrite.Options) sqlrewrite.Options {
	o.Proofs, o.Noises, o.Now, o.Zone, o.Lists = known.Proofs, known.Noises, known.Now, known.Zone, known.Lists
	return o
}

// planWith plans with the options of a request, or without, where err says why there are none.
func planWith(ctx context.Context, r api.QueryRequest, snapshot *catalog.Snapshot, p Accounts, options sqlrewrite.Options,
	err error) (*sqlrewrite.Plan, *sqlrewrite.PublicPlan, error) {
	if err == nil && len(r.MaxError) == 0 {
		return sqlrewrite.Read(ctx, r.SQL, snapshot, options)
	}
	if err != nil && fault.CodeOf(err) != fault.CodeRequestNoPrice {
		return nil, nil, err
	}
	public, unreadable := sqlrewrite.Open(ctx, r.SQL, snapshot, sqlrewrite.Options{Dialect: sqlrewrite.Dialect(r.Dialect),
		Now: options.Now, Zone: options.Zone})
	switch {
	case public != nil:
		return nil, public, nil
	case err != nil && unreadable == nil:
		plan, waits := ofPolicy(ctx, r, snapshot, p, options)
		if plan != nil || waits != nil {
			return plan, nil, waits
		}
		return nil, nil, err
	case err != nil || unreadable != nil:
		return nil, nil, orElse(err, unreadable)
	}
	plan, err := cheapest(ctx, r, snapshot, options, p)
	return plan, nil, err
}

// ofPolicy plans a request without a price at any one, where the answer is a function of the policy, so that it costs nothing; nil for
// others. Its error is that of a query that waits for lists.
func ofPolicy(ctx context.Context, r api.QueryRequest, snapshot *catalog.Snapshot, p Accounts,
	known sqlrewrite.Options) (*sqlrewrite.Plan, error) {
	if r.Plan != "" || len(r.MaxError) > 0 {
		return nil, nil
	}
	r.Epsilon, r.Mechanism, r.Selection = "1", "", ""
	options, err := optionsOf(r, p)
	if err != nil {
		return nil, nil
	}
	plan, _, err := sqlrewrite.Read(ctx, r.SQL, snapshot, knowing(options, known))
	switch {
	case errors.As(err, new(*sqlrewrite.NeedLists)):
		return nil, err
	case err != nil || plan == nil || plan.NeedsData():
		return nil, nil
	}
	return plan, nil
}

// optionsOf reads everything of a request but its text. Without a price it takes the policy's default.
func optionsOf(r api.QueryRequest, p Accounts) (sqlrewrite.Options, error) {
	limit := p.limit()
	o := sqlrewrite.Options{Currency: catalog.Form(limit.Form)}
	var err error
	for _, read := range []func(api.QueryRequest, *sqlrewrite.Options) error{
		readMechanism, readSelection, readConfidence, readDialect, readBounds, readReport, readWeights, readUseful, readDelta, readPrice,
	} {
		if err = read(r, &o); err != nil {
			return sqlrewrite.Options{}, err
		}
	}
	if r.Plan != "" {
		return underPlan(r, o)
	}
	if len(r.MaxError) == 0 {
		if err := p.defaults.price(&o, limit); err != nil {
			return sqlrewrite.Options{}, err
		}
	}
	if limit.Form == budget.Pure {
		return inPureCurrency(o)
	}
	return inGaussianCurrency(o)
}

// inPureCurrency keeps Gaussian noise, which has no finite ε, from accounts that count nothing else.
func inPureCurrency(o sqlrewrite.Options) (sqlrewrite.Options, error) {
	switch o.Mechanism {
	case sqlrewrite.MechanismAuto, sqlrewrite.MechanismLaplace:
		o.Mechanism = sqlrewrite.MechanismLaplace
		return o, nil
	default:
		return sqlrewrite.Options{}, fault.RequestMechanism("auto or laplace: the account is pure, and Gaussian noise has no finite epsilon")
	}
}

// inGaussianCurrency turns the (ε, δ) of a request for Gaussian noise into the ρ that such noise is made for.
func inGaussianCurrency(o sqlrewrite.Options) (sqlrewrite.Options, error) {
	if o.Mechanism != sqlrewrite.MechanismGaussian || o.Epsilon == 0 {
		return o, nil
	}
	if o.Delta == 0 {
		return sqlrewrite.Options{}, fault.RequestDelta(`given with Gaussian noise that is priced in epsilon, such as "1e-9"; or give rho`)
	}
	if o.Rho = accounting.RhoFor(o.Epsilon, o.Delta); o.Rho == 0 {
		return sqlrewrite.Options{}, fault.RequestEpsilon("larger for Gaussian noise at this delta")
	}
	o.Epsilon = 0
	return o, nil
}

func readMechanism(r api.QueryRequest, o *sqlrewrite.Options) error {
	switch choice := sqlrewrite.MechanismChoice(r.Mechanism); choice {
	case "":
		o.Mechanism = sqlrewrite.MechanismAuto
	case sqlrewrite.MechanismAuto, sqlrewrite.MechanismLaplace, sqlrewrite.MechanismGaussian:
		o.Mechanism = choice
	default:
		if !mechanisms.IsSelector(mechanisms.Name(r.Mechanism)) {
			return wrongMechanism()
		}
		o.Mechanism, o.Selection, o.SelectsOnly = sqlrewrite.MechanismAuto, mechanisms.Name(r.Mechanism), true
	}
	return nil
}

// readSelection comes after [readMechanism], which may have named the selection already.
func readSelection(r api.QueryRequest, o *sqlrewrite.Options) error {
	if r.Selection == "" || r.Selection == "auto" {
		return nil
	}
	named := mechanisms.Name(r.Selection)
	if !mechanisms.IsSelector(named) {
		return wrongSelection()
	}
	if o.SelectsOnly && o.Selection != named {
		return fault.RequestSelection(r.Mechanism + ", or left out: the mechanism names that selection")
	}
	o.Selection = named
	return nil
}

func readConfidence(r api.QueryRequest, o *sqlrewrite.Options) error {
	level := LevelOf(r)
	o.Simultaneous = r.Confidence != nil && r.Confidence.Simultaneous
	if !(level > 0 && level <= maxConfidence) || o.Simultaneous && level > maxSimultaneous {
		return wrongConfidence()
	}
	o.Confidence = mechanisms.Confidence(level)
	return nil
}

// LevelOf is the level of the intervals that a request asks for.
func LevelOf(r api.QueryRequest) float64 {
	if r.Confidence == nil || r.Confidence.Level == nil {
		return defaultConfidence
	}
	return *r.Confidence.Level
}

func readDialect(r api.QueryRequest, o *sqlrewrite.Options) error {
	switch dialect := sqlrewrite.Dialect(r.Dialect); dialect {
	case "", sqlrewrite.DialectPostgres, sqlrewrite.DialectMySQL:
		o.Dialect = dialect
		return nil
	default:
		return wrongDialect()
	}
}

func readBounds(r api.QueryRequest, o *sqlrewrite.Options) error {
	if r.MaxGroups != nil {
		if o.MaxGroups = *r.MaxGroups; o.MaxGroups < 1 {
			return fault.RequestMaxGroups(wantCount)
		}
	}
	if r.MaxRows != nil {
		if o.MaxRows = *r.MaxRows; o.MaxRows < 1 {
			return fault.RequestMaxRows(wantCount)
		}
	}
	if r.MaxRowsTotal != nil {
		if o.MaxTotal = *r.MaxRowsTotal; o.MaxTotal < 1 {
			return fault.RequestMaxRowsTotal(wantCount)
		}
	}
	return nil
}

func readReport(r api.QueryRequest, o *sqlrewrite.Options) error {
	switch o.Report = sqlrewrite.Report(r.Report); o.Report {
	case "", sqlrewrite.ReportKept:
		return nil
	default:
		return wrongReport()
	}
}

func readWeights(r api.QueryRequest, o *sqlrewrite.Options) (err error) {
	if len(r.Weights) > 0 {
		o.Weights, err = positives(r.Weights, wrongWeights)
	}
	return err
}

// readUseful checks the part of the rows that a request wants to be useful, which no plan depends on.
func readUseful(r api.QueryRequest, _ *sqlrewrite.Options) error {
	if part := r.RequireUseful; part != nil && !(*part > 0 && *part <= 1) {
		return wrongUseful()
	}
	return nil
}

// positives reads an amount above 0 for each name.
func positives(texts map[string]api.Decimal, wrong func() error) (map[string]*big.Rat, error) {
	numbers := make(map[string]*big.Rat, len(texts))
	for name, text := range texts {
		number, err := mechanisms.ParseDecimal(string(text))
		if err != nil || number.Sign() <= 0 {
			return nil, wrong()
		}
		numbers[name] = number
	}
	return numbers, nil
}

func readDelta(r api.QueryRequest, o *sqlrewrite.Options) error {
	if r.Delta == "" {
		return nil
	}
	var err error
	if o.Delta, err = mechanisms.ParseDelta(string(r.Delta)); err != nil {
		return wrongDelta()
	}
	return nil
}

// CeilingOf reads the most that a request may be charged; nil for none.
func CeilingOf(p *api.Price) (*budget.Ceiling, error) {
	if p == nil {
		return nil, nil
	}
	c := &budget.Ceiling{}
	for _, amount := range []struct {
		text api.Decimal
		to   **big.Rat
	}{{p.Epsilon, &c.Epsilon}, {p.Rho, &c.Rho}, {p.Delta, &c.Delta}} {
		if amount.text == "" {
			continue
		}
		var err error
		if *amount.to, err = mechanisms.ParseDecimal(string(amount.text)); err != nil {
			return nil, wrongAtMost()
		}
	}
	if c.Epsilon == nil && c.Rho == nil {
		return nil, wrongAtMost()
	}
	return c, nil
}

func readPrice(r api.QueryRequest, o *sqlrewrite.Options) error {
	given := 0
	for _, is := range []bool{r.Epsilon != "", r.Rho != "", len(r.MaxError) > 0} {
		if is {
			given++
		}
	}
	if given > 1 {
		return fault.RequestConflictingPrice()
	}
	var err error
	if r.Epsilon != "" {
		if o.Epsilon, err = mechanisms.ParseEpsilon(string(r.Epsilon)); err != nil || o.Epsilon == 0 {
			return wrongEpsilon()
		}
	}
	if r.Rho != "" {
		if o.Rho, err = mechanisms.ParseRho(string(r.Rho)); err != nil || o.Rho == 0 {
			return wrongRho()
		}
	}
	return nil
}

// WrongType refuses a member of a request whose JSON type does not fit, with the text that a wrong value gets too.
func WrongType(field string) error {
	switch field {
	case "plan":
		return fault.RequestPlan("plan", "the plan_id of a registered plan")
	case "mechanisms":
		return fault.RequestPlan("mechanisms", "a list of mechanisms")
	case "epsilon":
		return wrongEpsilon()
	case "rho":
		return wrongRho()
	case "delta":
		return wrongDelta()
	case "max_error":
		return wrongMaxError()
	case "at_most":
		return wrongAtMost()
	case "weights":
		return wrongWeights()
	case "require_useful":
		return wrongUseful()
	case "params":
		return fault.RequestParams("a list of values, one for each $n of the text")
	case "confidence":
		return wrongConfidence()
	case "mechanism":
		return wrongMechanism()
	case "selection":
		return wrongSelection()
	case "dialect":
		return wrongDialect()
	case "report":
		return wrongReport()
	case "wait":
		return fault.RequestWait(60)
	case "max_groups":
		return fault.RequestMaxGroups(wantCount)
	case "max_rows":
		return fault.RequestMaxRows(wantCount)
	default:
		return fault.RequestBody("has a value of the wrong type in the field " + fault.Quote(field))
	}
}

const wantCount = "a whole number of at least 1"

func wrongEpsilon() error {
	return fault.RequestEpsilon(`a decimal number from 1e-12 to 1000000, such as "0.5"`)
}

func wrongRho() error {
	return fault.RequestRho(`a decimal number from 1e-12 to 1000000, such as "0.05"`)
}

func wrongDelta() error {
	return fault.RequestDelta(`a decimal number of at least 0 and below 1, such as "1e-9"`)
}

func wrongMaxError() error {
	return fault.RequestMaxError("an object with a positive decimal number for each output it names")
}

func wrongAtMost() error {
	return fault.RequestAtMost(`an object with epsilon or rho, and delta where one may be charged, such as {"epsilon": "0.1", "delta": "1e-9"}`)
}

func wrongWeights() error {
	return fault.RequestWeights("an object with a positive decimal number for each output it names")
}

func wrongUseful() error { return fault.RequestUseful("a number above 0 and at most 1, such as 0.5") }

func wrongConfidence() error {
	return fault.RequestConfidence("a number above 0 and at most 0.999999999, or " +
		`{"level": 0.95, "simultaneous": true} with a level of at most 0.999999`)
}

func wrongMechanism() error {
	return fault.RequestMechanism("auto, laplace or gaussian; or a selection, where the query only selects")
}

func wrongSelection() error {
	return fault.RequestSelection("auto, exponential, permute_and_flip or report_noisy_max")
}

func wrongReport() error { return fault.RequestReport("kept, or left out") }

func wrongDialect() error { return fault.RequestDialect("postgresql or mysql") }

func orElse(err, otherwise error) error {
	if err != nil {
		return err
	}
	return otherwise
}

// CheckIdempotencyKey takes visible ASCII, as header values are.
func CheckIdempotencyKey(key string) error {
	for _, c := range []byte(key) {
		if c < '!' || c > '~' {
			return fault.RequestIdempotencyKey("visible ASCII characters")
		}
	}
	if len(key) > maxIdempotencyKey {
		return fault.RequestIdempotencyKey("at most 255 characters")
	}
	return nil
}
