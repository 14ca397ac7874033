package catalog

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
	"unicode"

	"noisegate.example/mechanisms"
)

// Effect says whom a change of a policy favours.
type Effect string

const (
	Loosens  Effect = "loosens"  // more may be learnt or spent, or less is proven
	Tightens Effect = "tightens" // the contrary
	Changes  Effect = "changes"  // neither, or it depends
)

// Change is one difference of two policies.
type Change struct {
	Effect Effect
	Text   string
}

// Diff lists what a policy changes of another one, which may be nil. It is empty exactly where both mean the same. It compares all of what
// identifies a policy; an unknown setting has the effect Changes.
func Diff(old, new *Policy) (all []Change) {
	if old == nil {
		old = &Policy{}
	}
	compare(nil, old.tree(), new.tree(), &all)
	return all
}

// tree is a policy as nested mappings of words and texts; lists whose items have names are mappings too.
func (p *Policy) tree() map[string]any {
	var root map[string]any
	if err := json.Unmarshal(p.canonical(), &root); err != nil {
		panic(err) // it was encoded a line above
	}
	root["Tables"] = named(root["Tables"], func(t map[string]any) string {
		t["Columns"] = named(t["Columns"], func(c map[string]any) string { return text(c["Name"]) })
		return TableName{text(t["Schema"]), text(t["Name"])}.String()
	})
	root["Budgets"] = named(root["Budgets"], budgetName)
	return root
}

// named turns a list of mappings into a mapping by name, in which the name itself is left out.
func named(list any, name func(map[string]any) string) map[string]any {
	all := map[string]any{}
	items, _ := list.([]any)
	for _, item := range items {
		if m, ok := item.(map[string]any); ok {
			key := name(m)
			delete(m, "Schema")
			delete(m, "Name")
			all[key] = m
		}
	}
	return all
}

func budgetName(b map[string]any) string {
	scope, per := text(b["Scope"]), b["PerAnalyst"] == true
	delete(b, "Scope")
	delete(b, "PerAnalyst")
	switch {
	case per:
		return "each of group " + text(b["Name"])
	default:
		return strings.TrimSpace(scope + " " + text(b["Name"]))
	}
}

func text(v any) string {
	s, _ := v.(string)
	return s
}

// whole are settings whose parts make sense together only.
func whole(key string) bool {
	return slices.Contains([]string{"Unit", "Bounds", "Domain", "Pate", "Timing"}, key)
}

// compare walks both trees. What is missing on one side is one change, however much it holds.
func compare(path []string, old, new any, all *[]Change) {
	before, ok1 := old.(map[string]any)
	after, ok2 := new.(map[string]any)
	if ok1 && ok2 && (len(path) == 0 || !whole(path[len(path)-1])) {
		keys := maps.Clone(before)
		maps.Copy(keys, after)
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			compare(append(slices.Clone(path), key), before[key], after[key], all)
		}
		return
	}
	if a, b := leaf(old), leaf(new); a != b {
		*all = append(*all, Change{effectOf(path, old, new), label(path) + ": " + said(old) + " → " + said(new)})
	}
}

// leaf is a value's canonical text; what says nothing is as if it were not there.
func leaf(v any) string {
	if v == nil || v == false || v == "" || v == 0.0 {
		return ""
	}
	encoded, err := json.Marshal(v)
	if err != nil {
		panic(err) // it was decoded from JSON
	}
	return string(encoded)
}

// saidBounds are bounds as a policy has them; "" for other values.
func saidBounds(v map[string]any) string {
	part := func(name string) string {
		m, _ := v[name].(map[string]any)
		return text(m["Text"])
	}
	lo, hi, step := part("Lo"), part("Hi"), part("Step")
	switch {
	case lo == "" || hi == "":
		return ""
	case step == "":
		return "[" + lo + ", " + hi + "]"
	default:
		return "[" + lo + ", " + hi + "] by " + step
	}
}

