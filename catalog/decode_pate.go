package catalog

import (
	"math/big"
	"slices"
	"strings"

	"noisegate.example/mechanisms"
)

// PatePolicy is what the policy fixes for the ensembles of teachers that were trained on the dataset. Nil fixes nothing.
type PatePolicy struct {
	Sanitise  *SanitisePolicy  `json:",omitempty"` // of every ensemble without one
	Ensembles []EnsemblePolicy `json:",omitempty"` // sorted by name
	Votes     []VoteTable      `json:",omitempty"` // the only tables and views that votes are read from
}

// VoteTable is a table or view of votes, one vote a row, and its columns, to the letter. Its unit is the teacher: Unit
// is the column that names one.
type VoteTable struct{ Schema, Table, Unit, Query, Label string }

// ReadsVotes reports whether the policy names a table for votes, and these columns of it.
func (p *PatePolicy) ReadsVotes(t VoteTable) bool { return p != nil && slices.Contains(p.Votes, t) }

// EnsemblePolicy is what the policy fixes for one ensemble, whether it is defined yet or not.
type EnsemblePolicy struct {
	Name     string
	Sanitise *SanitisePolicy `json:",omitempty"`
}

// SanitisePolicy fixes how the data-dependent ε of labels may be published, so that nobody chooses it in the light of
// votes. Its numbers are decimals as [mechanisms.ParseDecimal] reads them.
type SanitisePolicy struct {
	Never   bool   `json:",omitempty"` // it may not be published at all; the numbers are empty
	Order   string // λ of the Rényi divergence, above 1
	Beta    string `json:",omitempty"` // smoothness, below 1/2λ; 0.4/λ when empty
	SigmaSS string // noise, in units of the smooth sensitivity
	Delta   string // of the statement, and of the charge for it
}

// SanitiseOf is what the policy fixes for an ensemble; nil leaves it to the ensemble's definition.
func (p *PatePolicy) SanitiseOf(ensemble string) *SanitisePolicy {
	if p == nil {
		return nil
	}
	i := slices.IndexFunc(p.Ensembles, func(e EnsemblePolicy) bool { return e.Name == ensemble })
	if i >= 0 && p.Ensembles[i].Sanitise != nil {
		return p.Ensembles[i].Sanitise
	}
	return p.Sanitise
}

func (d *decoder) pate(n *node) *PatePolicy {
	p := &PatePolicy{}
	d.fields(n, "pate", map[string]func(*node){
		"sanitise": func(n *node) { p.Sanitise = d.sanitise(n) },
		"votes": func(n *node) {
			if n.kind != listNode || len(n.items) == 0 {
				d.problem(n.pos, "votes: [{table: votes, unit: teacher, query: query, label: label}]",
					"votes must be a list of tables of votes, not %v", n.kind)
				return
			}
			for _, item := range n.items {
				p.Votes = append(p.Votes, d.voteTable(item))
			}
		},
		"ensembles": func(n *node) {
			if n.kind != mappingNode {
				d.problem(n.pos, "", "ensembles must be a mapping from names of ensembles, not %v", n.kind)
				return
			}
			for _, e := range n.entries {
				p.Ensembles = append(p.Ensembles, d.ensemble(e.value, e.key))
			}
		},
	})
	slices.SortFunc(p.Ensembles, func(a, b EnsemblePolicy) int { return strings.Compare(a.Name, b.Name) })
	return p
}

func (d *decoder) voteTable(n *node) VoteTable {
	before := len(d.problems)
	t := VoteTable{Schema: DefaultSchema}
	d.fields(n, "a table of votes", map[string]func(*node){
		"schema": func(n *node) { t.Schema = d.word(n, "schema") },
		"table":  func(n *node) { t.Table = d.word(n, "table") },
		"unit":   func(n *node) { t.Unit = d.word(n, "unit") },
		"query":  func(n *node) { t.Query = d.word(n, "query") },
		"label":  func(n *node) { t.Label = d.word(n, "label") },
	})
	if len(d.problems) == before && (t.Table == "" || t.Unit == "" || t.Query == "" || t.Label == "") {
		d.problem(n.pos, "", "a table of votes has table, unit (the column of the teacher), query and label")
	}
	return t
}

func (d *decoder) ensemble(n, key *node) EnsemblePolicy {
	e := EnsemblePolicy{Name: key.text}
	if !datasetPattern.MatchString(key.text) {
		d.problem(key.pos, "", "an ensemble has a name of small letters, digits, _ and -, at most 63 of them")
	}
	d.fields(n, "an ensemble", map[string]func(*node){
		"sanitise": func(n *node) { e.Sanitise = d.sanitise(n) },
	})
	return e
}

func (d *decoder) sanitise(n *node) *SanitisePolicy {
	if n.kind == plainNode && n.text == "never" {
		return &SanitisePolicy{Never: true}
	}
	if n.kind != mappingNode {
		d.problem(n.pos, "", "sanitise must be never, or a mapping with order, sigma_ss and delta, not %v", n.kind)
		return nil
	}
	before := len(d.problems)
	s := &SanitisePolicy{}
	d.fields(n, "sanitise", map[string]func(*node){
		"order":    func(n *node) { s.Order = d.decimal(n, "order", "1.001", "1000") },
		"beta":     func(n *node) { s.Beta = d.decimal(n, "beta", "0.000001", "0.5") },
		"sigma_ss": func(n *node) { s.SigmaSS = d.decimal(n, "sigma_ss", "0.01", "1000000") },
		"delta":    func(n *node) { s.Delta = d.decimal(n, "delta", minDelta, maxDelta) },
	})
	if len(d.problems) > before {
		return s
	}
	if s.Order == "" || s.SigmaSS == "" || s.Delta == "" {
		d.problem(n.pos, "", "sanitise needs order, sigma_ss and delta")
		return s
	}
	order, _ := parseDecimal(s.Order)
	if beta, ok := parseDecimal(s.Beta); ok && beta.Mul(beta, order).Cmp(big.NewRat(1, 2)) >= 0 {
		d.problem(n.pos, "leave it out: it is 0.4/order then", "beta must be below 1/(2·order)")
	}
	return s
}

// decimal is [decoder.amount] for numbers that are kept as they were written.
func (d *decoder) decimal(n *node, what, lo, hi string) string {
	if d.amount(n, what, lo, hi) == nil {
		return ""
	}
	if _, err := mechanisms.ParseDecimal(n.text); err != nil {
		d.problem(n.pos, "", "%s is %v", what, err)
		return ""
	}
	return n.text
}
