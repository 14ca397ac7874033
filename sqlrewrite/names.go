package sqlrewrite

import (
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/answer"
	"noisegate.example/sqlrewrite/internal/earlier"
	"noisegate.example/sqlrewrite/internal/explain"
	"noisegate.example/sqlrewrite/internal/free"
	"noisegate.example/sqlrewrite/internal/keys"
	"noisegate.example/sqlrewrite/internal/parse"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/sqlprint"
)

// The names that other packages know, of types that rooms have.

// Note tells the analyst what the answer does not say by itself; Code is stable, Text is for people.
type Note = algebra.Note

// PostRow is one row of a [Post]'s result in PostgreSQL's text form, and which released row it came from, counted from 1; 0 for none.
type PostRow = answer.PostRow

// Answer is what an analyst gets: noisy values with intervals.
type Answer = answer.Answer

// ReportedShare is what was bought beside an answer, of what its bounds leave out.
type ReportedShare = answer.Report

// Interval is a confidence interval in PostgreSQL's text form of a number.
type Interval = answer.Interval

// Useful counts the useful rows of an answer: Rows of Of.
type Useful = answer.Useful

// Cell is a value of an answer, with what decides whether it is useful.
type Cell = answer.Cell

// Foretold says how much a row of an answer has to hold to be useful, and how many rows can.
type Foretold = answer.Foretold

// Explanation is what an estimate shows.
type Explanation = explain.Explanation

// PublicPlan is a query whose answer holds nothing private: it reads public tables alone, or it has no rows whatever the tables hold.
type PublicPlan = free.PublicPlan

// Dialect is the SQL that an analyst declares a text to be written in.
type Dialect = parse.Dialect

// Options are the choices of one request, already checked for range by the caller.
type Options = plan.Options

// Lists has the lists of keys that are known. A query that needs others ends with [NeedLists], which asks for them.
type Lists = keys.Lists

// NeedLists is the error of [Read] and [Rewrite] for a query that waits for lists. Ask again with these in [Options].Lists.
type NeedLists = keys.Needed

// ListQuestion asks for a list of keys. Its [keys.Question.Post] reads public tables and constants alone; the rows are the tuples.
type ListQuestion = keys.Question

// ListName identifies a list within one snapshot.
type ListName = keys.Name

// Tuples are the tuples of a list. Nil: the list is unavailable, and narrows nothing. Empty: no row can have a key.
type Tuples = keys.Tuples

// MostTuples caps the tuples of a list; a longer list is unavailable.
const MostTuples = keys.MostTuples

// Draws is the randomness of a plan that depends on no data, drawn before the query runs.
type Draws = plan.Draws

// Vector is all that was released so far of one question, at whatever accuracy: public, because each part of it is noisy and paid for.
type Vector = plan.Vector

// Report is what a request buys beside its answer, of what the bounds leave out.
type Report = plan.Report

// MechanismChoice is which noise the request asks for.
type MechanismChoice = plan.MechanismChoice

// ExactRow is one row of a [Statement]'s result: keys in clear, aggregates sealed.
type ExactRow = plan.ExactRow

// Rows are the rows of a plan's statements, one after another and one by one as PostgreSQL sends them, or the error that ended them.
type Rows = plan.Rows

// Column describes one output.
type Column = plan.Column

// Proofs remember which statements are proven; see [Statement.Prove].
type Proofs = sqlprint.Proofs

// DryRun is a statement that names no table: in place of each it reads made-up rows.
type DryRun = sqlprint.DryRun

// Ranges say which arguments of a [Statement] are the ends of the ranges in which it reads a table.
type Ranges = sqlprint.Ranges

// Statement is SQL that Noisegate printed, with every literal as a parameter.
type Statement = sqlprint.Statement

// Precondition is a table's metadata as it was when its policy was checked; a statement runs only while it still holds.
type Precondition = sqlprint.Precondition

// PreconditionColumn is one column of a [Precondition].
type PreconditionColumn = sqlprint.PreconditionColumn

// Post is SQL over released values and public tables: what post-processes a release, or a query that reads nothing private.
type Post = sqlprint.Post

// The constants of these types.
const (
	DialectPostgres   = parse.DialectPostgres
	DialectMySQL      = parse.DialectMySQL
	MechanismAuto     = plan.MechanismAuto
	MechanismLaplace  = plan.MechanismLaplace
	MechanismGaussian = plan.MechanismGaussian
	ReportKept        = plan.ReportKept
)

// ReadVector reads what [Vector.Text] wrote.
func ReadVector(text []byte) (*Vector, error) { return plan.ReadVector(text) }

// DryRuns are those of the plan's statements.
func (p *Plan) DryRuns() []DryRun { return p.made.DryRuns() }

// Price is the price that the plan was made for: an ε or, if that is 0, a ρ.
func (p *Plan) Price() (mechanisms.PicoEpsilon, mechanisms.PicoRho) { return p.made.Price() }

// Loss is the price of the plan, known before any row is read and dependent on none.
func (p *Plan) Loss() mechanisms.Loss { return p.made.Loss() }

// Mechanisms are the parameters of all releases, for the ledger.
func (p *Plan) Mechanisms() []mechanisms.Parameters { return p.made.Mechanisms() }

// NeedsData is false when the answer is a function of the policy alone (SELECT DISTINCT over a public domain): the loss is
// zero, there is no statement to run, and Release is called with no rows.
func (p *Plan) NeedsData() bool { return p.made.NeedsData() }

