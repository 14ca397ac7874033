package api

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"time"
)

// EnsembleDefinition is the body of PUT /v1/pate/{ensemble}: who votes on what. It begins a version of the ensemble.
type EnsembleDefinition struct {
	Dataset  string   `json:"dataset"` // that the teachers were trained on, and whose budget pays
	Teachers int64    `json:"teachers"`
	Classes  []string `json:"classes"` // by name; their order numbers them and decides equal votes
	// MaxTeachersPerPerson is how many teachers' partitions may hold data of one person; 1 when absent.
	MaxTeachersPerPerson *int64 `json:"max_teachers_per_person,omitempty"`
	// PartitionSHA256 declares, in hexadecimal, how people were dealt out to teachers. The gateway cannot check it; it keeps it.
	PartitionSHA256 string `json:"partition_sha256,omitempty"`
	// Budget caps what all callers together may spend on the ensemble, over all its versions. The first version needs one.
	Budget *BudgetLimit `json:"budget,omitempty"`
	// Sanitise are the parameters of POST /v1/pate/{ensemble}/epsilon, fixed before any vote was seen; those of the policy when absent.
	Sanitise *SanitiseParameters `json:"sanitise,omitempty"`
}

// SanitiseParameters say how a data-dependent ε is sanitised: with noise scaled to its smooth sensitivity.
type SanitiseParameters struct {
	Order   Decimal `json:"order"`          // of the Rényi divergence, above 1
	Beta    Decimal `json:"beta,omitempty"` // smoothness, below 1/(2·order); 0.4/order when absent
	SigmaSS Decimal `json:"sigma_ss"`       // noise, in units of the smooth sensitivity
	Delta   Decimal `json:"delta"`          // of the statement, and of the charge for it
}

// Ensemble is the answer to GET and PUT /v1/pate/{ensemble}. Nothing in it depends on a vote.
type Ensemble struct {
	Ensemble             string              `json:"ensemble"`
	Version              int64               `json:"version"`
	State                string              `json:"state"` // defined, loaded or sealed
	Dataset              string              `json:"dataset"`
	Teachers             int64               `json:"teachers"`
	Classes              []string            `json:"classes"`
	MaxTeachersPerPerson int64               `json:"max_teachers_per_person"`
	PartitionSHA256      string              `json:"partition_sha256,omitempty"`
	Sanitise             *SanitiseParameters `json:"sanitise,omitempty"`
	Queries              int64               `json:"queries"`
	Answered             int64               `json:"answered"` // outcomes released so far, over all mechanisms
	Rejected             int64               `json:"rejected"`
	Reinforced           int64               `json:"reinforced"`
	Limit                *BudgetLimit        `json:"limit,omitempty"` // of the ensemble's own account
	Spent                Amounts             `json:"spent"`           // from it, by all callers, over all versions; it depends on no vote
	Remaining            Amounts             `json:"remaining"`
	Usage                *Usage              `json:"usage,omitempty"` // of the limit
	DefinedAt            time.Time           `json:"defined_at"`
	SealedAt             *time.Time          `json:"sealed_at,omitempty"`
}

// EnsembleList is the answer to GET /v1/pate: those that the caller may see.
type EnsembleList struct {
	Ensembles []Ensemble `json:"ensembles"` // by name
}

// VoteTable is a body of PUT /v1/pate/{ensemble}/votes: a table or view of the protected database with one row for each teacher and query.
// Names are matched to the letter.
type VoteTable struct {
	Schema  string `json:"schema"`
	Table   string `json:"table"`
	Teacher string `json:"teacher"` // column
	Query   string `json:"query"`   // column
	Label   string `json:"label"`   // column; its text is the name of a class
}

// LabelRequest is the body of POST /v1/pate/{ensemble}/labels.
type LabelRequest struct {
	Queries    []string `json:"queries"`
	Mechanism  string   `json:"mechanism"`             // lnmax, gnmax, confident, interactive or gumbel
	NoiseScale Decimal  `json:"noise_scale,omitempty"` // lnmax: b of the Laplace noise
	Sigma      Decimal  `json:"sigma,omitempty"`       // gnmax: σ of the Gaussian noise
	Sigma1     Decimal  `json:"sigma1,omitempty"`      // confident, interactive: σ of the check
	Sigma2     Decimal  `json:"sigma2,omitempty"`      // confident, interactive: σ of the answer
	Threshold  Decimal  `json:"threshold,omitempty"`   // confident, interactive: votes that the check asks for
	Gamma      Decimal  `json:"gamma,omitempty"`       // gumbel
	// Student are, for interactive, the student's probabilities of the classes for each query.
	Student           map[string][]Decimal `json:"student,omitempty"`
	StudentConfidence Decimal              `json:"student_confidence,omitempty"` // interactive: above it the student's own label stands
	Return            string               `json:"return,omitempty"`             // label (default) or histogram
	AtMost            *Price               `json:"at_most,omitempty"`            // the most that the worst case may be charged
}

