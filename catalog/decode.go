package catalog

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"noisegate.example/internal/fault"
)

// Limits of budgets, compiled in: a policy beyond them is a slip or an attack, never a promise worth making.
const (
	maxEpsilon = 1_000_000 // ε and ρ; in pico units this still fits 64 bits
	maxDelta   = "0.001"
	minLoss    = "0.000000000001"       // one pico unit
	minDelta   = "0.000000000000000001" // one atto unit
)

// Parse reads a policy file. All that is wrong with it is reported together: every error is a policy/invalid fault with
// its place in the text. There is a policy only if there are no errors.
func Parse(document string) (*Policy, []error) {
	root, err := parseYAML(document)
	if err != nil {
		return nil, []error{err}
	}
	d := &decoder{}
	p := d.policy(root)
	if len(d.problems) > 0 {
		return nil, inOrder(d.problems)
	}
	p.Document = document
	return p, nil
}

// decoder walks the file and collects what is wrong.
type decoder struct {
	problems []error
}

func (d *decoder) problem(pos fault.Position, hint, format string, args ...any) {
	d.problems = append(d.problems, fault.PolicyInvalid(pos, fmt.Sprintf(format, args...), hint))
}

// inOrder sorts errors by their place in the file.
func inOrder(problems []error) []error {
	place := func(err error) (pos fault.Position) {
		var f *fault.Error
		if errors.As(err, &f) {
			pos = f.Pos
		}
		return pos
	}
	slices.SortStableFunc(problems, func(a, b error) int {
		x, y := place(a), place(b)
		return cmp.Or(cmp.Compare(x.Line, y.Line), cmp.Compare(x.Column, y.Column))
	})
	return problems
}

// fields hands each entry of a mapping to its function. What names the mapping in messages.
func (d *decoder) fields(n *node, what string, known map[string]func(*node)) {
	if n.kind != mappingNode {
		d.problem(n.pos, "", "%s must be a mapping, not %v", what, n.kind)
		return
	}
	for _, e := range n.entries {
		read, ok := known[e.key.text]
		if !ok {
			d.problems = append(d.problems, fault.PolicyUnknown(e.key.pos, "key", e.key.text, slices.Sorted(maps.Keys(known))))
			continue
		}
		read(e.value)
	}
}

func has(n *node, key string) bool {
	return n.kind == mappingNode && slices.ContainsFunc(n.entries, func(e entry) bool { return e.key.text == key })
}

func (d *decoder) policy(root *node) *Policy {
	p := &Policy{}
	d.fields(root, "a policy", map[string]func(*node){
		"version":    func(n *node) { d.constant(n, "version", "1") },
		"dataset":    func(n *node) { p.Dataset = d.datasetName(n) },
		"neighbours": func(n *node) { d.constant(n, "neighbours", "add-remove") },
		"tables":     func(n *node) { p.Tables = d.tables(n) },
		"budgets":    func(n *node) { p.Budgets = d.budgets(n) },

		"pate":           func(n *node) { p.Pate = d.pate(n) },
		"data_version":   func(n *node) { p.DataVersion = d.dataVersion(n) },
		"share_releases": func(n *node) { p.ShareReleases = d.truth(n, "share_releases") },
		"max_failures":   func(n *node) { p.MaxFailures = d.whole(n, "max_failures", "", maxFailures) },
		"timing":         func(n *node) { p.Timing = d.timing(n) },
		"stewards":       func(n *node) { p.Stewards = d.stewards(n) },

		"refresh_charges": func(n *node) { p.RefreshCharges = d.truth(n, "refresh_charges") },

		"about": func(n *node) { p.About = d.about(n) },
	})
	for _, key := range []string{"version", "dataset", "tables", "budgets"} {
		if root.kind == mappingNode && !has(root, key) {
			d.problem(root.pos, "", "the policy lacks the key %q", key)
		}
	}
	d.checkTiming(root, p)
	return p
}

// maxPeople bounds how many people a dataset is about.
const maxPeople = 100_000_000_000