// ReadsPublic reports whether the outer layer of a plan reads public tables, which [Released.Post] does after the release.
func (p *Plan) ReadsPublic() bool { return p.made.Post != nil && len(p.made.Post.Preconditions()) > 0 }

// Statements are what runs on the protected database, in one transaction. They take the plan's draws because those hold the secret
// seed by which a unit's groups are chosen; the texts are the same for every draw, only that one argument differs.
func (p *Plan) Statements(d *Draws) []Statement { return p.made.Statements(d) }

// Fingerprint identifies the question: canonical query, options and the snapshot's version and digest. White space, comments, letter case
// of keywords, spelling of literals, order of conditions and aliases of tables do not matter; two plans with equal fingerprints give equal
// answers when replayed.
func (p *Plan) Fingerprint() [32]byte { return p.made.Fingerprint() }

// EarlierFingerprints are the names under which earlier versions of Noisegate can have stored the answer, over the keys that it has.
func (p *Plan) EarlierFingerprints() (names [][32]byte) {
	if p.made.FewerKeys() || p.made.Buys() { // there were no lists, and no values that are released first
		return nil
	}
	if wide := p.wide(); wide != nil && wide.Snapshot.WideQuestions {
		names = append(names, wide.Fingerprint())
	}
	if p.made.Snapshot.EarlierQuestions {
		names = append(names, earlier.Fingerprint(p.made))
	}
	return names
}

// UnlistedFingerprints are the names under which answers to the question were stored while lists left out none of its keys, by this version
// or an earlier one; nil where they leave none out now.
func (p *Plan) UnlistedFingerprints() (names [][32]byte) {
	add := func(made *plan.Plan, name func(*plan.Plan) [32]byte) {
		if all := made.Unlisted(); all != nil {
			names = append(names, name(all))
		}
	}
	add(p.made, (*plan.Plan).Fingerprint)
	before := p.made
	if wide := p.wide(); wide != nil {
		before = wide
	}
	if before != p.made && before.Snapshot.WideQuestions {
		add(before, (*plan.Plan).Fingerprint)
	}
	if before.Snapshot.EarlierQuestions {
		add(before, earlier.Fingerprint)
	}
	return names
}

// Draw samples everything that depends on no data, before the statements run: the noise of public groups and the secret
// seed of the statements. Draws serve one release.
func (p *Plan) Draw(s *mechanisms.Sampler) *Draws { return p.made.Draw(s) }

// Reusable reports whether answers to the question at other prices help to answer this one, and this answer others: it is a fixed number of
// integers with Gaussian noise. Private keys, selections and Laplace noise are not, nor are units whose groups are chosen at random, which
// are others each time.
func (p *Plan) Reusable() bool { return p.made.Reusable() }

// BlockQuestions identify what is released, at any price. They are equal for two plans that differ only in their price and in what is
// computed from released values, as long as keys and releases have the same order. What is released is stored under the first; the others
// are those under which earlier versions of Noisegate stored it, which may have had what is computed from it.
func (p *Plan) BlockQuestions() (names [][32]byte) {
	plans := p.made.BlockQuestions()
	if wide := p.wide(); wide != nil {
		plans = append(plans, wide.BlockQuestions()...)
	}
	for _, made := range plans {
		names = append(names, made.BlockQuestion())
	}
	before := plans[len(plans)-1]
	if before.Query.FewerKeys() { // there were no lists
		return names
	}
	if before.Snapshot.EarlierReleases {
		names = append(names, earlier.BlockQuestion(before))
	}
	if before.Snapshot.EarlierQuestions {
		names = append(names, earlier.Question(before))
	}
	return names
}

// Slots is how many slots of a registered plan the query needs: one for each release.
func (p *Plan) Slots() int { return p.made.Slots() }

// Distribute prints the plan's statements for a database whose tables lie on several servers (Citus). It asks its workers for the columns
// that HAVING names, not for the keys that are computed from them, which is no SQL: so keys that a flat statement computes are held against
// their domain row by row. That are the same groups with the same rows; PostgreSQL itself is faster when it tests groups. The question
// stays what it is.
func (p *Plan) Distribute() error { return p.made.Distribute() }

// Post is the post-processing query as SQL over the released values; ok is false when there is none to run.
func (r *Released) Post() (post Post, ok bool) { return r.made.Post() }

// Vector is what was released, for other questions that differ in price only; the plan must be [Plan.Reusable].
func (r *Released) Vector() *Vector { return r.made.Vector() }

// Kept is what was released, as JSON: groups and noisy values, for [Form.Recall].
func (r *Released) Kept() ([]byte, error) { return r.made.Kept() }

// KeptLeast is how many bytes [Released.Kept] gives at least, known before anything is released; the plan is one of [Plan.Blocks]. It is 0
// where groups are selected, as it is not known how many are shown.
func (p *Plan) KeptLeast() int64 { return p.made.KeptLeast() }

// Foretell foretells the use of a plan of one release whose rows are those of the answer; nil for others, and where nothing that is
// released is shown as it is. People is about how many there are, 0 where that is not known. It depends on no row.
func (p *Plan) Foretell(people int64) *Foretold { return answer.Foretell(p.made, people) }

// AnswerBytes is about how many bytes an answer has, known before anything is released; the plan is one of [Plan.Blocks]. It is 0 where
// rows decide.
func (p *Plan) AnswerBytes() int64 { return p.made.AnswerBytes() }
