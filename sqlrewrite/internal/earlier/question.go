// Package earlier gives the names under which Noisegate stored questions and what they released before names were made of the algebra: the
// SHA-256 of statements as they were printed then. What was stored under them is looked for, and nothing is stored under them. The package
// goes, with the forms of sqlprint that only it prints (Identity, structure), once no ledger holds such names (decision 74). It does not
// know where answers are stored.
package earlier

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/internal/sqlprint"
	"noisegate.example/sqlrewrite/syntax"
)

// Fingerprint is the earlier name of a question, [plan.Plan.Fingerprint].
func Fingerprint(p *plan.Plan) [32]byte {
	p = before(p)
	if p.Several != nil {
		return fingerprintOfSeveral(p)
	}
	return fingerprint(p)
}

// before is the question as it was planned when it had such a name: within the bounds of the policy.
func before(p *plan.Plan) *plan.Plan {
	if wide := p.Wide(); wide != nil {
		return wide
	}
	return p
}

// Question identifies what is asked, at any price: equal for two plans with the same snapshot that differ only in ε, ρ, δ and in how the
// noise was chosen. Every other option is a part of it, as it is of [sqlrewrite.Plan.Fingerprint], and so is the order of the releases.
func Question(p *plan.Plan) [32]byte {
	p = before(p)
	free := *p
	o := &free.Options
	o.Epsilon, o.Rho, o.Delta, o.Mechanism, o.Currency, o.Selection, o.Report = 0, 0, 0, "", "", "", "" // nor is a report bought
	same := fingerprint(&free)
	h := sqlprint.Identity{Hash: sha256.New()}
	h.Add("noisegate question 1", string(same[:]))
	for _, r := range p.Releases {
		h.Add(sqlprint.DescribeStatistic(r.Statistic), r.PerGroup.String(), r.Unit.RatString())
	}
	var sum [32]byte
	h.Sum(sum[:0])
	return sum
}

// fingerprint hashes everything that decides the answer's distribution and its form: what runs below and above the noise with
// all constants (but not the seed, which is noise), the names of the outputs, the options and the version of the policy.
func fingerprint(p *plan.Plan) [32]byte {
	snapshot := p.Snapshot
	h := sqlprint.Identity{Hash: sha256.New()}
	h.Add("noisegate plan 1", snapshot.Dataset, fmt.Sprint(snapshot.Version), string(snapshot.Digest[:]))
	o := p.Options
	h.Add(fmt.Sprint(o.Epsilon), fmt.Sprint(o.Rho), fmt.Sprint(o.Delta), string(o.Mechanism), string(o.Currency),
		fmt.Sprint(float64(o.Confidence)), fmt.Sprint(p.Bounding.MaxRows), fmt.Sprint(p.Bounding.MaxGroups))
	if p.Bounding.MaxTotal > 0 {
		h.Add("max_rows_total", fmt.Sprint(p.Bounding.MaxTotal))
	}
	if o.Simultaneous {
		h.Add("simultaneous")
	}
	if o.Report != "" {
		h.Add("report", string(o.Report))
	}
	if o.Selection != "" { // without one the fingerprint is what it was before there were selections by name
		h.Add("selected by", string(o.Selection))
	}
	if len(o.Weights) > 0 { // likewise
		h.Add("weights", fmt.Sprint(len(o.Weights)))
		for _, name := range slices.Sorted(maps.Keys(o.Weights)) {
			h.Add(name, o.Weights[name].RatString())
		}
	}
	if slices.ContainsFunc(snapshot.Tables, func(t *catalog.Table) bool { return t.Copy != nil }) { // numbers of versions may begin anew
		h.Add("copy", snapshot.DataVersion)
	}
	for _, part := range canonicalParts(p) {
		h.Add(part.Statement.SQL)
		h.Args(part.Statement.Args)
	}
	// What the statements do not show: how values come from what they add up, and what is chosen by it.
	for _, m := range p.Query.Statistics {
		if m.Chooses() {
			h.Add("selection", m.Name)
		}
	}
	for _, v := range p.Query.Estimators {
		if v.How != algebra.AsReleased && v.How != algebra.MeanOf {
			h.Add("value", v.Name, fmt.Sprint(v.How, v.Of))
		}
	}
	if p.Query.Top > 0 {
		h.Add("top", fmt.Sprint(p.Query.Top))
	}
	for _, k := range p.Query.Keys {
		h.Add(k.Name)
		for _, d := range k.Domain {
			h.Add(fmt.Sprint(d.Null), d.Text)
		}
	}
	for _, out := range p.Query.Outputs {
		h.Add(out.Name, sqlprint.DescribeWith(out.Expr, p.Query))
	}
	addStructure(h, p.Query)
	if p.Post != nil {
		h.Add(sqlprint.PostIdentity(p.Query))
		h.Args(p.Post.Args())
	}
	var sum [32]byte
	h.Sum(sum[:0])
	return sum
}

