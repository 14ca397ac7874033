package catalog

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"noisegate.example/internal/fault"
)

// StewardsPolicy says which changes of the dataset take two stewards. Who they are the gateway's configuration says, and no policy.
type StewardsPolicy struct {
	TwoFor []string // kinds of changes, sorted; see [TwoForKinds]

	pos fault.Position
}

// The kinds of changes for which a policy can want two stewards.
const (
	forPublic = "public" // a table, or a column of one, that everybody may read
	forUnit   = "unit"   // who is protected
	forBounds = "bounds" // of values, and of what one unit adds to an answer
	forDomain = "domain" // keys of groups
	forCap    = "cap"    // an account that gets more, or is opened
	forTwo    = "two_for"
)

// TwoForKinds are the kinds, sorted.
func TwoForKinds() []string { return []string{forBounds, forCap, forDomain, forPublic, forUnit} }

func (d *decoder) stewards(n *node) *StewardsPolicy {
	p := &StewardsPolicy{pos: n.pos}
	d.fields(n, "stewards", map[string]func(*node){"two_for": func(n *node) {
		for _, item := range n.items {
			if !slices.Contains(TwoForKinds(), item.text) || slices.Contains(p.TwoFor, item.text) {
				d.problem(item.pos, "", "two_for has %s, each once", strings.Join(TwoForKinds(), ", "))
			}
			p.TwoFor = append(p.TwoFor, item.text)
		}
	}})
	if len(p.TwoFor) == 0 {
		d.problem(n.pos, "write two_for: [public, unit, bounds, domain, cap], or leave it out", "stewards says which changes take two of them")
	}
	slices.Sort(p.TwoFor)
	return p
}

// twoFor are the kinds of changes that take two stewards; none where there is no policy.
func (p *Policy) twoFor() []string {
	if p == nil || p.Stewards == nil {
		return nil
	}
	return p.Stewards.TwoFor
}

// critical are the kinds of changes, sorted, by which a policy differs from another one. Both are compared as wholes, and what is known to
// be harmless is listed: any other difference, also of an unknown setting, is of all kinds. So is every difference from a policy that
// cannot be read (nil).
func critical(old, new *Policy) []string {
	if old == nil {
		return TwoForKinds()
	}
	if string(old.canonical()) == string(new.canonical()) {
		return nil
	}
	kinds, found := map[string]bool{}, false
	differences(nil, old.tree(), new.tree(), func(path []string, before, after any) {
		found = true
		for _, kind := range kindsOf(path, before, after) {
			kinds[kind] = true
		}
	})
	if old.reorders(new) {
		found, kinds[forCap] = true, true
	}
	if !found {
		return TwoForKinds()
	}
	return slices.Sorted(maps.Keys(kinds))
}

// raisedBy reports whether a policy's lines of budgets give an account more, or open one, in another version of it; of one that nobody can
// read (nil) it is taken for granted.
func (p *Policy) raisedBy(next *Policy) (raised bool) {
	if p == nil {
		return true
	}
	differences(nil, p.tree(), next.tree(), func(path []string, before, after any) {
		raised = raised || len(path) > 0 && path[0] == "Budgets" && slices.Contains(kindsOf(path, before, after), forCap)
	})
	return raised || p.reorders(next)
}

// differences visits each setting that two trees set differently. A table or a column that only one has is compared with one that says
// nothing.
func differences(path []string, old, new any, visit func(path []string, old, new any)) {
	before, ok1 := old.(map[string]any)
	after, ok2 := new.(map[string]any)
	if (ok1 || old == nil) && (ok2 || new == nil) && (ok1 || ok2) && !indivisible(setting(path), ok1 && ok2) {
		keys := maps.Clone(after)
		if keys == nil {
			keys = map[string]any{}
		}
		maps.Copy(keys, before)
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			differences(append(slices.Clone(path), key), before[key], after[key], visit)
		}
		return
	}
	if leaf(old) != leaf(new) {
		visit(path, old, new)
	}
}

// setting is a path with * in place of names, which may be those of settings.
func setting(path []string) string {
	words := slices.Clone(path)
	for i := range words {
		if i == 1 && (words[0] == "Tables" || words[0] == "Budgets") || i == 3 && words[0] == "Tables" && words[2] == "Columns" {
			words[i] = "*"
		}
	}
	return strings.Join(words, ".")
}

// indivisible reports whether a setting is one difference, however much it holds; both says that both policies have it.
func indivisible(setting string, both bool) bool {
	switch setting {
	case "", "Tables", "Tables.*", "Tables.*.Columns", "Tables.*.Columns.*", "Budgets", "Stewards":
		return false
	case "Budgets.*":
		return !both
	}
	return true
}