// about reads what everybody may know of the people in the tables. Their number is round, so that nobody copies an exact one.
func (d *decoder) about(n *node) *AboutPolicy {
	a := &AboutPolicy{pos: n.pos}
	d.fields(n, "about", map[string]func(*node){"people": func(n *node) {
		if a.People = d.whole(n, "people", "", maxPeople); len(strings.TrimRight(n.text, "0")) > 2 {
			d.problem(n.pos, "write 5000 or 12000", "people must be a round number, of at most two digits before its zeros: analysts see it")
		}
	}})
	if n.kind == mappingNode && !has(n, "people") {
		d.problem(n.pos, "write about: {people: 5000}", "about says about how many people there are in the tables")
	}
	return a
}

func (d *decoder) constant(n *node, what, want string) {
	if n.text != want {
		d.problem(n.pos, "", "%s must be %s", what, want)
	}
}

var datasetPattern = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,62}$`)

func (d *decoder) datasetName(n *node) string {
	if !datasetPattern.MatchString(n.text) {
		d.problem(n.pos, "", "dataset must be a name of small letters, digits, _ and -, at most 63 of them")
	}
	return n.text
}

// maxDataVersion bounds the name of a data version, in bytes.
const maxDataVersion = 200

func (d *decoder) dataVersion(n *node) string {
	if n.kind == listNode || n.kind == mappingNode || n.text == "" || len(n.text) > maxDataVersion {
		d.problem(n.pos, "", "data_version must be a text of at most %d bytes, such as 2026-03", maxDataVersion)
	}
	return n.text
}

// word is a scalar that is a name.
func (d *decoder) word(n *node, what string) string {
	if n.kind != plainNode && n.kind != textNode || n.text == "" {
		d.problem(n.pos, "", "%s must be a name, not %v", what, n.kind)
		return ""
	}
	if len(n.text) > 63 {
		d.problem(n.pos, "", "%s is longer than PostgreSQL's names, which have at most 63 bytes", what)
	}
	return n.text
}

// tableName reads "table" or "schema.table".
func (d *decoder) tableName(n *node, what string) TableName {
	schema, name, ok := strings.Cut(n.text, ".")
	if !ok {
		return TableName{DefaultSchema, d.word(n, what)}
	}
	if schema == "" || name == "" || strings.Contains(name, ".") || len(schema) > 63 || len(name) > 63 {
		d.problem(n.pos, "", "%s must be written as table or schema.table", what)
	}
	return TableName{schema, name}
}

func (d *decoder) tables(n *node) []*TablePolicy {
	if n.kind != mappingNode || len(n.entries) == 0 {
		d.problem(n.pos, "", "tables must be a mapping from table names to their policies, not %v", n.kind)
		return nil
	}
	var all []*TablePolicy
	given := map[TableName]bool{}
	for _, e := range n.entries {
		t := d.table(e.value, e.key)
		if given[t.TableName] {
			d.problem(e.key.pos, "", "table %s is given twice", t.TableName)
		}
		given[t.TableName] = true
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b *TablePolicy) int { return compareNames(a.TableName, b.TableName) })
	return all
}

func (d *decoder) table(n, key *node) *TablePolicy {
	t := &TablePolicy{TableName: d.tableName(key, "a table"), pos: key.pos}
	count := func(into *int64, line *int, what string) func(*node) {
		return func(n *node) { *into, *line = d.count(n, what), n.pos.Line }
	}
	d.fields(n, "a table", map[string]func(*node){
		"public": func(n *node) {
			if t.Declassified = n.kind == plainNode && n.text == "declassified"; t.Declassified {
				t.Public = true
			} else {
				t.Public = d.truth(n, "public")
			}
		},
		"unit":             func(n *node) { t.Unit, t.lines.Unit = d.unit(n), n.pos.Line },
		"max_rows":         count(&t.MaxRows, &t.lines.MaxRows, "max_rows"),
		"max_groups":       count(&t.MaxGroups, &t.lines.MaxGroups, "max_groups"),
		"max_values":       count(&t.MaxValues, &t.lines.MaxValues, "max_values"),
		"max_rows_total":   count(&t.MaxTotal, &t.lines.MaxTotal, "max_rows_total"),
		"prepare":          func(n *node) { t.Prepare = d.prepare(n) },
		"require_prepared": func(n *node) { t.RequirePrepared = d.truth(n, "require_prepared") },
		"row_security": func(n *node) {
			d.constant(n, "row_security", "per-row")
			t.RowSecurity = true
		},
		"not_covered": func(n *node) { t.NotCovered = d.kinds(n) },
		"domains":     func(n *node) { t.Domains = d.domains(n) },
		"columns":     func(n *node) { t.Columns = d.columns(n) },
	})
	d.together(t)
	switch {
	case n.kind != mappingNode:
	case t.Public && len(t.NotCovered) > 0:
		d.problem(key.pos, "write public: declassified if its rows are nobody's secret although foreign keys lead from them to people",
			"table %s is public, so it has no not_covered", t.TableName)
	case t.Public && (t.Unit != nil || t.MaxRows != 0 || t.MaxGroups != 0 || t.MaxValues != 0 || t.MaxTotal != 0):
		d.problem(key.pos, "", "table %s is public, so it has no unit, max_rows, max_groups, max_values or max_rows_total", t.TableName)
	case t.Prepare != nil && (t.Unit == nil || t.Unit.Kind != ColumnUnit):
		d.problem(key.pos, "leave out prepare", "table %s is not prepared: only a table with unit: {column: ...} can be", t.TableName)
	case t.RequirePrepared && t.Prepare == nil:
		d.problem(key.pos, "write prepare: {max_rows: N}, or leave out require_prepared",
			"table %s has require_prepared and no prepare: no question about it would be answered", t.TableName)
	case !t.Public && !has(n, "unit"):
		d.problem(key.pos, "write unit: {row: key}, unit: {column: person_id} or public: true",
			"table %s has neither a privacy unit nor public: true", t.TableName)
	case t.Unit != nil && t.Unit.Kind == RowUnit && (t.MaxRows > 1 || t.MaxGroups > 1 || t.MaxValues > 1 || t.MaxTotal > 1):
		d.problem(key.pos, "leave out max_rows, max_groups, max_values and max_rows_total",
			"table %s has the row as its unit, which is one row in one group", t.TableName)
	}
	return t
}

// maxPrepared bounds the rows of one unit in a prepared copy: beyond it no noise would leave an answer.
const maxPrepared = 1_000_000

// prepare reads how a table is prepared.
func (d *decoder) prepare(n *node) *PreparePolicy {
	p := &PreparePolicy{}
	d.fields(n, "prepare", map[string]func(*node){
		"max_rows": func(n *node) {
			if p.MaxRows = d.count(n, "max_rows"); p.MaxRows > maxPrepared {
				d.problem(n.pos, "", "max_rows of a prepared copy must be at most %d", maxPrepared)
			}
		},
		"refresh": func(n *node) {
			switch {
			case n.kind == mappingNode:
				p.Append = d.appended(n)
			case n.kind != plainNode && n.kind != textNode || n.text != "full":
				d.problem(n.pos, "write refresh: full, or refresh: {append: column, settle: 10m}",
					"refresh of a prepared copy is full, or says by which column new rows are found")
			}
		},
		"ranks": func(n *node) { p.Ranks = d.ranks(n) },
	})
	if n.kind == mappingNode && !has(n, "max_rows") {
		d.problem(n.pos, "write prepare: {max_rows: N}", "prepare lacks max_rows, the rows of one unit that a copy keeps")
	}
	return p
}

// appended reads how a prepared copy takes up new rows.
func (d *decoder) appended(n *node) *Append {
	a := &Append{}
	d.fields(n, "refresh", map[string]func(*node){
		"append": func(n *node) { a.Column = d.word(n, "append") },
		"settle": func(n *node) { a.Settle = d.duration(n, "settle", time.Second, 7*24*time.Hour) },
	})
	if !has(n, "append") || !has(n, "settle") {
		d.problem(n.pos, "write refresh: {append: column, settle: 10m}",
			"refresh lacks append, the column with the time when a row was inserted, or settle, for how long a transaction may insert")
	}
	return a
}

// ranks reads sets of columns, [[region], [month]].
func (d *decoder) ranks(n *node) (all [][]string) {
	if n.kind != listNode || len(n.items) == 0 || len(n.items) > maxRankSets {
		d.problem(n.pos, "write ranks: [[region], [month]]", "ranks must be a list of 1 to %d sets of columns", maxRankSets)
		return nil
	}
	for _, item := range n.items {
		if item.kind != listNode || len(item.items) == 0 {
			d.problem(item.pos, "write ranks: [[region], [month]]", "a set of ranks must be a list of columns")
			continue
		}
		var set []string
		for _, name := range item.items {
			set = append(set, d.word(name, "a column of ranks"))
		}
		slices.Sort(set)
		if slices.ContainsFunc(all, func(other []string) bool { return slices.Equal(set, other) }) {
			d.problem(item.pos, "leave one out", "ranks has a set of columns twice")
		}
		all = append(all, set)
	}
	return all
}

func (d *decoder) truth(n *node, what string) bool {
	if n.kind != plainNode || n.text != "true" && n.text != "false" {
		d.problem(n.pos, "", "%s must be true or false", what)
	}
	return n.text == "true"
}

// count reads a positive whole number; what one unit may contribute is at most a billion, so that sums of it cannot overflow.
func (d *decoder) count(n *node, what string) int64 {
	return d.whole(n, what, "", 1_000_000_000)
}

// whole reads a whole number from 1 to most; of names what it counts in the error ("of bytes ", or "").
func (d *decoder) whole(n *node, what, of string, most int64) int64 {
	v, err := strconv.ParseInt(n.text, 10, 64)
	if n.kind != plainNode || err != nil || v < 1 || v > most {
		d.problem(n.pos, "", "%s must be a whole number %sfrom 1 to %d", what, of, most)
		return 0
	}
	return v
}

// maxFailures bounds max_failures: each failure may tell something that no noise covers.
const maxFailures = 1000

func (d *decoder) unit(n *node) *UnitPolicy {
	u := &UnitPolicy{pos: n.pos}
	kinds := 0
	kind := func(k UnitKind) func(*node) {
		return func(n *node) { u.Kind, u.Column, kinds = k, d.word(n, "a unit's column"), kinds+1 }
	}
	d.fields(n, "a unit", map[string]func(*node){
		"row":    kind(RowUnit),
		"column": kind(ColumnUnit),
		"via":    kind(PathUnit),
		"to":     func(n *node) { u.To = d.tableName(n, "to") },
		"of":     func(n *node) { u.Of = d.word(n, "of") },
	})
	if n.kind == mappingNode && (kinds != 1 || has(n, "to") != (u.Kind == PathUnit)) {
		d.problem(n.pos, "write {row: key}, {column: person_id} or {via: order_id, to: orders}",
			"a unit is either a row, a column, or a path with via and to")
	}
	return u
}

// kinds reads a list of kinds of units.
func (d *decoder) kinds(n *node) []string {
	if n.kind != listNode || len(n.items) == 0 {
		d.problem(n.pos, "", "not_covered must be a list of kinds of units, such as [staff]")
		return nil
	}
	var all []string
	for _, item := range n.items {
		all = append(all, d.word(item, "a kind of unit"))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (d *decoder) columns(n *node) []*ColumnPolicy {
	if n.kind != mappingNode {
		d.problem(n.pos, "", "columns must be a mapping from column names to their policies, not %v", n.kind)
		return nil
	}
	var all []*ColumnPolicy
	for _, e := range n.entries {
		all = append(all, d.column(e.value, e.key))
	}
	slices.SortFunc(all, func(a, b *ColumnPolicy) int { return strings.Compare(a.Name, b.Name) })
	return all
}

func (d *decoder) column(n, key *node) *ColumnPolicy {
	c := &ColumnPolicy{Name: d.word(key, "a column"), pos: key.pos}
	var step *node
	d.fields(n, "a column", map[string]func(*node){
		"expose":     func(n *node) { c.Hidden = !d.truth(n, "expose") },
		"bounds":     func(n *node) { c.Bounds = d.bounds(n) },
		"step":       func(n *node) { step = n },
		"domain":     func(n *node) { c.Domain = d.domain(n) },
		"max_length": func(n *node) { c.MaxLength = d.whole(n, "max_length", "of bytes ", maxMaxLength) },
		"keys": func(n *node) {
			d.constant(n, "keys", "private")
			c.PrivateKeys = true
		},
	})
	if step != nil && c.Bounds == nil {
		d.problem(step.pos, "write bounds: [lo, hi] beside it", "column %s has a step without bounds", fault.Quote(c.Name))
	} else if step != nil {
		c.Bounds.Step = d.scalar(step, "step")
	}
	switch {
	case c.Domain != nil && c.PrivateKeys:
		d.problem(key.pos, "keep one of them", "column %s has both a domain and keys: private", fault.Quote(c.Name))
	case c.Hidden && (c.Bounds != nil || c.Domain != nil || c.PrivateKeys):
		d.problem(key.pos, "", "column %s is not exposed, so it has no other settings", fault.Quote(c.Name))
	}
	return c
}

func (d *decoder) scalar(n *node, what string) scalar {
	if n.kind != plainNode && n.kind != textNode {
		d.problem(n.pos, "put text with a colon, such as a time, in quotes", "%s must be a single value, not %v", what, n.kind)
	}
	return scalar{Text: n.text, pos: n.pos}
}

func (d *decoder) bounds(n *node) *BoundsPolicy {
	if n.kind != listNode || len(n.items) != 2 {
		d.problem(n.pos, "", "bounds must be a list of two values: [lo, hi]")
		return &BoundsPolicy{}
	}
	return &BoundsPolicy{Lo: d.scalar(n.items[0], "a bound"), Hi: d.scalar(n.items[1], "a bound")}
}

func (d *decoder) domain(n *node) *DomainPolicy {
	domain := &DomainPolicy{pos: n.pos}
	switch {
	case n.kind == mappingNode:
		d.fields(n, "a domain", map[string]func(*node){
			"table":  func(n *node) { domain.From.Table = d.tableName(n, "table") },
			"column": func(n *node) { domain.From.Column = d.word(n, "column") },
		})
		if !has(n, "table") || !has(n, "column") {
			d.problem(n.pos, "", "a domain from a table needs both table and column")
		}
	case n.kind == listNode && len(n.items) > 0:
		for _, item := range n.items {
			if item.kind == nullNode {
				domain.Keys = append(domain.Keys, scalar{Null: true, pos: item.pos})
				continue
			}
			domain.Keys = append(domain.Keys, d.scalar(item, "a key of the domain"))
		}
	default:
		d.problem(n.pos, "", "a domain must be a list of keys, or {table: t, column: c}")
	}
	return domain
}

// domains reads which columns have their keys together: [{columns: [town, nation], table: places, values: [town, nation]}].
func (d *decoder) domains(n *node) (all []TogetherPolicy) {
	const form = "write domains: [{columns: [town, nation], table: places, values: [town, nation]}]"
	if n.kind != listNode || len(n.items) == 0 {
		d.problem(n.pos, form, "domains must be a list of columns that have their keys together")
		return nil
	}
	names := func(n *node, what string) (all []string) {
		if n.kind == listNode {
			for _, item := range n.items {
				all = append(all, d.word(item, what))
			}
		}
		return all
	}
	for _, item := range n.items {
		p := TogetherPolicy{pos: item.pos}
		d.fields(item, "an entry of domains", map[string]func(*node){
			"columns": func(n *node) { p.Columns = names(n, "a column") },
			"table":   func(n *node) { p.Table = d.tableName(n, "table") },
			"values":  func(n *node) { p.Values = names(n, "a column") },
		})
		if item.kind == mappingNode && (len(p.Columns) < 2 || len(p.Columns) != len(p.Values) || p.Table == TableName{}) {
			d.problem(item.pos, form, "an entry of domains has two columns or more, a public table, and as many of its columns")
			continue
		}
		all = append(all, p)
	}
	return all
}

// together gives each column that has its keys together with others the domain that it has by itself.
func (d *decoder) together(t *TablePolicy) {
	for _, p := range t.Domains {
		if t.Public {
			d.problem(p.pos, "leave out domains", "table %s is public: its own rows say which keys stand together", t.TableName)
		}
		for i, name := range p.Columns {
			at, found := slices.BinarySearchFunc(t.Columns, name, func(c *ColumnPolicy, name string) int { return strings.Compare(c.Name, name) })
			if !found {
				t.Columns = slices.Insert(t.Columns, at, &ColumnPolicy{Name: name, pos: p.pos})
			}
			c := t.Columns[at]
			if c.Domain != nil || c.PrivateKeys || c.Hidden {
				d.problem(p.pos, "keep one of them", "column %s stands in domains, and has other keys, or none", fault.Quote(name))
				continue
			}
			c.Domain = &DomainPolicy{From: ColumnRef{Table: p.Table, Column: p.Values[i]}, pos: p.pos}
		}
	}
}

func (d *decoder) budgets(n *node) []Budget {
	if n.kind != listNode {
		d.problem(n.pos, "", "budgets must be a list, not %v", n.kind)
		return nil
	}
	var all []Budget
	for _, item := range n.items {
		b, ok := d.budget(item)
		if !ok {
			continue
		}
		if slices.ContainsFunc(all, func(o Budget) bool {
			return o.Scope == b.Scope && o.Name == b.Name && o.PerAnalyst == b.PerAnalyst
		}) {
			d.problem(item.pos, "", "this budget is given twice")
		}
		all = append(all, b)
	}
	d.checkDefaultsTogether(all)
	if !slices.ContainsFunc(n.items, func(item *node) bool { return has(item, "dataset") }) {
		d.problem(n.pos, "add - {dataset: true, form: approx, epsilon: 20, delta: 1e-6}",
			"there is no budget for the dataset, so nothing would limit all analysts together")
	}
	return all
}

func (d *decoder) budget(n *node) (b Budget, ok bool) {
	before := len(d.problems)
	scopes := 0
	b.pos = n.pos
	d.fields(n, "a budget", map[string]func(*node){
		"dataset": func(n *node) {
			b.Scope, scopes = DatasetScope, scopes+1
			if !d.truth(n, "dataset") {
				d.problem(n.pos, "", "dataset must be true")
			}
		},
		"group":   func(n *node) { b.Scope, b.Name, scopes = GroupScope, d.word(n, "group"), scopes+1 },
		"analyst": func(n *node) { b.Scope, b.Name, scopes = AnalystScope, d.word(n, "analyst"), scopes+1 },
		"per": func(n *node) {
			d.constant(n, "per", "analyst")
			b.PerAnalyst = true
		},
		"replay_only": func(n *node) { b.ReplayOnly = d.truth(n, "replay_only") },
		"form":        func(n *node) { b.Form = d.form(n) },
		"epsilon":     func(n *node) { b.Epsilon = d.amount(n, "epsilon", minLoss, strconv.Itoa(maxEpsilon)) },
		"rho":         func(n *node) { b.Rho = d.amount(n, "rho", minLoss, strconv.Itoa(maxEpsilon)) },
		"delta":       func(n *node) { b.Delta = d.amount(n, "delta", minDelta, maxDelta) },
		"max_epsilon_per_query": func(n *node) {
			b.MaxEpsilonPerQuery = d.amount(n, "max_epsilon_per_query", minLoss, strconv.Itoa(maxEpsilon))
		},
		"min_epsilon": func(n *node) { b.MinEpsilon = d.amount(n, "min_epsilon", MinFloor, strconv.Itoa(maxEpsilon)) },
		"default_epsilon": func(n *node) {
			b.DefaultEpsilon = d.amount(n, "default_epsilon", minLoss, strconv.Itoa(maxEpsilon))
		},
		"default_rho":   func(n *node) { b.DefaultRho = d.amount(n, "default_rho", minLoss, strconv.Itoa(maxEpsilon)) },
		"default_delta": func(n *node) { b.DefaultDelta = d.amount(n, "default_delta", minDelta, maxDelta) },
		"mechanisms":    func(n *node) { b.Mechanisms = d.noises(n) },
		"tranche":       func(n *node) { b.Tranche = d.tranche(n) },
		"rate":          func(n *node) { b.Rate = d.rate(n) },
	})
	if len(d.problems) > before {
		return b, false
	}
	switch {
	case scopes != 1:
		d.problem(n.pos, "", "a budget belongs to exactly one of dataset: true, group: name, analyst: name")
	case b.PerAnalyst && b.Scope != GroupScope:
		d.problem(n.pos, "", "per: analyst goes with group: name")
	case b.ReplayOnly && b.Scope == DatasetScope:
		d.problem(n.pos, "", "a dataset cannot be replay_only")
	case b.Form != "" || !b.ReplayOnly:
		d.checkForm(n, b)
	}
	d.checkDefaults(n, b)
	d.checkSchedule(n, b)
	if b.PerAnalyst {
		b.Scope = AnalystScope
	}
	return b, len(d.problems) == before
}

// noises reads the families of mechanisms that may charge an account.
func (d *decoder) noises(n *node) (all []Noise) {
	for _, item := range n.items {
		noise := Noise(item.text)
		if noise != LaplaceNoise && noise != GaussianNoise || slices.Contains(all, noise) {
			d.problem(item.pos, "", "mechanisms are laplace and gaussian, each once")
		}
		all = append(all, noise)
	}
	if len(all) == 0 {
		d.problem(n.pos, "mechanisms: [laplace]", "mechanisms is a list of laplace and gaussian; leave it out for both")
	}
	return all
}

func (d *decoder) form(n *node) Form {
	switch f := Form(n.text); f {
	case Pure, ZCDP, Approx:
		return f
	default:
		d.problem(n.pos, "", "form must be pure, zcdp or approx")
		return ""
	}
}

// checkForm holds the amounts against what the form adds up.
func (d *decoder) checkForm(n *node, b Budget) {
	switch {
	case b.Form == "":
		d.problem(n.pos, "", "a budget needs a form: pure, zcdp or approx")
	case b.Form == Pure && (b.Epsilon == nil || b.Rho != nil):
		d.problem(n.pos, "", "a budget of form pure has epsilon and no rho")
	case b.Form == ZCDP && (b.Rho == nil || b.Epsilon != nil):
		d.problem(n.pos, "", "a budget of form zcdp has rho and no epsilon")
	case b.Form == Approx && (b.Epsilon == nil || b.Delta == nil || b.Rho != nil):
		d.problem(n.pos, "", "a budget of form approx has epsilon and delta and no rho")
	}
}

// amount reads a decimal in [lo, hi].
func (d *decoder) amount(n *node, what, lo, hi string) *big.Rat {
	v, ok := parseDecimal(n.text)
	low, _ := parseDecimal(lo)
	high, _ := parseDecimal(hi)
	if n.kind == listNode || n.kind == mappingNode || !ok || v.Cmp(low) < 0 || v.Cmp(high) > 0 {
		d.problem(n.pos, "", "%s must be a number from %s to %s", what, lo, hi)
		return nil
	}
	return v
}

// decimalPattern bounds digits and exponent: an exponent of a billion would fill the memory.
var decimalPattern = regexp.MustCompile(`^[+-]?[0-9]{1,40}(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,2})?$`)

// parseDecimal reads a decimal number exactly.
func parseDecimal(text string) (*big.Rat, bool) {
	if !decimalPattern.MatchString(text) {
		return nil, false
	}
	return new(big.Rat).SetString(text)
}