// canonicalParts are the statements as they would be if the filter's conditions had been written in one certain order and way, without the
// forms that identity does not have. AND and OR do not depend on the order: no condition can fail on any row. They are hashed, and never
// run.
func canonicalParts(p *plan.Plan) []sqlprint.PlanPart {
	q := *p.Query
	if q.Where != nil {
		q.Where = Ordered(q.Where)
	}
	parts := sqlprint.PartsOf(&q)
	for i := range parts {
		sqlprint.NewStatementPrinter(&q, p.Bounding, &parts[i], sqlprint.Style{Identity: true}).Print()
		parts[i].Statement.SQL = parts[i].Template.Identity()
	}
	return parts
}

// Ordered sorts the operands of AND and OR by how they read. Those that read the same stay as they were written: the worst that can come
// of it is that two spellings of one question are two questions.
func Ordered(e algebra.Expr) algebra.Expr {
	switch e := e.(type) {
	case algebra.Not:
		return algebra.Not{X: Ordered(e.X)}
	case algebra.Binary:
		switch e.Op {
		case syntax.And, syntax.Or:
		case syntax.Eq, syntax.Ne, syntax.Lt, syntax.Le, syntax.Gt, syntax.Ge:
			return algebra.Binary{Op: e.Op, L: plain(e.L), R: plain(e.R), T: e.T}
		default:
			return e
		}
		operands := operandsOf(e.Op, e)
		for i := range operands {
			operands[i] = Ordered(operands[i])
		}
		slices.SortStableFunc(operands, func(a, b algebra.Expr) int { return strings.Compare(sqlprint.Describe(a), sqlprint.Describe(b)) })
		sorted := operands[0]
		for _, next := range operands[1:] {
			sorted = algebra.Binary{Op: e.Op, L: sorted, R: next, T: e.T}
		}
		return sorted
	default:
		return e
	}
}

// plain spells a number that is compared in one way: 30, 30.0 and 3e1 are as large as each other, whatever they are compared with. (Not so
// in a division, where 2 and 2.0 differ.)
func plain(e algebra.Expr) algebra.Expr {
	c, ok := e.(algebra.Constant)
	if !ok || c.Null || !c.T.IsInteger() && c.T != catalog.Numeric {
		return e
	}
	value, ok := scalar.ParseNumber(c.Text)
	if !ok {
		return e
	}
	return algebra.Constant{Text: value.RatString(), T: catalog.Numeric}
}

// operandsOf takes a chain of one operator apart.
func operandsOf(op syntax.Operator, e algebra.Expr) []algebra.Expr {
	if b, ok := e.(algebra.Binary); ok && b.Op == op {
		return append(operandsOf(op, b.L), operandsOf(op, b.R)...)
	}
	return []algebra.Expr{e}
}

// fingerprintOfSeveral is [fingerprint] of a plan with several blocks: that of each block at its share of the price, and what is
// computed from them.
func fingerprintOfSeveral(p *plan.Plan) [32]byte {
	h, same := sqlprint.Identity{Hash: sha256.New()}, make([]int, len(p.Several.Plans))
	for i := range same {
		same[i] = p.Several.Same(i)
	}
	h.Add("noisegate plan of several releases 1", fmt.Sprint(same))
	if p.Query.Reports {
		h.Add("report", string(p.Options.Report))
	}
	for _, block := range p.Several.Plans {
		identity := fingerprint(block)
		h.Add(string(identity[:]))
	}
	for _, out := range p.Query.Outputs {
		h.Add(out.Name)
	}
	h.Add(sqlprint.PostIdentity(p.Query))
	h.Args(p.Post.Args())
	var sum [32]byte
	h.Sum(sum[:0])
	return sum
}