// said is a value for people.
func said(v any) string {
	const most = 60
	text := leaf(v)
	switch v := v.(type) {
	case map[string]any:
		if bounds := saidBounds(v); bounds != "" {
			return bounds
		}
		_, isTable := v["Public"]
		_, isColumn := v["Hidden"]
		switch {
		case hides(v):
			return "hidden"
		case isTable || isColumn || v["Form"] != nil:
			return "given"
		}
	case string:
		if text = v; v == "" {
			text = "none"
		} else if x, ok := new(big.Rat).SetString(v); ok && strings.Contains(v, "/") {
			n, _ := x.FloatPrec()
			text = x.FloatString(n)
		}
	}
	if text == "" {
		return "none"
	}
	if r := []rune(text); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return text
}

// label is a path as a policy file writes it: "tables.rental.max_rows".
func label(path []string) string {
	words := slices.Clone(path)
	for i, word := range words {
		named := i == 1 || i == 3 && path[0] == "Tables"
		if !named || path[0] != "Tables" && path[0] != "Budgets" {
			words[i] = snake(word)
		}
	}
	return strings.Join(words, ".")
}

func snake(word string) string {
	if word == "MaxTotal" {
		return "max_rows_total"
	}
	var b strings.Builder
	for i, r := range word {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// effectOf says what a change does, by its place.
func effectOf(path []string, old, new any) Effect {
	added, removed := leaf(old) == "", leaf(new) == ""
	toward := func(looser bool) Effect {
		if looser {
			return Loosens
		}
		return Tightens
	}
	last := path[len(path)-1]
	switch {
	case len(path) == 2 && (path[0] == "Tables" || path[0] == "Budgets") && (added || removed):
		return toward(added)
	case len(path) == 4 && path[2] == "Columns" && (hides(old) || hides(new)):
		return toward(hides(old))
	}
	switch last {
	case "Hidden", "ReplayOnly", "RequirePrepared":
		return toward(removed)
	case "Public", "Declassified", "RowSecurity", "NotCovered", "ShareReleases":
		return toward(!removed)
	case "TwoFor":
		return toward(!holdsAll(new, old))
	case "Timing":
		if added || removed {
			return toward(removed)
		}
	case "MaxFailures":
		return toward(cmpOr(old, DefaultMaxFailures) < cmpOr(new, DefaultMaxFailures))
	case "Mechanisms", "Tranche", "Rate":
		if added || removed {
			return toward(removed)
		}
	case "Epsilon", "Rho", "Delta", "MaxEpsilonPerQuery", "MinEpsilon":
		return amountEffect(last, old, new, toward)
	}
	return Changes
}

// holdsAll reports whether a list has all items of another one.
func holdsAll(list, items any) bool {
	in, _ := list.([]any)
	all, _ := items.([]any)
	return !slices.ContainsFunc(all, func(item any) bool { return !slices.Contains(in, item) })
}

// hides reports whether a column's policy hides it.
func hides(v any) bool {
	m, ok := v.(map[string]any)
	return ok && m["Hidden"] == true
}

func cmpOr(v any, otherwise float64) float64 {
	if n, ok := v.(float64); ok && n != 0 {
		return n
	}
	return otherwise
}

// amountEffect compares amounts: more of a cap is looser, more of a floor is tighter. A cap on one query that is not there binds nothing;
// an amount that is not there is none. A new floor replaces [DefaultFloor], or adds to those of other lines, where the highest counts; one
// that goes may leave a lower one.
func amountEffect(name string, old, new any, toward func(bool) Effect) Effect {
	before, ok1 := amountOf(old)
	after, ok2 := amountOf(new)
	switch {
	case name == "MinEpsilon":
		if !ok1 {
			before = big.NewRat(int64(DefaultFloor), int64(mechanisms.EpsilonUnit))
		}
		return toward(!ok2 || after.Cmp(before) < 0)
	case name == "MaxEpsilonPerQuery":
		return toward(!ok2 || ok1 && after.Cmp(before) > 0)
	case ok1 && ok2:
		return toward(after.Cmp(before) > 0)
	case name == "Delta":
		return toward(ok2)
	default: // another currency
		return Changes
	}
}

func amountOf(v any) (*big.Rat, bool) {
	if v == nil {
		return nil, false
	}
	return new(big.Rat).SetString(fmt.Sprint(v))
}
