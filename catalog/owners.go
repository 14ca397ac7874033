package catalog

import (
	"fmt"
	"slices"

	"noisegate.example/internal/fault"
	"noisegate.example/internal/naming"
)

// strangers refuses budgets of a group or an analyst whose name looks like another, unless the policy in force (nil: none) has them: to
// leave such a line out would lift the cap of a group that tokens have.
func strangers(p, inForce *Policy) (problems []error) {
	for _, b := range p.Budgets {
		if !strange(b) || inForce != nil && slices.ContainsFunc(inForce.Budgets, func(held Budget) bool {
			return held.Scope == b.Scope && held.Name == b.Name && held.PerAnalyst == b.PerAnalyst
		}) {
			continue
		}
		problems = append(problems, fault.PolicyInvalid(b.pos, fmt.Sprintf("%s cannot be told from another name by looking", fault.Quote(b.Name)),
			strangeHint))
	}
	return problems
}

// strangeHint is how such a name is mended.
const strangeHint = "give it a name, at the identity provider too, without white space at its ends, without characters that cannot be " +
	"seen, and in its NFKC form"

// strange reports whether a budget's owner has a name that no new account gets.
func strange(b Budget) bool { return b.Name != "" && !naming.Valid(b.Name) }