// LabelResponse is the answer to POST /v1/pate/{ensemble}/labels.
type LabelResponse struct {
	ReleaseID string    `json:"release_id,omitempty"` // of the charge; absent when every label was a replay
	Ensemble  string    `json:"ensemble"`
	Version   int64     `json:"version"`
	Terms     LabelTerm `json:"terms"`
	Labels    []Label   `json:"labels"`     // in the order of the request
	Spent     Amounts   `json:"spent"`      // by this request
	WorstCase Amounts   `json:"worst_case"` // what was reserved for it
	Remaining Amounts   `json:"remaining"`  // in the caller's own account
}

// LabelTerm says what a mechanism's parameters mean.
type LabelTerm struct {
	Mechanism string  `json:"mechanism"`
	Meaning   string  `json:"meaning"`
	Check     Amounts `json:"check"`  // cost of the check of one query; zero where there is none
	Answer    Amounts `json:"answer"` // cost of one answer, in addition to the check
}

// Label is what is released of one query.
type Label struct {
	Query     string  `json:"query"`
	Status    string  `json:"status"` // answered, rejected or reinforced
	Label     *int    `json:"label"`  // number of the class, from 0; null when rejected
	Class     string  `json:"class,omitempty"`
	Histogram []Value `json:"histogram,omitempty"` // noisy counts by class
	Replayed  bool    `json:"replayed"`            // released before, and free
}

// LabelEstimateRequest is the body of POST /v1/pate/{ensemble}/labels/estimate.
type LabelEstimateRequest struct {
	Queries           []string `json:"queries,omitempty"` // either these; those that were released are free,
	Count             *int64   `json:"count,omitempty"`   // or how many
	Mechanism         string   `json:"mechanism"`
	NoiseScale        Decimal  `json:"noise_scale,omitempty"`
	Sigma             Decimal  `json:"sigma,omitempty"`
	Sigma1            Decimal  `json:"sigma1,omitempty"`
	Sigma2            Decimal  `json:"sigma2,omitempty"`
	Threshold         Decimal  `json:"threshold,omitempty"`
	Gamma             Decimal  `json:"gamma,omitempty"`
	StudentConfidence Decimal  `json:"student_confidence,omitempty"`
	Return            string   `json:"return,omitempty"`
	AnswerRate        *float64 `json:"answer_rate,omitempty"` // assumed share of queries that pass the check; 1 when absent
	Epsilon           Decimal  `json:"epsilon,omitempty"`     // how many labels does this ε buy?
	Delta             Decimal  `json:"delta,omitempty"`       // at which ρ is shown as ε; 1e-5 when absent
	UpTo              *int64   `json:"up_to,omitempty"`       // also the curve of ε up to so many labels
}

// LabelEstimate is the answer to POST /v1/pate/{ensemble}/labels/estimate. It is free and depends on no vote.
type LabelEstimate struct {
	Ensemble    string        `json:"ensemble"`
	Version     int64         `json:"version"`
	Terms       LabelTerm     `json:"terms"`
	Queries     int64         `json:"queries"`
	Replayed    int64         `json:"replayed"`   // of them were released before: free
	WorstCase   Amounts       `json:"worst_case"` // what would be reserved
	Expected    Amounts       `json:"expected"`   // at the assumed rate of answers
	Delta       Decimal       `json:"delta"`
	Epsilon     Decimal       `json:"epsilon"`                // of the worst case, at delta; null when there is none
	Affordable  bool          `json:"affordable"`             // by the caller's own account and the ensemble's
	StillBuys   int64         `json:"still_buys"`             // labels at the worst case, with what is left
	EpsilonBuys *int64        `json:"epsilon_buys,omitempty"` // labels for the ε that was named, at delta
	Remaining   Amounts       `json:"remaining"`
	Notes       []Note        `json:"notes"`
	Curve       *EpsilonCurve `json:"curve,omitempty"` // with up_to
}