// kindsOf are the kinds of one difference; none where it is harmless.
func kindsOf(path []string, old, new any) []string {
	switch setting(path) {
	case "DataVersion", "RefreshCharges", "Stewards.TwoFor", // what two_for loses is looked at apart
		"Budgets.*.DefaultEpsilon", "Budgets.*.DefaultRho", "Budgets.*.DefaultDelta":
		return nil
	case "Tables.*.Unit", "Tables.*.NotCovered", "Tables.*.RowSecurity":
		return []string{forUnit}
	case "Tables.*.MaxRows", "Tables.*.MaxGroups", "Tables.*.MaxValues", "Tables.*.MaxTotal", "Tables.*.Prepare",
		"Tables.*.Columns.*.Bounds", "Tables.*.Columns.*.MaxLength":
		return []string{forBounds}
	case "Tables.*.RequirePrepared":
		return unlessTightened(forBounds, path, old, new)
	case "Tables.*.Domains", "Tables.*.Columns.*.Domain", "Tables.*.Columns.*.PrivateKeys":
		return []string{forDomain}
	case "Tables.*.Public", "Tables.*.Declassified", "Tables.*.Columns.*.Hidden":
		return unlessTightened(forPublic, path, old, new)
	case "Budgets.*", "Budgets.*.Form": // a line that comes gives an account, one that goes lifts a cap
		return []string{forCap}
	case "Budgets.*.MinEpsilon", "Budgets.*.Epsilon", "Budgets.*.Rho",
		"Budgets.*.Delta", "Budgets.*.MaxEpsilonPerQuery", "Budgets.*.ReplayOnly",
		"Budgets.*.Mechanisms", "Budgets.*.Tranche", "Budgets.*.Rate":
		return unlessTightened(forCap, path, old, new)
	case "ShareReleases", "MaxFailures", "Timing":
		if len(unlessTightened("", path, old, new)) == 0 {
			return nil
		}
	}
	return TwoForKinds()
}

func unlessTightened(kind string, path []string, old, new any) []string {
	if effectOf(path, old, new) == Tightens {
		return nil
	}
	return []string{kind}
}

// reorders reports whether lines of budgets that both policies have stand in another order: the first that fits a member of a group counts.
func (p *Policy) reorders(new *Policy) bool {
	order := func(p, other *Policy) (names []string) {
		there := other.tree()["Budgets"].(map[string]any)
		for _, b := range p.Budgets {
			name := budgetName(map[string]any{"Scope": string(b.Scope), "PerAnalyst": b.PerAnalyst, "Name": b.Name})
			if _, ok := there[name]; ok {
				names = append(names, name)
			}
		}
		return names
	}
	return !slices.Equal(order(p, new), order(new, p))
}

// redraws reports whether a domain that both schemas know as a column of a public table has other keys now.
func (s *Schema) redraws(now *Schema) bool {
	keys := map[ColumnRef][]Key{}
	for _, d := range now.Domains {
		keys[d.From] = d.Keys
	}
	return slices.ContainsFunc(s.Domains, func(d DomainValues) bool {
		is, ok := keys[d.From]
		return ok && !slices.Equal(is, d.Keys)
	})
}

// wantsTwo are the kinds for which a policy takes two stewards as the next version, sorted: what the version in force (nil: none) and the
// chain say takes two, and is changed. Public says that it shows rows which were protected.
func (s *Store) wantsTwo(kinds []string, current *storedPolicy, p *Policy, pinned *Schema, public bool) (wanted []string, err error) {
	if public {
		wanted = append(wanted, forPublic)
	}
	if current == nil {
		return wanted, nil
	}
	old := current.policy()
	if current.strange { // no entry of the chain says that it was applied
		old = nil
	}
	kinds = slices.Concat(kinds, old.twoFor())
	changed := critical(old, p)
	stored, err := decodeSchema(current.metadata)
	if err != nil {
		return nil, err
	}
	if stored.redraws(pinned) {
		changed = append(changed, forDomain)
	}
	for _, kind := range kinds {
		if slices.Contains(changed, kind) {
			wanted = append(wanted, kind)
		}
		if !slices.Contains(p.twoFor(), kind) {
			wanted = append(wanted, forTwo)
		}
	}
	slices.Sort(wanted)
	return slices.Compact(wanted), nil
}

// checkStewards refuses a policy that wants two stewards where the configuration does not name so many, who could not change it again.
func (s *Store) checkStewards(p *Policy) error {
	if named := s.chain.Stewards(p.Dataset); len(p.twoFor()) > 0 && len(named) < 2 {
		return fault.PolicyInvalid(p.Stewards.pos, fmt.Sprintf("two_for wants two stewards, and the configuration names the keys of %d",
			len(named)), namesTwo(p.Dataset))
	}
	return nil
}

// namesTwo is how a second steward is named.
func namesTwo(dataset string) string {
	return "name two stewards with their keys in the file of datasets." + dataset + ".steward_keys_file"
}