// EpsilonCurve is ε after numbers of labels that are all bought at the same parameters and answered, by each accountant that looks at no
// vote.
type EpsilonCurve struct {
	Points []int64        `json:"points"` // numbers of labels
	Lines  []AnalysisLine `json:"lines"`
}

// AnalysisRequest is the body of POST /v1/pate/{ensemble}/analysis, /epsilon and /epsilon/estimate: which run to look at.
type AnalysisRequest struct {
	Queries           []string             `json:"queries,omitempty"` // the run; when absent all that were released under these parameters
	Mechanism         string               `json:"mechanism"`
	NoiseScale        Decimal              `json:"noise_scale,omitempty"`
	Sigma             Decimal              `json:"sigma,omitempty"`
	Sigma1            Decimal              `json:"sigma1,omitempty"`
	Sigma2            Decimal              `json:"sigma2,omitempty"`
	Threshold         Decimal              `json:"threshold,omitempty"`
	Gamma             Decimal              `json:"gamma,omitempty"`
	Student           map[string][]Decimal `json:"student,omitempty"` // interactive: of each query, which must be named then
	StudentConfidence Decimal              `json:"student_confidence,omitempty"`
	All               bool                 `json:"all,omitempty"`   // analysis: all queries of the version, released or not
	Delta             Decimal              `json:"delta,omitempty"` // analysis; 1e-5 when absent
	Exact             bool                 `json:"exact,omitempty"` // analysis: also the exact divergence, for at most 2000 queries
}

// Analysis is the answer to POST /v1/pate/{ensemble}/analysis: what labelling the run costs, method by method. It depends on votes and is
// for stewards' eyes only.
type Analysis struct {
	Ensemble string         `json:"ensemble"`
	Version  int64          `json:"version"`
	Terms    LabelTerm      `json:"terms"`
	Queries  int            `json:"queries"`
	Answered float64        `json:"answered"` // what was; of queries that were not released, what is expected
	Delta    Decimal        `json:"delta"`
	Points   []int          `json:"points"` // numbers of queries at which epsilon is given
	Lines    []AnalysisLine `json:"lines"`
}

// AnalysisLine is ε by one method.
type AnalysisLine struct {
	Method  string  `json:"method"`
	Secret  bool    `json:"secret"`          // depends on votes
	Order   float64 `json:"order,omitempty"` // of the Rényi divergence behind the last ε
	Epsilon []Value `json:"epsilon"`         // after as many queries as points says
}

// SanitisedEpsilon is the answer to POST /v1/pate/{ensemble}/epsilon: the data-dependent ε of a run, with noise scaled to its smooth
// sensitivity. It may be published. The same run has the same ε for ever.
type SanitisedEpsilon struct {
	Ensemble string `json:"ensemble"`
	Version  int64  `json:"version"`
	Queries  int    `json:"queries"` // that it covers: all labels that were sold of the version when it was asked for first
	Answered int    `json:"answered"`
	// Covers says what it speaks for, and what not: labels that were sold since, or of another version, are not
	// covered. It is to be published along with epsilon.
	Covers    string  `json:"covers,omitempty"`
	SoldSince int64   `json:"sold_since,omitempty"` // labels of the version that it does not cover
	Epsilon   float64 `json:"epsilon"`              // at delta; with noise, it includes the cost of publishing it
	// Confidence is how likely the noise in epsilon did not take it below what holds: 0.95, or 0.5 where the parameters
	// allow no more, and 1 where epsilon is what holds whatever the votes, as that is the smaller; absent, for 0.5, of what was drawn before.
	Confidence float64 `json:"confidence,omitempty"`
	Delta      Decimal `json:"delta"`
	Order      float64 `json:"order"`
	Beta       float64 `json:"beta"`
	SigmaSS    float64 `json:"sigma_ss"`
	Cost       float64 `json:"cost"` // Rényi divergence, at order, of publishing it
	Replayed   bool    `json:"replayed"`
	Spent      Amounts `json:"spent"`
}

// EpsilonEstimate is the answer to POST /v1/pate/{ensemble}/epsilon/estimate. Nothing in it depends on a vote.
type EpsilonEstimate struct {
	Ensemble    string  `json:"ensemble"`
	Version     int64   `json:"version"`
	Queries     int     `json:"queries"` // that it would cover
	Delta       Decimal `json:"delta"`
	Least       float64 `json:"least"`       // the least sanitised ε that can come out, whatever the votes
	Independent float64 `json:"independent"` // what holds whatever the votes, which is free: what is sold is never above it
	Price       Amounts `json:"price"`
}

// DefineEnsemble begins a version of an ensemble, for stewards.
func (c *Client) DefineEnsemble(ctx context.Context, name string, d EnsembleDefinition) (*Ensemble, error) {
	return send[Ensemble](ctx, c, call{method: http.MethodPut, path: ensemblePath(name), body: d})
}

// LoadVotes puts a file of votes into the version that is being prepared, for stewards. kind is its media type: application/x-npy,
// text/csv or application/x-ndjson. layout may be empty where shape or header say it.
func (c *Client) LoadVotes(ctx context.Context, name, kind, layout string, votes io.Reader) (*Ensemble, error) {
	path := ensemblePath(name) + "/votes"
	if layout != "" {
		path += "?layout=" + url.QueryEscape(layout)
	}
	return send[Ensemble](ctx, c, call{method: http.MethodPut, path: path, stream: votes, header: http.Header{"Content-Type": {kind}}})
}

// LoadVoteTable puts the votes of a table of the protected database into the version that is being prepared, for stewards.
func (c *Client) LoadVoteTable(ctx context.Context, name string, table VoteTable) (*Ensemble, error) {
	return send[Ensemble](ctx, c, call{method: http.MethodPut, path: ensemblePath(name) + "/votes", body: table})
}

// SealEnsemble makes the votes final, for stewards.
func (c *Client) SealEnsemble(ctx context.Context, name string) (*Ensemble, error) {
	return send[Ensemble](ctx, c, call{method: http.MethodPost, path: ensemblePath(name) + "/seal"})
}

// Ensembles lists the ensembles that the caller may see.
func (c *Client) Ensembles(ctx context.Context) (*EnsembleList, error) {
	return send[EnsembleList](ctx, c, call{method: http.MethodGet, path: "/v1/pate"})
}

// Ensemble shows an ensemble.
func (c *Client) Ensemble(ctx context.Context, name string) (*Ensemble, error) {
	return send[Ensemble](ctx, c, call{method: http.MethodGet, path: ensemblePath(name)})
}

// Labels buys private labels, or replays those that were released before. With an idempotencyKey, a repeated call is charged once.
func (c *Client) Labels(ctx context.Context, ensemble string, r LabelRequest, idempotencyKey string) (*LabelResponse, error) {
	return send[LabelResponse](ctx, c, call{method: http.MethodPost, path: ensemblePath(ensemble) + "/labels", body: r,
		header: keyed(idempotencyKey)})
}

// EstimateLabels prices labels. It costs nothing and looks at no vote.
func (c *Client) EstimateLabels(ctx context.Context, ensemble string, r LabelEstimateRequest) (*LabelEstimate, error) {
	return send[LabelEstimate](ctx, c, call{method: http.MethodPost, path: ensemblePath(ensemble) + "/labels/estimate", body: r})
}

// AnalyseVotes shows what a run costs by each method, for stewards. The answer is secret.
func (c *Client) AnalyseVotes(ctx context.Context, ensemble string, r AnalysisRequest) (*Analysis, error) {
	return send[Analysis](ctx, c, call{method: http.MethodPost, path: ensemblePath(ensemble) + "/analysis", body: r})
}

// SanitisedEpsilon buys the publishable ε of a run, for stewards.
func (c *Client) SanitisedEpsilon(ctx context.Context, ensemble string, r AnalysisRequest) (*SanitisedEpsilon, error) {
	return send[SanitisedEpsilon](ctx, c, call{method: http.MethodPost, path: ensemblePath(ensemble) + "/epsilon", body: r})
}

// EstimateEpsilon prices the publishable ε of a run, for stewards. It is free; pate/no-gain says that buying it gains nothing.
func (c *Client) EstimateEpsilon(ctx context.Context, ensemble string, r AnalysisRequest) (*EpsilonEstimate, error) {
	return send[EpsilonEstimate](ctx, c, call{method: http.MethodPost, path: ensemblePath(ensemble) + "/epsilon/estimate", body: r})
}

func ensemblePath(name string) string { return "/v1/pate/" + url.PathEscape(name) }
